# SPDX-License-Identifier: MIT
"""Processes with as many mappings as the kernel allows, each of which makes looks at them take long: cuscope ends in time all
the same, with what others did."""

import os
import signal
import subprocess
import tempfile
import time

import checks
from harness import Failure, Places, alone, wait_until

MAPPINGS = 60000
LIMIT = 25  # seconds, on a machine that does other things as well
USER = 1234


def hostile(case, what, folder, count=1):
    env = case.environment()
    env.pop("SAMPLE_COUNTS", None)  # a file of root's
    return [case.start("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups",
                       Places.program("hostile-mappings"), what, str(MAPPINGS), os.path.join(folder, str(i)),
                       name=f"hostile-{i}", stdin=subprocess.PIPE, env=env) for i in range(count)]


def traced_meanwhile(case, what, count):
    """The recording of all, in which they begin."""
    path = case.path("all.cuscope")
    victim = case.start(Places.program("loop"), "100", "100", name="victim", stdin=subprocess.PIPE)
    with tempfile.TemporaryDirectory(prefix="cuscope-", dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        process = case.cuscope("record", "--all", "-o", path)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path), "the recording to begin", 60)
        attackers = hostile(case, what, folder, count)
        wait_until(lambda: all("ready" in attacker.out() for attacker in attackers), "them to have mapped", 60)
        time.sleep(4)
        begin = time.monotonic()
        process.signal(signal.SIGINT)
        status = process.wait(100)
        took = time.monotonic() - begin
        for attacker in attackers:
            attacker.process.stdin.close()
    checks.equal(f"status ({process.err()})", 0, status)
    if took > LIMIT:
        raise Failure(f"it took {took:.0f} s to end: {process.err()}")
    info = case.cuscope("info", path)
    info.wait()
    checks.contains("who was traced", rf"{victim.pid} +loop", info.out())
    return info.out()


@alone
def test_one_file_that_is_mapped_without_end(case):
    traced_meanwhile(case, "same", 2)


@alone
def test_files_that_change_each_time_they_are_mapped(case):
    said = traced_meanwhile(case, "new", 1)
    checks.contains("what was missed", "could be looked into|has taken too long", said)
