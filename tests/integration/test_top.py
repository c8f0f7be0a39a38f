# SPDX-License-Identifier: MIT
"""cuscope top: the screen, driven in tmux, and the page of --once."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import checks
from harness import Counts, Failure, Places, Skip, alone, wait_until


class Terminal:
    """A shell in a tmux of its own; `command` runs in it, and what it leaves behind is looked at."""

    def __init__(self, case, command, columns=80, rows=24):
        if not shutil.which("tmux"):
            raise Skip("tmux is not installed")
        self.case = case
        self.name = f"cuscope-test-{os.getpid()}"
        self.sockets = tempfile.mkdtemp(prefix=self.name)  # the path of a socket has to be short
        script = case.path("script")
        with open(script, "w") as file:
            file.write("trap : INT\n"  # Ctrl-C is for what runs in it
                       "stty -g > before\n"
                       f"{command}\n"
                       "echo \"status $?\"\n"
                       "stty -g > after\n"
                       "sleep 1000\n")
        # bounded, should this test be killed
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  "-c", case.folder, "timeout", "--foreground", "90", "sh", script)
        self.pid = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)
        shutil.rmtree(self.sockets)

    def tmux(self, *arguments, check=True):
        env = dict(self.case.environment(), TMUX_TMPDIR=self.sockets)
        return subprocess.run(["tmux", "-L", self.name, *arguments], env=env, capture_output=True,
                              text=True, check=check, timeout=20).stdout

    def text(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def wait(self, pattern, seconds=15):
        """Until the screen has it; returns the screen."""
        seen = []

        def look():
            seen[:] = [self.text()]
            return re.search(pattern, seen[0])
        try:
            wait_until(look, pattern, seconds)
        except Failure:
            raise Failure(f"no {pattern!r} on the screen:\n{seen[0]}") from None
        return seen[0]

    def cuscope(self):
        """The process that draws."""
        pane = self.tmux("list-panes", "-F", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-f", "-s", pane, Places.cuscope() + " top"],
                               capture_output=True, text=True).stdout.split()
        return int(found[-1])

    def ended(self):
        """Waits for the end; returns its status and checks that the terminal is as before."""
        screen = self.wait(r"status \d+")
        wait_until(lambda: os.path.exists(self.case.path("after"))
                   and os.path.getsize(self.case.path("after")), "the terminal's settings")
        with open(self.case.path("before")) as before, open(self.case.path("after")) as after:
            checks.equal("settings of the terminal", before.read(), after.read())
        state = self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{keypad_cursor_flag}")
        checks.equal("the screen, the cursor and the keys", "0 1 0", state.strip())
        return int(re.search(r"status (\d+)", screen)[1])


def top(case, *options, **more):
    words = " ".join(options)
    return Terminal(case, f"{Places.cuscope()} top --interval 300ms {words}", **more)


def start_loop(case, rate=200, seconds=60):
    """A program that calls on; it has begun when this returns. It ends when its input does."""
    process = case.program("loop", seconds, rate, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    return process


def pids(screen):
    """The rows of the processes, in order."""
    return [int(pid) for pid in re.findall(r"^ *(\d+) loop", screen, re.M)]


# ---- the screen -------------------------------------------------------------------------------


def test_top_shows_rates_and_sorts(case):
    slow, fast = start_loop(case, 50), start_loop(case, 500)
    with top(case, "-p", f"{slow.pid},{fast.pid}") as screen:
        screen.wait(r"\d loop +[1-9]\d* +[1-9].*\n.*\d loop +[1-9]\d* +[1-9].*\n +2 processes +[1-9]")
        checks.equal("by calls", [fast.pid, slow.pid], pids(screen.wait("by CALLS/s")))
        screen.press("d")
        checks.equal("by pid", sorted([fast.pid, slow.pid]), pids(screen.wait("by PID,")))
        screen.press("R")
        checks.equal("by pid", sorted([fast.pid, slow.pid], reverse=True),
                     pids(screen.wait("by PID backwards")))
        screen.press(">")
        screen.wait("by NAME,")
        screen.press("q")
        checks.equal("status", 0, screen.ended())
    checks.equal("the programs run on", [None, None], [slow.process.poll(), fast.process.poll()])


def test_top_opens_one_process(case):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid)) as screen:
        screen.wait(rf"{loop.pid} loop +[1-9]")
        screen.press("Enter")
        screen.wait(r"KERNEL +LAUNCHES LAUNCH/s SHARE\n *tick\(\) +[1-9]\d* +[1-9]\d* +100%")
        screen.press("2")
        screen.wait(r"FUNCTION +CALLS CALLS/s ERRORS +P50 +P99 +TIME\n"
                    r"(cu\w+ +[1-9]\d* +[1-9]\d* +0( +[\d.]+[num]?s){3}\n){3}")
        screen.press("Tab")
        screen.wait(r"STREAM .*\n0 \(default\) +[1-9]\d* +[1-9]\d* +0 ")
        screen.press("4")
        screen.wait(r"KIND .*\n *all .*\n *device +[01] +(0|256) +256")
        screen.press("5")
        screen.wait(r"nothing was copied yet")
        screen.press("Escape")
        screen.wait(r"PID NAME")
        screen.press("h")
        screen.wait("choose a process")
        screen.press("q", "q")
        screen.ended()


@alone
def test_top_why_says_where_the_time_goes(case):
    """Above the table, and with the open process in place of what its sums tell."""
    process = case.start(os.path.join(Places.build, "planted", "planted"), "sleep", "60", env={**case.environment(), "SIMCUDA_TIME_SCALE": "1"})
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    with top(case, "--why", "-p", str(process.pid), columns=160) as screen:
        screen.wait("last 10 s: the first ten seconds are being recorded")
        line = re.search("^last 10 s: (.*)", screen.wait("last 10 s: Change first: asleep in ", 40), re.M)[1]
        checks.contains("where", "host.c:19 pause_between_steps", line)
        checks.equal("no GPU column of a part of the time", None, re.search("NAME .* GPU *$", screen.text(), re.M))
        screen.press("Enter")
        opened = screen.wait("KERNEL +LAUNCHES")
        checks.contains("stays", "last 10 s: Change first: asleep in ", opened)
        checks.equal("sums of it", None, re.search("why: cuscope why", opened))
        screen.press("q", "q")
        checks.equal("status", 0, screen.ended())


def test_top_sees_a_wait_that_goes_on(case):
    waits = case.program("waits", 30, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in waits.out(), "the program to begin")
    with top(case, "-p", str(waits.pid)) as screen:
        screen.wait("no process has called CUDA yet")
        waits.process.stdin.close()
        screen.wait(rf"{waits.pid} waits +0 .* 100%")
        screen.press("q")
        screen.ended()


def test_top_stops_and_goes_on(case):
    loop = start_loop(case)
    with Terminal(case, "bash --norc -i") as screen:
        screen.press(f"{Places.cuscope()} top -p {loop.pid}", "Enter")
        screen.wait(rf"{loop.pid} loop +[1-9]")
        screen.press("C-z")
        screen.wait("Stopped")
        checks.equal("the screen and the cursor", "0 1",
                     screen.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip())
        screen.press("fg", "Enter")
        screen.wait(rf"{loop.pid} loop +[1-9]")
        screen.press("q")
        screen.press("exit", "Enter")
        screen.ended()


def test_top_pauses_and_resets(case):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid), columns=130) as screen:
        screen.wait(rf"{loop.pid} loop +1 +[1-9]")
        screen.press("p")
        paused = screen.wait("PAUSED")
        row = re.search(r".* loop .*", paused)[0]
        calls = int(row.split()[3])
        time.sleep(1)
        checks.equal("the row while paused", row, re.search(r".* loop .*", screen.text())[0])
        screen.press("Enter", "2")
        screen.wait(r"cuLaunchKernel +[1-9]")  # what was counted then can be looked into
        screen.press("Escape", "p")
        screen.wait(r"all processes|by CALLS/s")
        wait_until(lambda: int(re.search(r".* loop .*", screen.text())[0].split()[3]) > calls + 100,
                   "the calls of the pause to be counted")
        screen.press("r")
        wait_until(lambda: int(re.search(r".* loop .*", screen.text())[0].split()[3]) < calls + 100,
                   "counts to begin anew")
        screen.press("q")
        screen.ended()


def test_top_follows_the_size_of_the_screen(case):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid)) as screen:
        screen.wait(rf"{loop.pid} loop +[1-9]")
        checks.contains_not("80 columns", "THR", screen.text())
        screen.tmux("resize-window", "-x", "60", "-y", "20")
        screen.wait(r"^needs 80 x 24; this is 60 x 20")
        screen.tmux("resize-window", "-x", "120", "-y", "40")
        text = screen.wait(r"PID NAME .* THR")
        checks.contains("the last line", r"\nEnter open .*\n*$", text)
        checks.equal("lines", 40, len(text.rstrip("\n").splitlines()))
        screen.press("q")
        screen.ended()


def test_top_ended_processes_stay_a_moment_and_are_gone(case):
    first, second = start_loop(case), start_loop(case)
    with top(case, "-p", f"{first.pid},{second.pid}") as screen:
        screen.wait(r"2 processes")
        first.process.stdin.close()
        screen.wait(rf"{first.pid} loop \(ended\) +0")
        text = screen.wait(r"1 gone +0.*\n +2 processes +[1-9]")
        checks.contains_not("its row", rf"{first.pid} loop", text)
        screen.press("q")
        screen.ended()


def test_top_ends_with_its_target(case):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid)) as screen:
        screen.wait(rf"{loop.pid} loop +[1-9]")
        loop.process.stdin.close()
        checks.equal("status", 0, screen.ended())
        checks.contains("the last page", rf"{loop.pid} loop \(ended\)", screen.text())


def ends_by(case, number, wanted):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid)) as screen:
        screen.wait(rf"{loop.pid} loop +[1-9]")
        if number == signal.SIGINT:
            screen.press("C-c")
        else:
            os.kill(screen.cuscope(), number)
        checks.equal(f"status after signal {number}", wanted, screen.ended())


def test_top_restores_the_terminal_at_sigterm(case):
    ends_by(case, signal.SIGTERM, 0)


def test_top_restores_the_terminal_at_ctrl_c(case):
    ends_by(case, signal.SIGINT, 0)


def test_top_restores_the_terminal_at_a_crash(case):
    ends_by(case, signal.SIGSEGV, 128 + signal.SIGSEGV)


def test_top_restores_the_terminal_at_an_abort(case):
    ends_by(case, signal.SIGABRT, 128 + signal.SIGABRT)


def test_top_loses_nothing_silently(case):
    tight = case.program("tight", "0")
    wait_until(lambda: tight.out().count("\n") > 1, "the program to begin")
    with top(case, "-p", str(tight.pid), "--only", "cuCtxSetCurrent", "--ring-size", "64KiB") as screen:
        screen.wait(rf"{tight.pid} tight")
        tracer = screen.cuscope()
        os.kill(tracer, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(tracer, signal.SIGCONT)
        screen.wait(r"lost [1-9]\d*: ring full")
        checks.contains_not("the page", "nothing lost", screen.text())
        screen.press("q")
        screen.ended()
        screen.wait(r"lost [1-9]\d*: ring full")  # is said at the end as well


def test_top_of_a_command_keeps_its_output_from_the_screen(case):
    output = case.path("output")
    command = f"{Places.program('tight')} 0"
    with top(case, "--command-output", output, "--", "sh", "-c", f"'cat; exec {command}'") as screen:
        screen.wait(r"\d tight")
        checks.contains_not("the screen", r"^\d+$", screen.text())
        wait_until(lambda: os.path.getsize(output) > 0, "its output in the file")
        screen.press("q")
        screen.wait("waiting for the command")
        os.kill(screen.cuscope(), signal.SIGTERM)  # is passed on
        checks.equal("status", 128 + signal.SIGTERM, screen.ended())


def colours_of(case):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid)) as screen:
        screen.wait(rf"{loop.pid} loop +[1-9]")
        screen.press("p")
        screen.wait("PAUSED")
        return screen.text("-e")


def test_top_has_few_colours(case):
    checks.contains("yellow: paused", "\x1b\\[(\\d+;)*33m.*PAUSED", colours_of(case))


def test_top_without_colours(case):
    case.env["NO_COLOR"] = "1"
    checks.contains_not("NO_COLOR", "\x1b\\[(\\d+;)*3[0-7]m", colours_of(case))


def test_top_on_an_unknown_terminal(case):
    loop = start_loop(case)
    with Terminal(case, f"TERM=nonexistent {Places.cuscope()} top -p {loop.pid}") as screen:
        checks.equal("status", 1, screen.ended())
        checks.contains("a sentence", "TERM=nonexistent.*--once", screen.text("-J"))


# ---- one page ---------------------------------------------------------------------------------


def once(case, *arguments, status=0):
    process = case.cuscope("top", "--once", *arguments)
    checks.equal("status", status, process.wait())
    return process


def once_json(case, program, *arguments):
    process = once(case, "--format", "json", "--interval", "30s", "--", Places.program(program),
                   *map(str, arguments))
    return json.loads(process.out())


def only_process(page):
    checks.equal("processes", 1, len(page["processes"]))
    return page["processes"][0]


def test_top_once_counts_what_the_program_did(case):
    process = only_process(once_json(case, "threads", 4, 50))
    counts = Counts(case.path("counts"))
    checks.equal("pid", counts.pids(), {process["pid"]})
    calls = counts.of("calls")
    checks.differences("calls", {f["name"]: calls[f["name"]] for f in process["functions"]},
                       {f["name"]: f["calls"] for f in process["functions"]})
    checks.equal("all calls", process["calls"], sum(f["calls"] for f in process["functions"]))
    checks.equal("launches", sum(counts.of("launches").values()), process["launches"])
    kernels, streams = collections.Counter(), collections.Counter()
    for key, n in counts.of("launches").items():
        name, stream = re.match(r"(.*) \S+ \S+ \d+ (\S+) \d+$", key).groups()
        kernels[name] += n
        streams[stream] += n
    checks.differences("kernels", kernels, {k["name"]: k["launches"] for k in process["kernels"]})
    checks.differences("streams", streams, {s["stream"]: s["launches"] for s in process["streams"]})
    for direction in ("H2D", "D2H"):
        copies = [(int(re.search(r"\b\d{4,}\b", key)[0]), n) for key, n in counts.of("copies").items()
                  if direction in key]
        checks.equal(direction, {"copies": sum(n for _, n in copies),
                                 "bytes": sum(size * n for size, n in copies)},
                     {key: process["transfers"][direction][key] for key in ("copies", "bytes")})


def test_top_once_memory_by_kind(case):
    process = only_process(once_json(case, "memory"))
    checks.equal("kinds", {"all", "device", "managed", "host", "async", "vmm", "vmm-va", "array"},
                 set(process["memory"]))
    checks.equal("after the end", 0, process["memory"]["all"]["bytes"])
    checks.equal("async", 5555 + 6666, process["memory"]["async"]["peak_bytes"])


def test_top_once_errors(case):
    page = once_json(case, "errors")
    wanted = sum(n for key, n in Counts(case.path("counts")).of("errors").items()
                 if key.split()[0] in checks.hooked())
    checks.equal("errors", wanted, page["total"]["errors"])
    checks.equal("complete", True, page["missed"]["complete"])


def test_top_once_as_text(case):
    loop = start_loop(case)
    out = once(case, "--interval", "500ms", "-p", str(loop.pid)).out()
    checks.contains("text", rf"^cuscope top: process {loop.pid}  by CALLS/s, over (0\.[5-9]|[1-9]\.\d|\d\d\.\d) s", out)
    checks.contains("text", rf"\n +{loop.pid} loop +1 +[1-9]\d* +[1-9]\d* +[1-9]", out)
    checks.contains_not("text", "\x1b|Enter open", out)


@alone
def test_top_once_is_of_all_processes_without_a_target(case):
    loop = start_loop(case)
    out = once(case, "--interval", "1s").out()
    checks.contains("title", "^cuscope top: all processes", out)
    checks.contains("a row", rf"\n +{loop.pid} loop ", out)


# ---- hooks of one's own -----------------------------------------------------------------------


ALLOCATIONS = "uprobe:libcuda.so:cuMemAlloc_v2(bytes=arg1:bytes) as own"


def test_top_once_has_hooks(case):
    page = once_json(case, "threads", 2, 5)
    checks.equal("without any", False, "hooks" in only_process(page) or "hooks" in page["gone"])
    hooks = ["--hook", ALLOCATIONS, "--hook", "uentry:libcuda.so:cuLaunchKernel as launches if arg1 != 0",
              "--hook", "uentry:libcuda.so:cuLaunchKernel as never if arg1 == 0", "--hook", "uprobe:libnowhere.so:f"]
    out = once(case, "--format", "json", "--interval", "30s", *hooks, "--", Places.program("threads"), "2", "5").out()
    page = json.loads(out)
    process = only_process(page)
    hooks = {hook["name"]: hook for hook in process["hooks"]}
    checks.equal("names", {"own.cuMemAlloc_v2", "launches.cuLaunchKernel"}, set(hooks))
    own, launches = hooks["own.cuMemAlloc_v2"], hooks["launches.cuLaunchKernel"]
    checks.equal("calls", 10, own["calls"])
    checks.equal("bytes", 5 * 4096 + 5 * 8192, own["bytes"])
    checks.equal("an entry has no times", {"name", "calls", "calls_per_second"}, set(launches))
    checks.equal("launches", process["launches"], launches["calls"])
    if not 0 < own["mean_ns"] <= own["max_ns"] <= own["time_ns"]:
        raise Failure(f"times: {own}")
    checks.equal("calls of CUDA", process["calls"], sum(f["calls"] for f in process["functions"]))
    told = {hook["name"]: hook["why"] for hook in page["missed"]["hooks"]}
    checks.contains("told", "its place has a hook already", told["cuLaunchKernel"])
    checks.contains("told", "no target has mapped libnowhere.so", told["f"])


def test_top_once_as_text_has_hooks_below(case):
    out = once(case, "--interval", "30s", "--hook", ALLOCATIONS, "--", Places.program("threads"), "2", "5").out()
    checks.contains("text", r"\n +1 process .*\n\n +PID +NAME HOOK +CALLS CALLS/s BYTES/s +BYTES +MEAN +MAX +TIME\n"
                            r" +\d+ +threads \(ended\) own.cuMemAlloc_v2 +10 ", out)


def test_top_shows_hooks(case):
    loop = start_loop(case)
    with top(case, "-p", str(loop.pid), "--hook", f"'{ALLOCATIONS}'") as screen:
        screen.wait(rf"{loop.pid} loop +[1-9]")
        screen.press("H")
        screen.wait(rf"PID HOOK +CALLS CALLS/s BYTES/s +MEAN +MAX +TIME\n +{loop.pid} own.cuMemAlloc_v2 +[1-9]\d* +[1-9]")
        screen.press("Escape")
        screen.wait("H hooks")
        screen.press("Enter", "6")
        screen.wait(r"5 transfers +6 hooks *\nHOOK .*\nown.cuMemAlloc_v2 +[1-9]\d* +[1-9]\d* +[1-9]")
        screen.press("q", "q")
        screen.ended()


def test_top_refuses_hooks_that_cannot_be(case):
    process = case.cuscope("top", "--once", "--hook", "uprobe:libhooked.so:f(n=arg0:i33)")
    checks.equal("status", 2, process.wait())
    checks.contains("its place", r"cuscope top: --hook: 'i33' is no type: .*\n  uprobe:libhooked.so:f\(n=arg0:i33\)\n {31}\^\n", process.err())
    refused(case, 2, "--hook: this hook needs returns, which --no-returns does not record", "--once", "--no-returns",
            "--hook", "uprobe:libhooked.so:f(n=ret)")
    refused(case, 2, "--hook-limit: '0' is no number from 1 to 8192", "--once", "--hook-limit", "0")


# ---- GPUs -------------------------------------------------------------------------------------


def simulated_gpus(case, **env):
    case.env["LD_LIBRARY_PATH"] = Places.libraries() + ":" + os.path.join(Places.build, "simnvml")
    case.env.update(env)


def test_top_shows_gpus(case):
    loop = start_loop(case)
    simulated_gpus(case, SIMNVML_GPUS="2", SIMNVML_PID=str(loop.pid))
    out = once(case, "--interval", "300ms", "-p", str(loop.pid)).out()
    checks.contains("a line", r"\nGPU0  NVIDIA Simulated 0 +busy +10%  mem 20.0G/80.0G +300W/700W +40C\n"
                              r"GPU1  NVIDIA Simulated 1 +busy +11%  mem 21.0G/80.0G +301W/700W +41C\n", out)
    heads, row = re.search(r"( +PID .*)\n(.*)", out).groups()
    checks.equal("GPUMEM", "2.00G", row[:heads.index("GPUMEM") + 6].split()[-1])


def test_top_asks_an_older_driver(case):
    loop = start_loop(case)
    simulated_gpus(case, SIMNVML_FAIL="v2")
    out = once(case, "--interval", "200ms", "-p", str(loop.pid)).out()
    checks.contains("a line", r"mem 21.0G/80.0G", out)


def test_top_tells_whose_a_process_is(case):
    case.env = {"SLURM_JOB_ID": "77", "RANK": "3\x1b[31m"}
    loop = start_loop(case)
    options = ("-p", str(loop.pid))
    process = only_process(json.loads(once(case, "--format", "json", "--interval", "1s", *options).out()))
    checks.equal("who", ("root", "77", "loop"), tuple(process.get(word) for word in ("user", "slurm_job", "command")))
    if "\x1b" in process.get("rank", ""):
        raise Failure(f"what a process says of itself is not made harmless: {process['rank']!r}")
    with top(case, *options, columns=200) as screen:
        screen.wait(r"SYNC +(GPU +)?USER +JOB +RANK +POD")
        screen.wait(r" root +77 +3")
        screen.press("q")
        screen.ended()


def test_top_gpus_as_json(case):
    loop = start_loop(case)
    simulated_gpus(case, SIMNVML_PID=str(loop.pid))
    page = json.loads(once(case, "--format", "json", "--interval", "300ms", "-p", str(loop.pid)).out())
    checks.equal("the GPU", [{"name": "NVIDIA Simulated 0", "busy_percent": 10,
                              "memory_used_bytes": 20 << 30, "memory_total_bytes": 80 << 30,
                              "power_mw": 300000, "power_limit_mw": 700000, "temperature_c": 40,
                              "sm_percent": None, "tensor_percent": None, "dram_percent": None}],
                 page["gpus"])
    checks.equal("its memory", 1 << 30, only_process(page)["gpu_memory_bytes"])


def test_top_waits_for_a_driver_that_wakes_up(case):
    loop = start_loop(case)
    simulated_gpus(case, SIMNVML_SLOW="1500")
    out = once(case, "--interval", "200ms", "-p", str(loop.pid)).out()
    checks.contains("a line", r"GPU0  NVIDIA Simulated 0 +busy", out)


def test_top_says_why_there_are_no_figures(case):
    loop = start_loop(case)
    simulated_gpus(case, SIMNVML_FAIL="init")
    out = once(case, "--interval", "200ms", "-p", str(loop.pid)).out()
    checks.contains("a note", r"\nno GPU figures: libnvidia-ml.so.1: Driver Not Loaded\n", out)


# ---- bad input --------------------------------------------------------------------------------


def refused(case, status, wanted, *arguments):
    process = case.cuscope("top", *arguments)
    checks.equal(f"status of {arguments}", status, process.wait())
    checks.contains(f"{arguments}", wanted, process.err())
    checks.equal("one sentence", 1, len(process.err().splitlines()))


def test_top_refuses_bad_input(case):
    refused(case, 2, "no terminal: --once prints one page", "-p", "1")
    refused(case, 2, "--format json goes with --once", "--format", "json")
    refused(case, 2, "--format: 'xml' is no format", "--format", "xml")
    refused(case, 2, "--interval: '10ms' is no time from 100ms to 1h", "--interval", "10ms")
    refused(case, 2, "--command-output is for what a command", "--once", "--command-output", "x", "-p", "1")
    refused(case, 2, "--once takes --interval", "--once", "--duration", "2s")
    refused(case, 2, "did you mean '--once'", "--onec")
    refused(case, 1, "there is no process 99999999", "--once", "-p", "99999999")
    path = case.path("there")
    with open(path, "w"):
        pass
    refused(case, 1, "exists already: --force", "--once", "--command-output", path, "--", "true")


def test_top_calls_processes_by_script_and_rank(case):
    planted = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "planted", "planted.py")
    script = case.start(sys.executable, planted, "py_sleep", "20", name="script", env=dict(case.environment("script"), RANK="3"))
    loop = case.program("loop", 20000, 500, stdin=subprocess.PIPE, name="loop", env=dict(case.environment("loop"), RANK="12"))
    wait_until(lambda: "ready" in script.out() and "ready" in loop.out(), "the programs to begin")
    done = case.cuscope("top", "--once", "--interval", "2s", "-p", f"{script.pid},{loop.pid}")
    checks.equal("status of top", 0, done.wait())
    for pid, name in ((script.pid, "planted.py #3"), (loop.pid, "loop #12")):
        if not re.search(rf"^ *{pid} {re.escape(name)} ", done.out(), re.M):
            raise Failure(f"process {pid} is not {name}: {done.out()}")
    loop.process.stdin.close()
    script.process.kill()
