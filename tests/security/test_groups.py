# SPDX-License-Identifier: MIT
"""Processes of which the kernel has much to tell, and takes long for it: cuscope does not wait for that with each."""

import contextlib
import glob
import os
import shutil
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until


def cpu_seconds(session):
    """Of all its processes that are there: what reads targets is one of its own."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, errors="replace") as file:
            words = file.read().rpartition(") ")[2].split()
            ticks += (int(words[11]) + int(words[12])) * (int(words[3]) == session)
    return ticks / os.sysconf("SC_CLK_TCK")


def check_trace(case, hostile, *options, cpu):
    """Of 3 seconds: how much of a processor it takes, however busy the machine is."""
    begin, used = time.monotonic(), 0
    trace = case.cuscope("trace", "--duration", "3s", *options, "-o", case.path("t.jsonl"), "--name", "hostile-groups",
                         start_new_session=True)
    while trace.process.poll() is None and time.monotonic() - begin < 120 and used <= cpu:
        used = max(used, cpu_seconds(trace.pid))
        time.sleep(0.1)
    if used > cpu:
        raise Failure(f"it takes {used} s of a processor and more")
    checks.equal("status", 0, trace.wait(1))
    hostile.process.stdin.close()
    hostile.process.stdin = None
    checks.equal("status of the processes", 0, hostile.wait())


@alone
def test_groups_without_number_cost_nothing(case):
    """300 processes with 65,536 each, of which 30 ms are told each time: to begin, to look each second at which are there, and to end."""
    hostile = case.program("hostile-groups", 65536, 300, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in hostile.out(), "the processes")
    check_trace(case, hostile, cpu=4)


@alone
def test_groups_of_descriptors_cost_a_part_of_the_time(case):
    """24 processes with 19,900 each, which take half a second to tell."""
    folder = case.path("folder")
    os.mkdir(folder)
    try:
        hostile = case.program("hostile-groups", "descriptors", 24, stdin=subprocess.PIPE, cwd=folder)
        wait_until(lambda: "ready" in hostile.out() or hostile.process.poll() is not None, "the processes")
        if "ready" not in hostile.out():
            raise Skip(f"so many descriptors cannot be had: {hostile.err()}")
        check_trace(case, hostile, "--gpu", cpu=7)
    finally:
        shutil.rmtree(folder)
