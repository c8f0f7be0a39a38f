# SPDX-License-Identifier: MIT
"""The second signal ends cuscope within a second, whatever its loop hangs in."""

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import checks
from harness import Failure, Places, wait_until

LIMIT = 2  # seconds: one, and that of a busy machine
EXITING = 0x4  # PF_EXITING in /proc/PID/stat


def waits_for_room(pid):
    """Ten times in a row, and not in the loop, which waits by epoll."""
    for _ in range(10):
        with open(f"/proc/{pid}/wchan") as wchan:
            where = wchan.read()
        if "poll_schedule" not in where and "pipe_write" not in where:
            return False
        time.sleep(0.03)
    return True


def is_full(pipe):
    """As who writes to it sees it: its pages are taken, whether they are full or not."""
    writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


def hang(case, *target, **options):
    """A trace into a pipe that nobody reads from; and that pipe."""
    path = case.path("pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    trace = case.cuscope("trace", "--format", "jsonl", "-o", path, *target, **options)
    wait_until(lambda: trace.process.poll() is not None or is_full(path) and waits_for_room(trace.pid), "the hang", 60)
    return trace, reader


def is_ending(process):
    """What it has open the kernel takes away then: probes by grace periods, seconds on a busy machine."""
    if process.process.poll() is not None:
        return True
    with open(f"/proc/{process.pid}/stat") as stat:
        words = stat.read().rpartition(") ")[2].split()
    return words[0] in "ZX" or int(words[6]) & EXITING


def ends_at_the_second(trace, first, second):
    trace.signal(first)
    time.sleep(1.5)
    if trace.process.poll() is not None:
        raise Failure("it did not hang")
    begin = time.monotonic()
    trace.signal(second)
    wait_until(lambda: is_ending(trace), "it hangs beyond two signals")
    took = time.monotonic() - begin
    if took > LIMIT:
        raise Failure(f"it took {took:.1f} s")
    checks.equal("status", -second, trace.wait())


def goes_on(target):
    before = len(target.out())
    wait_until(lambda: len(target.out()) > before, "the target to go on")


def test_a_loop_that_hangs_ends_at_the_second_signal(case):
    target = case.program("gpuloop", "60", "20", "1", name="target", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in target.out(), "the target")
    trace, reader = hang(case, "-p", str(target.pid))
    ends_at_the_second(trace, signal.SIGINT, signal.SIGINT)
    goes_on(target)
    target.stop()
    os.close(reader)


def test_a_loop_that_hangs_ends_at_two_kinds_of_signals_and_its_command_goes_on(case):
    trace, reader = hang(case, "--", Places.program("gpuloop"), "60", "20", "1", stdin=subprocess.PIPE)
    with open(f"/proc/{trace.pid}/task/{trace.pid}/children") as file:
        children = file.read().split()
    ends_at_the_second(trace, signal.SIGINT, signal.SIGTERM)
    goes_on(trace)
    os.close(reader)
    for child in children:
        os.kill(int(child), signal.SIGKILL)


class Stuck:
    """A pipe in which there is no room, and which nobody reads."""

    def __init__(self):
        self.reader, self.writer = os.pipe()

    def fill(self):
        flags = fcntl.fcntl(self.writer, fcntl.F_GETFL)
        fcntl.fcntl(self.writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        for size in (4096, 1):
            try:
                while os.write(self.writer, b"x" * size):
                    pass
            except BlockingIOError:
                pass
        fcntl.fcntl(self.writer, fcntl.F_SETFL, flags)

    def cuscope(self, case, *arguments):
        return case.cuscope(*arguments, preexec_fn=lambda: os.dup2(self.writer, 2))

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


def test_what_hangs_before_the_loop_ends_at_the_second_signal(case):
    """The node agent says something while it attaches."""
    stuck = Stuck()
    stuck.fill()
    agent = stuck.cuscope(case, "agent", "--listen", "127.0.0.1:19456")
    wait_until(lambda: agent.process.poll() is not None or waits_for_room(agent.pid), "the hang", 60)
    ends_at_the_second(agent, signal.SIGTERM, signal.SIGTERM)
    stuck.close()


def test_what_hangs_after_the_loop_ends_at_the_second_signal(case):
    """What is said at the end of a trace."""
    target = case.start("sleep", "60")
    stuck = Stuck()
    trace = stuck.cuscope(case, "trace", "-p", target.pid)
    said = b""
    while b"waiting for it" not in said:
        said += os.read(stuck.reader, 4096)
    stuck.fill()
    ends_at_the_second(trace, signal.SIGINT, signal.SIGINT)
    stuck.close()
    target.signal(signal.SIGKILL)


FORKS = """
import ctypes, os, signal, sys
for path in sys.argv[2:]:
    ctypes.CDLL(path)
libc = ctypes.CDLL(None)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        signal.pause()
print("forked", flush=True)
signal.pause()
"""


def test_nobody_waits_for_probes_in_children_that_were_forked_later(case):
    """Taking them away takes far longer than putting them there, into one process, did."""
    copies = []
    for i in range(20):
        copies.append(case.path(f"copy{i}/libcuda.so.1"))
        os.makedirs(os.path.dirname(copies[-1]))
        shutil.copy(Places.simcuda("push", "libcuda.so.1"), copies[-1])
    target = case.start(sys.executable, "-c", FORKS, "500", *copies, name="target", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in target.out(), "the target", 60)
    trace = case.start_trace(["--no-in-process"], ["-p", target.pid])
    case.attached(trace)
    target.process.stdin.write(b"\n")
    target.process.stdin.flush()
    wait_until(lambda: "forked" in target.out(), "children", 60)
    trace.signal(signal.SIGTERM)
    time.sleep(0.3)
    begin = time.monotonic()
    trace.signal(signal.SIGTERM)
    trace.wait(60)
    took = time.monotonic() - begin
    target.signal(signal.SIGKILL)
    if took > LIMIT + 1:
        raise Failure(f"it took {took:.1f} s")
