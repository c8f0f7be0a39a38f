# SPDX-License-Identifier: MIT
"""A process whose exec is never over: the kernel shows little of it to anybody, and makes who asks wait.

It executes a program, has a file of FUSE open that is closed by that, and whose server does not answer. No
right is needed for it."""

import contextlib
import os
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until
from node import Node
from test_hang import check_locked_mappings

LIMIT = 25  # seconds: the server ends later
SERVED = 60


@contextlib.contextmanager
def server(case):
    """The path of its file."""
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse")
    folder, content = case.path("mount"), case.path("content")
    os.makedirs(folder)
    with open(content, "w") as file:
        file.write("nothing")
    process = case.program("hostile-fuse", folder, content, SERVED, 1234, -2, name="server")
    try:
        wait_until(lambda: "ready" in process.out() or process.process.poll() is not None, "the server")
        if "ready" not in process.out():
            raise Skip(f"FUSE cannot be mounted here: {process.err()}")
        yield os.path.join(folder, "file")
    finally:
        process.process.kill()  # before anybody looks for what runs here, and waits for it
        process.process.wait()
        subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL, check=False)


def executes(case, file, name="executes"):
    """A process of a user's that is in its exec from now on."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS")
    process = case.start("setpriv", "--reuid", "1234", "--clear-groups", Places.program("hostile-execs"),
                         file, name=name, env=env)

    def is_in_it():
        reads = subprocess.run(["timeout", "-s", "KILL", "0.5", "cat", f"/proc/{process.pid}/maps"], check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return reads.returncode in (-signal.SIGKILL, 137) and process.process.poll() is None
    wait_until(is_in_it, "its exec")
    return process


def ended(process):
    """Its status. Where it hangs it is killed: what it waits for can be."""
    try:
        return process.process.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.signal(signal.SIGKILL)
        raise Failure(f"cuscope hangs: {process.err()}") from None


@alone
def test_an_exec_that_is_never_over_holds_up_no_recording(case):
    """Of all processes: that one is told of, and the calls of another are there."""
    path = case.path("all.cuscope")
    with server(case) as file:
        executes(case, file)
        victim = case.start(Places.program("loop"), "100", "100", name="victim", stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in victim.out(), "the other one")
        checks.equal("status", 0, ended(case.cuscope("record", "--all", "--duration", 2, "-o", path)))
    info = case.cuscope("info", path)
    info.wait()
    checks.contains("who was traced", rf"{victim.pid} +loop", info.out())
    checks.contains("what is told", "could not be read within", info.out())


@alone
def test_an_exec_that_begins_meanwhile_holds_up_no_recording(case):
    """Of a target that is known, with samples, and who waits for whom."""
    path = case.path("all.cuscope")
    with server(case) as file:
        process = case.cuscope("record", "--all", "--stacks", "--host-waits", "--duration", 4, "-o", path)
        time.sleep(2)
        executes(case, file)
        checks.equal("status", 0, ended(process))


@alone
def test_an_exec_of_who_a_target_waits_for_holds_up_no_recording(case):
    """It begins while who that is is looked at, and whether the target could do so as well."""
    path = case.path("waker.cuscope")
    with server(case) as file:
        target = case.program("hostile-execs", file, "wakers", 20, name="target", stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in target.out() or target.process.poll() is not None, "the target", 60)
        process = case.cuscope("record", "-p", target.pid, "--stacks", "--host-waits", "--duration", 12, "-o", path)
        time.sleep(2)
        target.process.stdin.write(b"\n")
        target.process.stdin.flush()
        try:
            checks.equal("status", 0, ended(process))
        finally:
            target.process.kill()


@alone
def test_an_exec_that_is_never_over_keeps_nobody_from_being_recorded_inside(case):
    """What writes into a process asks who else has its memory: of all processes, one by one."""
    path = case.path("inside.cuscope")
    with server(case) as file:
        executes(case, file)
        victim = case.start(Places.program("loop"), "100", "100", name="victim", stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in victim.out(), "the other one")
        process = case.cuscope("record", "--in-process", "--duration", 4, "-o", path, "-p", victim.pid)
        checks.equal("status", 0, ended(process))
        checks.contains("what is told", f"are recorded inside of process {victim.pid}", process.err())


@alone
def test_an_exec_that_is_never_over_holds_up_no_node_agent(case):
    with server(case) as file:
        executes(case, file)
        node = Node(case, "[agent]\nage = 0\ninterval = 200ms\n")
        victim = case.start(Places.program("loop"), "100", "100", name="victim", stdin=subprocess.PIPE)
        pid = str(victim.pid)
        wait_until(lambda: any(dict(labels).get("pid") == pid for _, labels in node.metrics()), "the other one", LIMIT)
        executes(case, file, "again")
        time.sleep(1.5)
        status, _, said = node.get("/healthz")[:3]
        checks.equal(f"health ({said})", 200, status)


@alone
def test_an_exec_that_is_never_over_keeps_no_mappings_locked(case):
    """Who looks for a process whose locked mappings stop the machine asks others, too."""
    with server(case) as file:
        executes(case, file)
        check_locked_mappings(case)
