# SPDX-License-Identifier: MIT
"""cuscope is killed at any moment while it diverts functions of a program, records inside, or puts them back.

The program makes the same calls all the time and ends where one of them does not answer as it should. KILL_ROUNDS sets how often (make
stress-divert: 100).
"""

import json
import os
import random
import signal
import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until
from test_in_process import is_inside, text_of, told_inside

ROUNDS = int(os.environ.get("KILL_ROUNDS", "10"))
BREAKPOINT = 0xcc

# The kernel takes its own breakpoints away one after the other when it gets to it, which can take a minute.
JUMPS_SECONDS, BREAKPOINTS_SECONDS = 1, 120


def differences(program):
    """(bytes that a kernel's breakpoint explains, other bytes) in which the driver's code is not that of its file."""
    memory, file = text_of(program, "libcuda.so.1")
    changed = [byte for byte, was in zip(memory, file) if byte != was]
    return sum(byte == BREAKPOINT for byte in changed), sum(byte != BREAKPOINT for byte in changed)


def put_back(program, seconds):
    """Seconds until no jump is left."""
    begin = time.monotonic()
    wait_until(lambda: not differences(program)[1], f"the jumps to be gone {seconds} s after the kill", seconds)
    return time.monotonic() - begin


def kill_once(case, program, moment, name):
    """Kills it while it diverts, while it records, or while it puts back. Whether functions were diverted then."""
    trace = case.cuscope("trace", "--in-process", "--summary-only", "-p", program.pid, name=name)
    if moment == 0:
        time.sleep(random.uniform(0, 0.3))
    else:
        is_inside(trace)
    if moment == 1:
        time.sleep(random.uniform(0, 0.05))
    if moment == 2:
        trace.signal(signal.SIGINT)
        time.sleep(random.uniform(0, 0.01))
    diverted = differences(program)[1] > 0
    trace.signal(signal.SIGKILL)
    trace.wait()
    return diverted


def goes_on(program):
    if program.process.poll() is not None:
        raise Failure(f"the program ended: {program.err()}")


def kills(case, shape, seed):
    random.seed(seed)
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)
    program = case.program("loop", 3600, 1000, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    took = []
    for number in range(ROUNDS):
        diverted = kill_once(case, program, number % 3, f"trace{number}")
        took.append((diverted, put_back(program, JUMPS_SECONDS)))
        goes_on(program)
    wait_until(lambda: differences(program) == (0, 0), "the code to be as in the file", BREAKPOINTS_SECONDS)
    last = case.start_trace(["--in-process"], ["-p", program.pid], "last")
    is_inside(last)
    last.signal(signal.SIGINT)
    result = case.result(last, "last")
    checks.valid(result)
    checks.equal("processes inside afterwards", 1, told_inside(result.err)[2])
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())
    with open(case.path("kills.json"), "w") as file:
        json.dump({"kills": len(took), "while diverted": sum(was for was, _ in took),
                   "longest ms": round(1000 * max(seconds for _, seconds in took), 1)}, file)


@alone
def test_stress_divert_cuscope_is_killed_where_jumps_lie_behind_probes(case):
    kills(case, "push", 1)


@alone
def test_stress_divert_cuscope_is_killed_where_jumps_lie_before_probes(case):
    kills(case, "stub", 2)
