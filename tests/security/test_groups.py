# SPDX-License-Identifier: MIT
"""Processes with 65,536 groups: what the kernel tells of one of them can take 30 ms, and cuscope asks for other things."""

import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / 100


@alone
def test_groups_without_number_cost_nothing(case):
    """300 processes: to begin, to look each second at which are there, and to end."""
    hostile = case.program("hostile-groups", 65536, 300, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in hostile.out(), "the processes")
    begin = time.monotonic()
    trace = case.cuscope("trace", "--duration", "3s", "-o", case.path("t.jsonl"), "-p", hostile.pid)
    used = 0
    while trace.process.poll() is None and time.monotonic() - begin < 60:
        used = max(used, cpu_seconds(trace.pid))
        time.sleep(0.1)
    checks.equal("status", 0, trace.wait(1))
    if time.monotonic() - begin > 8:
        raise Failure(f"it took {time.monotonic() - begin:.1f} s")
    if used > 3:
        raise Failure(f"it took {used} s of a processor")
    hostile.process.stdin.close()
    hostile.process.stdin = None
    checks.equal("status of the processes", 0, hostile.wait())
