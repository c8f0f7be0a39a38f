# SPDX-License-Identifier: MIT
"""How a trace ends before its command does: what becomes of the command, and of cuscope."""

import glob
import os
import signal
import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until


def hooks_of(process):
    """How many eBPF links and events cuscope still has open."""
    links = []
    for path in glob.glob(f"/proc/{process.pid}/fd/*"):
        try:
            links.append(os.readlink(path))
        except OSError:
            pass
    return sum("bpf_link" in link or "bpf-link" in link or "perf_event" in link for link in links)


def trace_that_is_over(case, *command, **options):
    """Its command runs on; cuscope waits for it."""
    trace = case.start_trace(["--duration", "100ms"], ["--", *command], **options)
    wait_until(lambda: "waiting for the command" in trace.err(), "the trace to be over")
    return trace


def test_library_loaded_after_the_trace_with_signals_blocked(case):
    """A thread that blocks SIGWINCH is held by SIGSTOP: nobody may send it one any more.

    One that is held would stay so for good: the limit is long, since closing links waits in the
    kernel for grace periods, seconds on a loaded machine.
    """
    trace = trace_that_is_over(case, Places.program("blocked"), "600")
    checks.equal("the command's status", 7, trace.wait())


def test_nothing_is_hooked_after_the_trace(case):
    trace = trace_that_is_over(case, Places.program("loop"), "2", stdin=subprocess.PIPE)
    checks.equal("hooks", 0, hooks_of(trace))
    checks.equal("the command's status", 0, trace.wait(10))


def test_nothing_is_looked_at_after_a_recording_of_stacks(case):
    """The thread that reads what targets map puts probes there by programs that are gone by then."""
    most = None
    for command in ("trace", "-o", os.devnull), ("record", "--stacks", "-o", case.path("recording.cuscope")):
        process = case.cuscope(*command, "--duration", "300ms", "--", Places.program("loop"), "30", name=command[0],
                               stdin=subprocess.PIPE)
        wait_until(lambda: "waiting for the command" in process.err(), "its end")
        tasks = f"/proc/{process.pid}/task"
        time.sleep(0.5)
        if most is not None:
            wait_until(lambda: len(os.listdir(tasks)) <= most, "all threads that a trace has none of to end", 10)
        most = len(os.listdir(tasks))
        process.process.stdin.close()
        checks.equal("the command's status", 0, process.wait(20))


def test_second_signal_leaves_the_command_running(case):
    trace = trace_that_is_over(case, "/bin/sh", "-c", "trap '' TERM; sleep 2; sleep 2; exit 3")
    trace.signal(signal.SIGTERM)
    time.sleep(0.1)
    if trace.process.poll() is not None:
        raise Failure("the first signal is the command's")
    trace.signal(signal.SIGTERM)
    checks.equal("status", 128 + signal.SIGTERM, trace.wait(5))


def test_a_second_signal_while_the_trace_ends_is_enough(case):
    """A command that heeds none has a moment to end after the first; the second, in that, leaves it running."""
    command = f"trap '' TERM; echo > {case.path('go')}; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done"
    trace = case.start_trace([], ["--", "/bin/sh", "-c", command])
    wait_until(lambda: os.path.exists(case.path("go")), "the command to run")
    time.sleep(0.5)
    trace.signal(signal.SIGTERM)
    time.sleep(0.1)
    trace.signal(signal.SIGTERM)
    checks.equal("status", 128 + signal.SIGTERM, trace.wait(5))
    checks.contains("what is said", "is left running", trace.err())


def test_first_signal_reaches_the_command(case):
    trace = trace_that_is_over(case, "/bin/sleep", "30")
    trace.signal(signal.SIGTERM)
    checks.equal("the command's status", 128 + signal.SIGTERM, trace.wait(5))


def test_nohup_outlives_the_terminal(case):
    trace = case.start("/usr/bin/nohup", Places.cuscope(), "trace", "--", "/bin/sh", "-c",
                       "sleep 1; exit 4")
    wait_until(lambda: len(os.listdir(f"/proc/{trace.pid}/task")) > 1, "the command to be held")
    time.sleep(0.2)
    trace.signal(signal.SIGHUP)
    checks.equal("the command's status", 4, trace.wait(10))


class Watched:
    """A program whose code is compared with its file's, in a few microseconds: breakpoints of an earlier trace may still be there."""

    def __init__(self, program):
        self.program = program
        self.memory = os.open(f"/proc/{program.pid}/mem", os.O_RDONLY)
        with open(f"/proc/{program.pid}/maps") as maps:
            line = next(line for line in maps if " r-xp " in line and "libcuda.so" in line)
        self.start, end = (int(word, 16) for word in line.split()[0].split("-"))
        self.bytes = end - self.start
        with open(f"/proc/{program.pid}/map_files/{line.split()[0]}", "rb") as file:
            file.seek(int(line.split()[2], 16))
            self.before = file.read(self.bytes)

    def code(self):
        return os.pread(self.memory, self.bytes, self.start)

    def changed(self):
        return self.code() != self.before


@alone  # another trace's breakpoints would be seen
def test_signal_while_probes_are_put_into_processes(case):
    """Cuscope ends by it, and the kernel has taken all of them away, rather than left some for good."""
    programs = [case.program("loop", 60, 10, stdin=subprocess.PIPE) for _ in range(12)]
    for program in programs:
        wait_until(lambda: "ready" in program.out(), "the program")
    watched = [Watched(program) for program in programs]
    wait_until(lambda: not any(one.changed() for one in watched), "the code to be as in the file", 60)
    pids = ",".join(str(program.pid) for program in programs)
    for turn, number in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGINT)):
        trace = case.start_trace([], ["-p", pids], f"trace{turn}")
        while not watched[0].changed() and not watched[-1].changed():
            if trace.process.poll() is not None:
                raise Failure(f"no probe was seen: {trace.err()}")
        trace.signal(number)
        status = trace.wait(60)
        if status not in (0, -number):
            raise Failure(f"status {status}: {trace.err()}")
        wait_until(lambda: not any(one.changed() for one in watched), "breakpoints to go", 60)
    for one in watched:
        os.close(one.memory)
