# SPDX-License-Identifier: MIT
"""With --in-process, kernel probes go while all processes of a library are recorded inside, and come
back for those that are not: what the programs did is what is told, from the first call on.

SAMPLE_WAIT has a program wait where CUDA works, so that what follows is made without probes.
"""

import json
import os
import re
import signal
import shutil
import subprocess
import time

import checks
from harness import Failure, Places, Result, Skip, alone, wait_until
from test_in_process import attach, late_runtime_only, rounds, text_of, told_inside

AWAY = "needs no probes from"
BREAKPOINT, PUSH = 0xcc, 0x55  # the second is what they lie on


def breakpoints(pid, library="libcuda.so.1"):
    """How many of the kernel's breakpoints lie in the library's code, as the process has it."""
    class Running:
        pass

    running = Running()
    running.pid = pid
    memory, file = text_of(running, library)
    return sum(1 for now, then in zip(memory, file) if now == BREAKPOINT and then == PUSH)


def gone(trace, count=1):
    wait_until(lambda: trace.err().count(AWAY) >= count or trace.process.poll() is not None,
               "probes to be taken away")
    if trace.process.poll() is not None:
        raise Failure(f"it ended: {trace.err()[-600:]}")


def started(case, *command, options=(), status=0):
    """A command that waits after cuInit until the probes of its driver are away."""
    case.env["SAMPLE_WAIT"] = case.path("go")
    trace = case.start_trace(["--in-process", *options], ["--", *command])
    gone(trace)
    open(case.path("go"), "w").close()
    result = case.result(trace)
    if result.status != status:
        raise Failure(f"exit status {result.status}: {result.err[-600:]}")
    checks.valid(result)
    told_inside(result.err)
    return result


def program_test(program, *arguments, check=checks.everything):
    def test(case):
        result = started(case, Places.program(program), *arguments)
        late_runtime_only(result)
        check(result)

    test.__name__ = "_".join(["test_probes_away_calls_of", program, *arguments])
    return test


def only_calls(result):
    checks.nothing_missed(result)
    checks.calls(result)


for name, arguments in (("threads", ("4", "25")), ("copies", ()), ("errors", ()), ("capture", ("5",))):
    globals()[f"test_probes_away_{name}"] = program_test(name, *arguments)
test_probes_away_memory = program_test("memory", check=only_calls)
test_probes_away_a_program_that_starts_itself_again = program_test("exec", "1", check=only_calls)
test_probes_away_exec_in_place = program_test("exec", "0", check=only_calls)


def test_probes_away_threads_that_began_later_have_their_names(case):
    """The programs tell of a thread when it meets a probe, which these never do."""
    path = case.path("trace.cuscope")
    case.env["SAMPLE_WAIT"] = case.path("go")
    trace = case.cuscope("record", "--in-process", "-o", path, "--", Places.program("threads"), "4", "25",
                         env=case.environment())
    gone(trace)
    open(case.path("go"), "w").close()
    checks.equal("status", 0, trace.wait())
    info = case.cuscope("info", "--json", path)
    checks.equal("status of info", 0, info.wait())
    checks.equal("threads", 5, json.loads(info.out())["threads"])


def children_are_counted(case, shape):
    """Its child makes two calls, which fail. Those that no probe tells of are counted, each once."""
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)
    result = started(case, Places.program("fork"), "after")
    lacking = {name: n - result.names()[checks.ALIASES.get(name, name)] for name, n in result.counts.of("calls").items()
               if name in checks.hooked()}
    hooks = [hook for hook in result.summary["missed"]["hooks"] if hook["kind"] == "counted"]
    checks.equal("calls that lack are those counted", {name: n for name, n in lacking.items() if n},
                 {hook["name"]: hook["calls"] for hook in hooks})
    for hook in hooks:
        checks.equal("why", "1 call in children that 1 process forked, not recorded", hook["why"])
    return sorted(hook["name"] for hook in hooks), result


def test_probes_away_calls_of_a_forked_child_are_told_or_counted(case):
    """Probes that were taken away end some milliseconds later."""
    children_are_counted(case, "push")


def test_probes_away_calls_of_a_forked_child_are_counted_where_jumps_lie_before_probes(case):
    names, result = children_are_counted(case, "stub")
    checks.equal("counted", ["cuCtxSynchronize", "cuMemAlloc_v2"], names)
    checks.equal("complete", False, result.summary["missed"]["complete"])
    checks.contains("it is said", "2 calls were counted in children of fork", result.err)


def in_the_middle(case, shape):
    """Two programs in one shell, of which the second begins when probes are away."""
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)
    loop = Places.program("loop")
    go = case.path("second")
    script = f"exec 3<&0; {loop} 60 300 <&3 & while [ ! -e {go} ]; do sleep 0.05; done; {loop} 60 300 <&3; wait"
    trace = case.start_trace(["--in-process"], ["--", "sh", "-c", script], stdin=subprocess.PIPE)
    gone(trace)
    open(go, "w").close()
    wait_until(lambda: trace.err().count("are recorded inside of process") == 2, "the second to be recorded inside", 40)
    trace.process.stdin.close()
    result = case.result(trace)
    checks.valid(result)
    only_calls(result)
    checks.equal("processes inside", 2, told_inside(result.err)[2])


def test_probes_away_a_second_process_is_held_until_they_are_back(case):
    in_the_middle(case, "push")


def test_probes_away_a_second_process_where_jumps_lie_before_probes(case):
    in_the_middle(case, "stub")


def test_probes_away_a_process_that_is_not_held_is_late(case):
    """It makes calls at once. What is missing of them is told, and only it misses any."""
    loop, go = Places.program("loop"), case.path("second")
    script = f"exec 3<&0; {loop} 60 300 <&3 & while [ ! -e {go} ]; do sleep 0.05; done; {loop} 60 300 <&3; wait"
    trace = case.start_trace(["--in-process", "--no-hold"], ["--", "sh", "-c", script], stdin=subprocess.PIPE)
    gone(trace)
    first = int(re.search(r"inside of process (\d+)", trace.err()).group(1))
    open(go, "w").close()
    wait_until(lambda: trace.err().count("are recorded inside of process") == 2, "the second to be recorded inside", 40)
    trace.process.stdin.close()
    result = case.result(trace)
    checks.valid(result)
    missed = result.summary["missed"]
    second = (result.counts.pids() - {first}).pop()
    late = [hook for hook in missed["hooks"] if hook["kind"] == "hooked_late" and hook["pid"] == second]
    checks.equal("libraries that were hooked late", ["libcuda.so.1"], [hook["lib"] for hook in late])
    checks.equal("it is not complete", False, missed["complete"])
    made = result.counts.of("calls")
    told = result.names()
    late_ms = float(re.search(r"([\d.]+) ms after it was loaded", late[0]["why"]).group(1))
    for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuLaunchKernel"):
        lacking = made[name] - told[checks.ALIASES.get(name, name)]
        if not 0 <= lacking < late_ms / 3 + 20:  # a round takes 3 ms at least
            raise Failure(f"{lacking} of {made[name]} calls of {name} lack; it was hooked {late[0]['why']}")


def unloads(case, *options):
    result = started(case, Places.program("unloads"), "3", "150", options=["--all-calls", *options])
    made, told = result.counts.of("calls"), result.names()
    return {name: made[name] - told[name] for name in ("cuInit", "cuDriverGetVersion")}, result


def test_probes_away_a_library_that_is_loaded_again_while_its_process_is_held(case):
    """Each time, its probes are there before the first call; it is diverted anew, and they go again."""
    lacking, result = unloads(case)
    checks.equal("calls that lack", {"cuInit": 0, "cuDriverGetVersion": 0}, lacking)
    checks.nothing_missed(result)


def test_probes_away_a_library_that_is_loaded_again_is_late(case):
    lacking, result = unloads(case, "--no-hold")
    if min(lacking.values()) < 0 or lacking["cuDriverGetVersion"] > 250:
        raise Failure(f"{lacking} calls lack")
    told = [hook["kind"] for hook in result.summary["missed"]["hooks"] if hook.get("pid") in result.counts.pids()]
    if max(lacking.values()) and not {"hooked_late", "unhooked"} & set(told):
        raise Failure(f"{lacking} calls lack, and that is not told: {result.summary['missed']}")


@alone  # another trace's breakpoints would be counted
def test_probes_away_of_a_program_that_runs(case):
    """Its code has no breakpoint any more, and afterwards it is as in its file."""
    program = case.program("loop", 120, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    trace = attach(case, program)
    many = breakpoints(program.pid)
    gone(trace)
    wait_until(lambda: breakpoints(program.pid) == 0, "breakpoints to go", 60)
    if many < 100:
        raise Failure(f"{many} breakpoints before: how are they counted?")
    time.sleep(1)
    trace.signal(signal.SIGINT)
    result = case.result(trace)
    checks.valid(result)
    checks.nothing_missed(result)
    rounds(result)
    program.signal(signal.SIGTERM)


def test_probes_away_beside_a_launcher_that_has_the_runtime_and_no_driver(case):
    """torchrun does so. Its probes come back with the driver: what is missed is the call that loads that."""
    case.env["SAMPLE_WAIT"] = case.path("go")
    trace = case.start_trace(["--in-process", "--all-calls"], ["--", Places.program("launcher"), "3"])
    wait_until(lambda: f"libcudart.so.12 {AWAY}" in trace.err() or trace.process.poll() is not None,
               "probes of the runtime to be taken away")
    open(case.path("go"), "w").close()
    result = case.result(trace)
    checks.valid(result)
    checks.contains("it is said", f"libcudart.so.12 {AWAY}", trace.err())
    made, told = result.counts.of("calls"), result.names()
    lacking = {name: made[name] - told[name] for name in ("cudaMalloc", "cudaFree")}
    if lacking not in ({"cudaMalloc": 1, "cudaFree": 0}, {"cudaMalloc": 0, "cudaFree": 0}):  # probes end a little later
        raise Failure(f"calls that lack: {lacking}")
    hooks = [(hook["kind"], hook["lib"], hook["why"]) for hook in result.summary["missed"]["hooks"]]
    checks.equal("what is told of it",
                 [("unhooked", "libcudart.so.12", "calls until it had loaded the driver, as its first does")], hooks)


@alone  # another test's traces of programs that run would take its file for a GPU's
def test_probes_away_of_a_parent_whose_children_alone_use_cuda(case):
    """It has a GPU's device open, as who asks NVML for GPUs before CUDA is used in its children."""
    device = f"/dev/nvidia-test-{os.getpid()}"
    case.env["SAMPLE_WAIT"] = case.path("go")
    open(device, "w").close()
    try:
        parent = case.program("fork", "opened", device)
        wait_until(lambda: "ready" in parent.out(), "the program")
        trace = case.start_trace(["--in-process", "--duration", "20"], ["-p", str(parent.pid)])
        until = time.monotonic() + 2
        wait_until(lambda: AWAY in trace.err() and not breakpoints(parent.pid) or time.monotonic() > until,
                   "probes to go, if they do")
        open(case.path("go"), "w").close()
        result = case.result(trace)
    finally:
        os.unlink(device)
    checks.valid(result)
    only_calls(result)


@alone
def test_probes_away_not_while_a_process_needs_them(case):
    """One under another tracer cannot be entered."""
    if not shutil.which("strace"):
        raise Skip("strace is not here")
    first = case.program("loop", 30, 200, stdin=subprocess.PIPE)
    second = case.program("loop", 30, 200, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in first.out() and "ready" in second.out(), "the programs")
    tracer = case.start("strace", "-qq", "-o", "/dev/null", "-e", "trace=none", "-p", str(second.pid))
    wait_until(lambda: "TracerPid:\t0\n" not in open(f"/proc/{second.pid}/status").read(), "strace")
    trace = case.start_trace(["--in-process"], ["-p", f"{first.pid},{second.pid}"])
    wait_until(lambda: "are recorded inside of process" in trace.err(), "the first to be diverted")
    time.sleep(1.5)
    if not breakpoints(first.pid):
        raise Failure("the probes are away")
    second.process.stdin.close()
    second.wait()
    tracer.stop()
    gone(trace)
    trace.signal(signal.SIGINT)
    result = case.result(trace)
    checks.valid(result)
    checks.nothing_missed(result)
    for program in (first, second):
        if len(result.calls(name="cuLaunchKernel", pid=program.pid)) < 100:
            raise Failure(f"few launches of process {program.pid}")


@alone
def test_probes_away_of_functions_whose_stacks_are_asked_for(case):
    """The kernel walks stacks where the agent asks for it: no probe stays in the driver, and no call is told twice."""
    case.env["SAMPLE_WAIT"] = case.path("go")
    trace = record_stacks(case, "threads", "4", "25")
    pid = int(re.search(r"inside of process (\d+)", trace.err()).group(1))
    wait_until(lambda: not breakpoints(pid), "all breakpoints to go", 60)
    open(case.path("go"), "w").close()
    all_with_stacks(case, trace)


def record_stacks(case, *program):
    """A recording of a program, with the stacks of all launches, from when probes are away."""
    trace = case.cuscope("record", "--in-process", "--stacks=launches", "--launch-stacks=all", "-o",
                         case.path("trace.cuscope"), "--", Places.program(program[0]), *program[1:],
                         env=case.environment(), stdin=subprocess.PIPE)
    gone(trace)
    return trace


def all_with_stacks(case, trace):
    """At its end: each call once, and each launch with its stack."""
    checks.equal("status", 0, trace.wait())
    exported = case.cuscope("export", case.path("trace.cuscope"), "-o", case.path("trace.jsonl"))
    checks.equal("status of the export", 0, exported.wait())
    info = case.cuscope("info", "--json", case.path("trace.cuscope"))
    checks.equal("status of info", 0, info.wait())
    result = Result(exported, 0, case.path("trace"), case.path("counts"))
    made = {name: n for name, n in result.counts.of("calls").items() if name in checks.hooked()}
    checks.differences("calls", made, result.names())
    checks.equal("launches with stacks", len(result.calls(op="launch")), json.loads(info.out())["stacks"]["calls"])


def test_probes_away_calls_are_told_once_while_their_hooks_get_links_of_their_own(case):
    """For a moment there are two."""
    all_with_stacks(case, record_stacks(case, "loop", "3", "1000"))
