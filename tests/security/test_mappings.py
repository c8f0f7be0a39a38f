# SPDX-License-Identifier: MIT
"""Processes with as many mappings as the kernel allows, each of which makes looks at them take long: cuscope ends in time all
the same, with what others did."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until
from test_groups import cpu_seconds

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


@alone
def test_mappings_of_a_file_with_a_long_path(case):
    """A list of 110 MB, which the kernel takes seconds to make: it is left where it is beyond what programs have, and that is told."""
    with tempfile.TemporaryDirectory(prefix="cuscope-", dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        os.mkdir(os.path.join(folder, "0"), 0o777)
        os.chmod(os.path.join(folder, "0"), 0o777)
        attacker, = hostile(case, "deep", folder)
        wait_until(lambda: "ready" in attacker.out(), "it to have mapped", 60)
        process = case.cuscope("trace", "--summary-only", "--duration", "1s", "-p", attacker.pid, start_new_session=True)
        used = 0
        while process.process.poll() is None:
            used = max(used, cpu_seconds(process.pid))
            time.sleep(0.02)
        attacker.process.stdin.close()
        attacker.wait()
    checks.contains("what is told", r"has so much mapped that its list has more than 32 MiB", process.out() + process.err())
    if used > 2:
        raise Failure(f"it took {used} s of a processor")


def check_lists(case, *options):
    """31 of these, a second of a processor each: of a user's processes that are there first a part is looked at, and a recording begins."""
    with tempfile.TemporaryDirectory(prefix="cuscope-", dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        os.mkdir(os.path.join(folder, "0"), 0o777)
        os.chmod(os.path.join(folder, "0"), 0o777)
        attacker, = hostile(case, "list", folder)
        wait_until(lambda: "ready" in attacker.out(), "them to have mapped", 60)
        path = case.path("lists.cuscope")
        process = case.cuscope("record", *options, "-o", path)
        begin = time.monotonic()
        wait_until(lambda: "waiting for it" in process.err() or (os.path.exists(path) and os.path.getsize(path)),
                   "the recording to begin", 150)
        took = time.monotonic() - begin
        process.signal(signal.SIGINT)
        process.wait(100)
        attacker.process.stdin.close()
        attacker.wait()
    if took > LIMIT:
        raise Failure(f"it took {took:.1f} s to begin")


@alone
def test_lists_of_processes_that_are_there_first(case):
    check_lists(case, "--all")


@alone
def test_lists_of_processes_of_other_names_that_are_there_first(case):
    check_lists(case, "--name", "nobody")


@alone
def test_a_signal_ends_what_is_begun_with_two_thousand_processes(case):
    """The kernel takes 20 ms for each probe in two thousand processes: it is not waited for all of them."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS", None)
    crowd = case.start(Places.program("hostile-mappings"), "crowd", "2000", "-", name="crowd", stdin=subprocess.PIPE, env=env)
    wait_until(lambda: "ready" in crowd.out(), "them to have mapped the driver", 60)
    for i in range(2):  # the first makes a copy of each page with a probe
        begin = time.monotonic()
        case.cuscope("record", "--name", "hostile-mapping*", "--duration", "1ms", "-o", case.path(f"{i}.cuscope")).wait(100)
        whole_took = time.monotonic() - begin
        time.sleep(2)  # its probes are taken away meanwhile
    process = case.cuscope("record", "--name", "hostile-mapping*", "-o", case.path("cut.cuscope"))
    time.sleep(whole_took / 4)
    begin = time.monotonic()
    process.signal(signal.SIGINT)
    process.wait(100)
    took = time.monotonic() - begin
    crowd.process.stdin.close()
    if took > whole_took / 2:
        raise Failure(f"it took {took:.1f} s to end, and to begin and end {whole_took:.1f} s")


def beside(case, *words):
    """How a command is traced that has a library which somebody's process has mapped as well; what is told of its cuInit, and who that
    process is. None: the process cannot do so here."""
    os.makedirs(case.path("lib"))
    library = shutil.copy(Places.simcuda("push", "libcuda.so.1"), case.path("lib"))
    case.env["LD_LIBRARY_PATH"] = case.path("lib") + ":" + Places.simcuda()
    env = case.environment()
    env.pop("SAMPLE_COUNTS", None)  # a file of root's
    os.chmod(case.folder, 0o755)
    attacker = case.start("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups",
                          Places.program("hostile-mappings"), *map(str, words), library, name="hostile", stdin=subprocess.PIPE, env=env)
    wait_until(lambda: "ready" in attacker.out() or attacker.process.poll() is not None, "it to have mapped the library")
    if attacker.process.poll() == 77:
        return None
    begin = time.monotonic()
    result = case.trace("loop", "1", "100")
    took = time.monotonic() - begin
    attacker.process.stdin.close()
    attacker.wait()
    checks.equal("status", 0, result.status)
    missed = [hook for hook in result.said("not_hooked") if hook.get("name") == "cuInit"]
    checks.equal("whose they are", [attacker.pid], [hook["pid"] for hook in missed])
    checks.equal("complete", False, result.summary["missed"]["complete"])
    if took > 6:
        raise Failure(f"it took {took:.1f} s")
    return missed[0]["why"]


def test_guard_pages_over_a_library_hold_up_nobody_and_are_told(case):
    """The kernel puts no probe there, into no process. To find out for each function took 10 s, in which the command was held."""
    why = beside(case, "guards", "-")
    if not why:
        raise Skip("no guard pages in mappings of files here (Linux 6.15)")
    checks.contains("why", "a guard page there", why)


def test_a_library_that_is_mapped_thousands_of_times_holds_up_nobody(case):
    """The kernel has to put a probe into each mapping, with a copy of the page: that took 27 s, and 2 GB."""
    checks.contains("why", "mapped a thousand times", beside(case, "library", 8000))
