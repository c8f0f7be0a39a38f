# SPDX-License-Identifier: MIT
"""Each call is told once while a process is diverted, whatever becomes of cuscope-divert, which does that: threads may go on long
before its answer comes, or without one.

The program waits until its probes are attached. From then on it counts, and all of its calls are compared.
"""

import os
import random
import signal
import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until
from test_in_process import is_inside, told_inside

NAMES = ("cuMemAlloc_v2", "cuLaunchKernel", "cuMemFree_v2")


def helper(pid):
    """The process that diverts for the trace of a process."""
    for entry in os.listdir("/proc"):
        try:
            if not entry.isdigit() or open(f"/proc/{entry}/comm").read() != "cuscope-divert\n":
                continue
            if str(pid) in open(f"/proc/{entry}/cmdline").read().split("\0"):
                return int(entry)
        except OSError:  # it has ended
            pass
    raise Failure("no process diverts for it")


class Code:
    """The driver's, as it is once probes are in it: what changes then are jumps."""

    def __init__(self, program):
        with open(f"/proc/{program.pid}/maps") as maps:
            start, end = next(line.split()[0] for line in maps if "libcuda" in line and " r-xp " in line).split("-")
        self.at, self.bytes = int(start, 16), int(end, 16) - int(start, 16)
        self.memory = os.open(f"/proc/{program.pid}/mem", os.O_RDONLY)
        self.before = self.read()

    def read(self):
        return os.pread(self.memory, self.bytes, self.at)

    def until_it_changes(self):
        """Within a fraction of a millisecond: not long after that the answer comes."""
        end = time.monotonic() + 10
        while self.read() == self.before:
            if time.monotonic() > end:
                raise Failure("no jump was written in 10 s")
        os.close(self.memory)


def helpers_of(first):
    """What it has started: one, while it works."""
    with open(f"/proc/{first}/task/{first}/children") as children:
        return children.read().split()


def begin(case, name, shape="push"):
    """A program that has done cuInit, and a trace of it with probes."""
    if os.path.exists(case.path("counts")):
        os.unlink(case.path("counts"))  # an earlier program's
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)
    case.env["SAMPLE_WAIT"] = case.path(f"go {name}")
    program = case.program("loop", 30, 1000, stdin=subprocess.PIPE)
    wait_until(lambda: "libcuda" in open(f"/proc/{program.pid}/maps").read(), "the driver")
    time.sleep(0.3)  # cuInit
    trace = case.start_trace(["--in-process"], ["-p", str(program.pid)], name)
    case.attached(trace)
    return program, trace


def go(case, name):
    open(case.path(f"go {name}"), "w").close()


def end(case, program, trace, name):
    time.sleep(0.3)
    program.process.stdin.close()
    program.wait()
    return case.result(trace, name)


def each_once(result):
    checks.valid(result)
    made = {checks.ALIASES.get(name, name): n for name, n in result.counts.of("calls").items() if name in NAMES}
    told = result.names()
    checks.differences("calls", made, {name: told[name] for name in made})
    checks.equal("calls within others", 0, len(result.calls(nested=True)))


def test_each_call_is_told_once_though_the_answer_is_late(case):
    """As on a machine with other work: some calls began 0.6 s before cuscope heard of the jumps."""
    program, trace = begin(case, "late")
    first = helper(program.pid)
    code = Code(program)
    go(case, "late")
    code.until_it_changes()
    os.kill(first, signal.SIGSTOP)
    time.sleep(0.6)
    os.kill(first, signal.SIGCONT)
    is_inside(trace)
    result = end(case, program, trace, "late")
    each_once(result)
    checks.nothing_missed(result)
    if told_inside(result.err)[0] < 500:
        raise Failure(f"few calls were recorded inside: {result.err}")


def test_each_call_is_told_once_though_no_answer_comes(case):
    for shape in ("push", "stub"):
        program, trace = begin(case, shape, shape)
        first = helper(program.pid)
        code = Code(program)
        go(case, shape)
        code.until_it_changes()
        os.kill(first, signal.SIGKILL)  # what it has started goes with it
        wait_until(lambda: "the process cuscope-divert was killed" in trace.err(), "its end to be noticed")
        result = end(case, program, trace, shape)
        each_once(result)
        checks.nothing_missed(result)
        if "probes told of all" not in result.err:  # no call was made between the first jump and the end of that
            told_inside(result.err)


@alone
def test_each_call_is_told_once_at_whichever_moment_who_diverts_is_killed(case):
    for number in range(8):
        name = f"moment {number}"
        program, trace = begin(case, name)
        first = helper(program.pid)
        go(case, name)
        end_of_look = time.monotonic() + 10
        while len(helpers_of(first)) == 0 and time.monotonic() < end_of_look:
            pass
        time.sleep(random.uniform(0, 0.004))
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: "the process cuscope-divert was killed" in trace.err(), "its end to be noticed")
        result = end(case, program, trace, name)
        if result.summary["missed"]["complete"]:
            each_once(result)
        program.stop()
