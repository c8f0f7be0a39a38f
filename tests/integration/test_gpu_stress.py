# SPDX-License-Identifier: MIT
"""GPU times, again and again: agents that come and go, and deaths at any moment. GPU_ROUNDS sets how
often (10 times without it; make stress-gpu: 1000)."""

import glob
import os
import random
import re
import signal
import subprocess
import time

import checks
import gpu_trace
from harness import Failure, Places, alone, wait_until

ROUNDS = int(os.environ.get("GPU_ROUNDS", "10"))


def footprint(pid):
    """What a process has: descriptors, threads, executable mappings."""
    with open(f"/proc/{pid}/maps") as maps:
        mapped = [line for line in maps if " r-xp " in line and "/" in line]
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": len(os.listdir(f"/proc/{pid}/task")), "code": len(mapped)}


def settled(pid):
    """What it has when cuscope is gone: an agent's thread ends some time later."""
    seen = [footprint(pid)]

    def still():
        time.sleep(0.3)
        seen.append(footprint(pid))
        return seen[-1] == seen[-2]
    wait_until(still, "what the program has to stay as it is")
    return seen[-1]


def start_loop(case, name=None):
    program = case.program("gpuloop", 600, 20, 2, stdin=subprocess.PIPE, name=name)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    return program


def attach(case, program, *options, name="trace"):
    return case.cuscope("record", "--force", "-o", case.path(name + ".cuscope"), "--gpu", "--cupti",
                        Places.simcuda("libcupti.so.13"), "-p", program.pid, *options)


def enter_and_leave(case, program):
    process = attach(case, program)
    gpu_trace.measures(process)
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait())


def attachers():
    """The processes by which cuscope enters others."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path) as comm:
                ours = os.readlink(os.path.dirname(path) + "/exe") == Places.cuscope()
                if comm.read().startswith("cuscope-attach") and ours:
                    found.add(path)
        except OSError:
            pass
    return found


def leftovers():
    return set(glob.glob("/tmp/cuscope-agent.*") + glob.glob("/run/cuscope/[!a]*") +
               glob.glob("/var/tmp/cuscope-agent.*"))


@alone
def test_gpu_stress_attach_and_detach(case):
    """A program under load is entered and left many times, and has nothing more after the last than
    after the first."""
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    program = start_loop(case)
    sizes = []
    for i in range(ROUNDS):
        process = attach(case, program)
        gpu_trace.measures(process)
        process.signal(signal.SIGINT)
        checks.equal(f"status of round {i}", 0, process.wait())
        if program.process.poll() is not None:
            raise Failure(f"the program ended in round {i}: {program.err()}")
        if i in (1, ROUNDS - 1):
            sizes.append(settled(program.pid))
    checks.equal("what it has", sizes[0], sizes[-1])
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())


@alone
def test_gpu_stress_kill_cuscope(case):
    """Killed at any moment, cuscope leaves a program that runs as before, and nothing else."""
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    random.seed(1)
    before, program = leftovers(), start_loop(case)
    enter_and_leave(case, program)
    size = settled(program.pid)
    for i in range(ROUNDS):
        process = attach(case, program)
        time.sleep(random.uniform(0, 0.25))
        process.signal(signal.SIGKILL)
        process.wait()
        if program.process.poll() is not None:
            raise Failure(f"the program ended in round {i}: {program.err()}")
    wait_until(lambda: not attachers(), "the processes that enter others to end")
    for what in ("threads", "descriptors"):
        wait_until(lambda w=what: footprint(program.pid)[w] == size[w], f"{size[what]} {what}")
    enter_and_leave(case, program)
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())
    checks.equal("files that were left", before, leftovers())


@alone
def test_gpu_stress_kill_the_program(case):
    """A program that is killed at any moment ends its trace, whatever was under way."""
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    random.seed(2)
    for i in range(ROUNDS // 2):
        program = start_loop(case, name=f"program{i}")
        process = attach(case, program)
        time.sleep(random.uniform(0, 0.25))
        program.signal(signal.SIGKILL)
        program.wait()
        gone = "there is no process|has ended|it ended before its agent measured"
        if process.wait(20) and not re.search(gone, process.err()):
            raise Failure(f"round {i}: {process.err()}")
    wait_until(lambda: not attachers(), "the processes that enter others to end")


@alone
def test_gpu_stress_kill_both(case):
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    random.seed(3)
    for i in range(ROUNDS // 2):
        process = case.cuscope("record", "--force", "-o", case.path("trace.cuscope"), "--gpu", "--cupti",
                               Places.simcuda("libcupti.so.13"), "--", Places.program("gpuloop"), "600",
                               "20", "2", stdin=subprocess.PIPE, name=f"both{i}")
        time.sleep(random.uniform(0.05, 0.4))
        process.signal(signal.SIGKILL)
        process.wait()
        process.process.stdin.close()  # the command's input ends, too, and so does the command

    def alive():
        return [pid for pid in gpu_trace.running("gpuloop") if case.folder in pid[1]]
    wait_until(lambda: not alive(), "the commands to end", seconds=20)
    wait_until(lambda: not attachers(), "the processes that enter others to end")
