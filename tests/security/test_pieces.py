# SPDX-License-Identifier: MIT
"""Files of many pieces, which the kernel takes long to free. Whoever closes a deleted one last frees it, and who reads
pages of one waits while a hole is punched into it; SIGKILL ends neither."""

import os
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, links_of, wait_until

NOBODY = "65534"
LEAST = 4       # seconds that a file system has to take, or nothing is seen here
MOST = 640000   # pieces


def as_nobody(*command):
    return ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", *command)


def copy_of(case, source, name):
    path = case.path(name)
    shutil.copy(source, path)
    os.chown(path, int(NOBODY), int(NOBODY))
    os.chmod(path, 0o700)
    return path


def pieces_for(case):
    """As many as take long enough where the tests have their files."""
    n = 20000
    while n <= MOST:
        path = copy_of(case, "/dev/null", "measured")
        done = subprocess.run(as_nobody(Places.program("hostile-pieces"), "free", path, str(n)), check=True,
                              capture_output=True, text=True)
        took = float(done.stdout.split()[1])
        if took >= LEAST:
            return n
        n = int(n * min(4, max(1.5, 1.2 * LEAST / max(took, 0.001))))
    raise Skip(f"{MOST} pieces are freed in less than {LEAST} s here")


def begin(case):
    path = case.path("recorded")
    trace = case.cuscope("record", "--all", "--stacks", "-o", path)
    wait_until(lambda: os.path.exists(path), "the recording")
    time.sleep(2)
    return trace


def end(process, since):
    """Two signals end it within a second or two, whatever the kernel has to do yet."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        if process.process.poll() is None:
            process.signal(number)
        time.sleep(0.2)
    process.wait(120)
    seconds = time.monotonic() - since
    if seconds > LEAST - 1:
        raise Failure(f"it took {seconds:.1f} s: {process.err()[-300:]}")


@alone
def test_who_closes_a_deleted_program_last_is_not_cuscope(case):
    n = pieces_for(case)
    path = copy_of(case, Places.program("hostile-floods"), "program")
    subprocess.run(as_nobody(Places.program("hostile-pieces"), "add", path, str(n)), check=True)
    trace = begin(case)
    program = case.start(*as_nobody(path, "memory", "60000"), name="program-runs")
    wait_until(lambda: path in links_of(trace.pid), "cuscope to have it open")
    os.unlink(path)
    checks.equal("status", 0, program.wait())
    end(trace, time.monotonic())


@alone
def test_a_hole_that_is_being_punched_holds_nobody_up(case):
    n = pieces_for(case)
    path = copy_of(case, Places.simcuda("push", "libcuda.so.1"), "library")
    program = case.start(*as_nobody(Places.program("hostile-pieces"), "hole", path, str(n)), name="pieces",
                         stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the file", 60)
    trace = begin(case)
    program.process.stdin.write(b"\n")
    program.process.stdin.flush()
    time.sleep(1)
    end(trace, time.monotonic())
    program.wait(120)
    if float(program.out().split()[2]) < LEAST / 2:
        raise Failure(f"it was over before: {program.out()}")
