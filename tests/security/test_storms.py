# SPDX-License-Identifier: MIT
"""Users who have a tracer look into as much as their processors can make: it ends in time all the same, with what others did."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until

STORMS = 2   # processes: as many as this machine has processors at least
SECONDS = 4
LIMIT = 12   # to end, by one signal


def storm(case, which, *options):
    """Of another user's calls nothing is missed."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS")  # a file of root's
    target = {"maps": case.path("files"), "names": "loopy", "programs": "/bin/true"}[which]
    os.makedirs(case.path("files"))
    os.chmod(case.path("files"), 0o777)
    process = case.start_trace([*options])
    first = case.start(Places.program("loop"), "100", "50", name="first", stdin=subprocess.PIPE, env=env)
    trace = case.path("trace.jsonl")
    wait_until(lambda: os.path.exists(trace) and os.path.getsize(trace), "the trace to have its calls", 30)
    first.process.stdin.close()
    victim = case.start(Places.program("loop"), "100", "50", name="victim", stdin=subprocess.PIPE)
    storms = [case.start("setpriv", "--reuid", str(1234 + i), "--regid", "1234", "--clear-groups",
                   Places.program("hostile-storms"), which, str(SECONDS + LIMIT), target, name=f"storm-{i}", env=env)
              for i in range(STORMS)]
    wait_until(lambda: all("ready" in storm.out() for storm in storms), "the storms to begin")
    time.sleep(SECONDS)
    victim.process.stdin.close()
    victim.wait()
    begin = time.monotonic()
    process.signal(signal.SIGINT)
    result = case.result(process)
    took = time.monotonic() - begin
    checks.equal(f"status ({result.err})", 0, result.status)
    if took > LIMIT:
        raise Failure(f"it took {took:.1f} s to end")
    told, made = result.names(pid=victim.pid), result.counts.of("calls")
    checks.equal("the victim's launches", made["cuLaunchKernel"], told["cuLaunchKernel"])
    checks.equal("the victim's allocations", made["cuMemAlloc_v2"], told["cuMemAlloc_v2"])


@alone
def test_new_files_mapped_as_fast_as_can_be(case):
    storm(case, "maps", "--all")


@alone
def test_processes_that_take_a_wanted_name_and_end(case):
    storm(case, "names", "--name", "loop*")


@alone
def test_the_last_part_of_a_recording_is_shared_by_users(case):
    """One user's flood of calls pushes nothing of another's out of what --last holds, and that is told."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS")
    process = case.cuscope("record", "--name", "[gl][po][uo][lp]*", "--last", "200k", "--no-stacks", "-o",
                           case.path("last.cuscope"))
    wait_until(lambda: "waiting for it" in process.err(), "the recording")

    def as_user(uid, name, *words):
        return case.start("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *words, name=name,
                          stdin=subprocess.PIPE, env=env)

    victim = as_user(1235, "victim", Places.program("loop"), "60", "50")
    wait_until(lambda: "ready" in victim.out(), "the victim", 30)
    time.sleep(1)
    flood = as_user(1234, "flood", Places.program("gpuloop"), "60", "100", "2")
    time.sleep(5)
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait(30))
    told = json.loads(subprocess.run([Places.cuscope(), "info", "--json", case.path("last.cuscope")], check=True,
                                     stdout=subprocess.PIPE).stdout)
    calls = {one["pid"]: one["calls"] for one in told["processes"]}
    if calls.get(victim.pid, 0) < 3 * (told["duration_ns"] / 1e9 - 1) * 10 or told["duration_ns"] < 5e9:
        raise Failure(f"of {told['duration_ns']} ns of the victim's {calls.get(victim.pid, 0)} calls are held")
    checks.contains("what is told", "user 1234: only the last", json.dumps(told["missed"]))
    checks.equal("the flood's process is in it", True, calls.get(flood.pid, 0) > 100)


THREADS = 8500  # the programs have room for 8,192


@alone
def test_threads_of_one_user_leave_room_for_others(case):
    """All there is room for, asleep after a call each: another user's thread is seen all the same."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS")
    process = case.start_trace(["--name", "[hl]o[so][tp]*"])
    storm = case.start("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", Places.program("hostile-storms"),
                       "threads", "60", str(THREADS), name="storm", env=env)
    wait_until(lambda: "ready" in storm.out(), "its threads", 60)
    victim = case.start("setpriv", "--reuid", "1235", "--regid", "1235", "--clear-groups", Places.program("loop"), "60", "50",
                        name="victim", stdin=subprocess.PIPE, env=env)
    wait_until(lambda: "ready" in victim.out() or victim.process.poll() is not None, "the victim", 30)
    time.sleep(2)
    victim.process.stdin.close()
    victim.wait()
    process.signal(signal.SIGINT)
    result = case.result(process)
    checks.equal(f"status ({result.err})", 0, result.status)
    if not result.summary["missed"]["lost"]["threads_full"]:
        raise Failure("the storm had room for all of its threads")
    if not result.names(pid=victim.pid)["cuLaunchKernel"]:
        raise Failure("no launch of the victim was seen")


CHILDREN = 17000  # there is room for 16,384 targets


def check_children(case, before):
    """There or not when the recording begins."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS")
    options = ["--name", "[hl]o[so][tp]*"]
    process = case.start_trace(options) if before else None
    wait_until(lambda: not before or "waiting for it" in process.err(), "the recording", 30)
    storm = case.start("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", Places.program("hostile-storms"),
                       "children", "100", str(CHILDREN), name="storm", env=env)
    wait_until(lambda: "ready" in storm.out(), "its processes", 60)
    process = process or case.start_trace(options)
    wait_until(lambda: "waiting for it" in process.err(), "the recording", 60)
    victim = case.start("setpriv", "--reuid", "1235", "--regid", "1235", "--clear-groups", Places.program("loop"), "60", "50",
                        name="victim", stdin=subprocess.PIPE, env=env)
    wait_until(lambda: "ready" in victim.out() or victim.process.poll() is not None, "the victim", 30)
    time.sleep(2)
    victim.process.stdin.close()
    victim.wait()
    process.signal(signal.SIGINT)
    result = case.result(process)
    storm.process.kill()
    checks.equal(f"status ({result.err})", 0, result.status)
    if not result.summary["missed"]["lost"]["processes_full"]:
        raise Failure("the storm had room for all of its processes")
    if not result.names(pid=victim.pid).get("cuLaunchKernel"):
        raise Failure("no launch of the victim was seen")


@alone
def test_processes_of_one_user_leave_room_for_others(case):
    check_children(case, False)


@alone
def test_processes_that_one_user_makes_leave_room_for_others(case):
    check_children(case, True)


@alone
def test_programs_executed_as_fast_as_can_be(case):
    storm(case, "programs", "--all")


def of_another_architecture(path):
    """A program for 32 bits that waits for ever."""
    code, base = bytes.fromhex("b81d000000cd80ebf7"), 0x08048000  # pause(), again and again
    head = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(head + struct.pack("<IIIIIIII", 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 0x1000) + code)
    os.chmod(path, 0o755)


@alone
def test_programs_of_another_architecture_are_told_of_up_to_a_number(case):
    """Each had a line, however many a user starts."""
    path = case.path("other")
    of_another_architecture(path)
    with contextlib.ExitStack() as stack:
        try:
            for _ in range(70):
                stack.callback(stack.enter_context(subprocess.Popen([path])).kill)
        except OSError as error:
            raise Skip(f"this kernel runs no such programs: {error}") from error
        done = case.cuscope("trace", "--duration", "100ms", "--all", "-o", case.path("trace.jsonl"))
        checks.equal("status", 0, done.wait())
    lines = [line for line in done.err().splitlines() if "another architecture" in line]
    checks.equal("lines", 65, len(lines))
    checks.contains("the last one", "more processes than these run programs of another architecture", lines[-1])
