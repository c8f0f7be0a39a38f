# SPDX-License-Identifier: MIT
"""Processes that a target starts: fork, exec, what is told of them."""

import os
import shutil
import signal
import subprocess

import checks
from harness import Failure, Places, Skip, wait_until


def test_fork_without_exec_is_followed(case):
    result = case.trace("fork", "before")
    checks.everything(result)
    checks.equal("processes", 3, len(result.counts.pids()))
    checks.equal("pids", result.counts.pids(), {c["pid"] for c in result.calls()})


def test_fork_after_init_shows_what_fails_in_the_child(case):
    result = case.trace("fork", "after")
    checks.everything(result)


def test_memory_of_a_forked_child_is_its_own(case):
    result = case.trace("fork", "before")
    sizes = {(c["pid"], c["size"]): c["total_allocated"] for c in result.calls(op="alloc")}
    if any(total != size for (_, size), total in sizes.items()):
        raise Failure(f"total_allocated mixes processes: {sizes}")


def test_exec_is_followed(case):
    result = case.trace("exec", "2")
    checks.everything(result)
    checks.equal("processes in all", 3, len(result.counts.pids()))
    checks.equal("allocations", 6, len(result.calls(op="alloc")))


def test_exec_by_another_thread_than_the_first(case):
    result = case.trace("exec", "1", "thread")
    checks.everything(result)


def test_no_follow_leaves_children_out(case):
    result = case.trace("exec", "1", options=["--no-follow"])
    checks.valid(result)
    counted = {c["pid"]: c for c in result.counts.processes}
    pids = {c["pid"] for c in result.calls()}
    checks.equal("processes", 1, len(pids))
    checks.equal("calls after its own exec, too", {1001, 77},
                 {c["size"] for c in result.calls(op="alloc")})
    checks.equal("it is the command", True, pids < set(counted))


def test_process_events_tell_start_and_exit(case):
    result = case.trace("exec", "1")
    events = [(e["op"], e["pid"]) for e in result.events if e["type"] == "process"]
    for pid in result.counts.pids():
        starts = [op for op, of in events if of == pid]
        checks.equal(f"events of {pid}", "exit", starts[-1])
        checks.equal(f"starts of {pid}, one after its exec", True, starts.count("start") >= 2)


def test_a_shell_pipeline_is_followed(case):
    program = Places.program("threads")
    result = case.trace("/bin/sh", "-c", f"{program} 2 3 & {program} 1 2 | cat; wait")
    checks.everything(result)
    checks.equal("processes", 2, len(result.counts.pids()))


def test_exit_status_is_passed_on(case):
    for status in (0, 1, 42, 127):
        result = case.trace("/bin/sh", "-c", f"exit {status}", status=None, name=f"s{status}")
        checks.equal("status", status, result.status)


def test_death_by_signal_is_passed_on(case):
    result = case.trace("/bin/sh", "-c", "kill -SEGV $$", status=None)
    if result.status not in (128 + signal.SIGSEGV, -signal.SIGSEGV):
        raise Failure(f"status {result.status}")


def test_the_command_finds_itself_as_without_cuscope(case):
    """Limits, signal dispositions and mask, descriptors, groups: nothing leaks into the target."""
    script = case.path("look.sh")
    with open(script, "w") as file:
        file.write("grep -E '^(Sig(Blk|Ign|Cgt)|Groups|Uid|Gid|Cap|NoNewPrivs|Seccomp)' /proc/self/status\n"
                   "ulimit -a\nls /proc/$$/fd\nnice\ncat /proc/$$/oom_score_adj\numask\nenv | sort\n"
                   "cat /proc/$$/timerslack_ns /proc/$$/coredump_filter\nps -o sid= -p $$\n")
    limits = 'ulimit -S -n 256; ulimit -l 64; trap "" HUP; exec "$@"'
    bare = case.start("/bin/sh", "-c", limits, "sh", "/bin/sh", script)
    bare.wait()
    traced = case.start("/bin/sh", "-c", limits, "sh", Places.cuscope(), "trace", "--summary-only",
                        "-o", case.path("summary"), "--", "/bin/sh", script)
    checks.equal("status", 0, traced.wait())
    for line, (one, other) in enumerate(zip(bare.out().splitlines(), traced.out().splitlines())):
        if one != other and not one.startswith("_="):
            raise Failure(f"line {line}: {one!r} bare, {other!r} traced")
    checks.equal("lines", len(bare.out().splitlines()), len(traced.out().splitlines()))


def test_signals_that_were_ignored_stay_ignored(case):
    """nohup cuscope trace -- app: the application is to be as nohup makes it."""
    command = ["trap '' HUP USR1; exec \"$@\"", "sh", Places.cuscope(), "trace", "--summary-only", "-o",
               case.path("summary"), "--", "grep", "SigIgn", "/proc/self/status"]
    traced = case.start("/bin/sh", "-c", *command)
    checks.equal("status", 0, traced.wait())
    ignored = int(traced.out().split()[1], 16)
    checks.equal("SIGHUP and SIGUSR1 ignored", 1 | 1 << 9, ignored & (1 | 1 << 9))


def ready(process):
    wait_until(lambda: "ready" in process.out(), "the program to be ready")


def test_sigterm_is_passed_on_to_the_command(case):
    """SIGTERM to cuscope ends the command; what it did until then is summed up."""
    process = case.start_trace([], ["--", Places.program("loop"), "30"], stdin=subprocess.PIPE)
    ready(process)
    process.signal(signal.SIGTERM)
    result = case.result(process, seconds=10)
    checks.valid(result)
    if result.summary["launches"]["kernels"] < 1:
        raise Failure("no launches")


def test_stopping_and_continuing_the_command(case):
    """SIGSTOP and SIGCONT do to it what they do without cuscope."""
    process = case.start_trace([], ["--", Places.program("loop"), "3"], stdin=subprocess.PIPE)
    ready(process)
    pid = int(subprocess.run(["pgrep", "-P", str(process.pid), "loop"], capture_output=True,
                                    text=True, check=True).stdout)

    def state():
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state() in "Tt", "the command to stop", 5)
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: state() in "SR", "the command to go on", 5)
    process.process.stdin.close()
    result = case.result(process, seconds=10)
    checks.everything(result)


def test_user_runs_the_command_as_another_user(case):
    result = case.trace("/usr/bin/id", "-un", options=["--user", "nobody"])
    checks.equal("user", "nobody", result.out.split()[0])
    os.chmod(case.folder, 0o777)
    result = case.trace("threads", "1", "2", options=["--user", "nobody", "--env", "SAMPLE_*",
                                                         "--env", "SIMCUDA_*"], name="calls")
    checks.everything(result)


def test_children_by_vfork_and_posix_spawn(case):
    program = Places.program("threads")
    script = ("import os, subprocess; subprocess.run(['%s', '1', '2'], check=True); "
              "os.waitpid(os.posix_spawn('%s', ['threads', '2', '1'], os.environ), 0)" % (program, program))
    result = case.trace("/usr/bin/python3", "-c", script)
    checks.everything(result)
    checks.equal("processes", 2, len(result.counts.pids()))


def test_interrupt_from_the_terminal_ends_both(case):
    """Ctrl-C goes to the whole foreground group; what the command did is summed up."""
    process = case.start_trace([], ["--", Places.program("loop"), "30"], stdin=subprocess.PIPE,
                               start_new_session=True)
    ready(process)
    os.killpg(process.pid, signal.SIGINT)
    result = case.result(process, seconds=10)
    checks.equal("status", 128 + signal.SIGINT, result.status)
    checks.valid(result)
    if result.summary["launches"]["kernels"] < 1:
        raise Failure("no launches")


def test_interrupt_of_a_command_that_ignores_it_ends_the_trace_all_the_same(case):
    process = case.start_trace([], ["--", "/bin/sh", "-c", "trap '' INT; echo ready; sleep 5; exit 4"],
                               start_new_session=True)
    wait_until(lambda: "ready" in process.out(), "the command")
    os.killpg(process.pid, signal.SIGINT)
    wait_until(lambda: os.path.exists(case.path("trace.json")), "the summary", 4)
    result = case.result(process, seconds=10)
    checks.valid(result)
    checks.equal("status of the command", 4, result.status)


def test_setuid_programs_keep_their_rights(case):
    """Linux takes them from programs that are traced by ptrace without privilege."""
    path = case.path("setuid-id")
    shutil.copy("/usr/bin/id", path)
    os.chmod(path, 0o4755)
    bare = case.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", path, "-u")
    bare.wait()
    if bare.out().strip() != "0":
        raise Skip("setuid does not work on this file system")
    result = case.trace(path, "-u", options=["--user", "nobody"])
    checks.equal("effective user", "0", result.out.split()[0])


def test_a_command_that_uses_ptrace_itself(case):
    """A debugger cannot trace what cuscope holds: --no-hold lets it."""
    result = case.trace("/usr/bin/strace", "-f", "-o", case.path("strace"), Places.program("loop"), "2",
                        options=["--no-hold"])
    checks.valid(result)
    with open(case.path("strace")) as file:
        checks.contains("strace saw it all", "exit_group\\(0\\)", file.read())
