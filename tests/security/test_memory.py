# SPDX-License-Identifier: MIT
"""Targets that give cuscope as much to remember as they can: its memory has bounds, and what is left
out is told.

Limits are those of docs/bounds.md: 64 MiB and the rings. The memory measured is anonymous: rings are
shared with the kernel, and their size is an option."""

import collections
import json
import os
import time

import checks
from harness import Failure, Places, alone

MIB = 1 << 20


def peak_of(process, limit_seconds=100):
    """Waits for its end; the most anonymous memory that it was seen to have."""
    peak = 0
    end = time.monotonic() + limit_seconds
    while process.process.poll() is None and time.monotonic() < end:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                peak = max([peak] + [int(line.split()[1]) * 1024 for line in status
                                     if line.startswith("RssAnon:")])
        except OSError:
            break
        time.sleep(0.02)
    return peak


def flood(case, kind, n, most_mib, over_budget, options=()):
    trace = case.start_trace(["--ring-size", "4M", *options],
                             ["--", Places.program("hostile-floods"), kind, n])
    peak = peak_of(trace)
    result = case.result(trace, lines=False)
    checks.equal("status", 0, result.status)
    if not peak or peak > most_mib * MIB:
        raise Failure(f"{peak / MIB:.0f} MiB of memory, {most_mib} at most")
    missed = result.summary["missed"]
    if not missed["lost"]["ring_full"]:
        made = 1 + (2 * n if kind == "names" else n)
        checks.equal("calls", made, result.summary["calls"]["total"])
    checks.equal("something is left out", over_budget, missed["lost"]["over_budget"] > 0)
    if over_budget:
        checks.equal("complete", False, missed["complete"])
        checks.equal("the process is named", 1, len(result.said("over_budget")))
    return result


@alone
def test_kernels_with_long_names(case):
    """Of 35 KiB each when demangled: 60,000 took 2 GB; those that there is room for are named."""
    result = flood(case, "names", 30000, 64, True)
    kernels = [row["name"] for row in result.summary["kernels"]]
    if not any(name.startswith("f(x0000") for name in kernels):
        raise Failure(f"none is named: {[name[:40] for name in kernels]}")
    if not any("beyond what is kept" in name for name in kernels):
        raise Failure(f"the others are not one kernel: {[name[:40] for name in kernels[:5]]}")


@alone
def test_names_of_one_user_leave_room_for_others(case):
    """Three processes of a user had all that there is, for as long as cuscope ran: names are kept when they have ended."""
    floods = Places.program("hostile-floods")
    script = (f"for i in 1 2 3 4; do setpriv --reuid 65534 --regid 65534 --clear-groups {floods} names 3000; done; "
              f"exec {floods} names 100")
    trace = case.start_trace(["--ring-size", "16M"], ["--", "/bin/sh", "-c", script])
    result = case.result(trace)
    checks.equal("status", 0, result.status)
    checks.contains("the user is told", "targets of one user .15 MiB.", json.dumps(result.said("over_budget")))
    launches = collections.defaultdict(list)
    for call in result.calls(op="launch"):
        launches[call["pid"]].append("beyond what is kept" in call["kernel"])
    others = [sum(beyond) for beyond in launches.values() if len(beyond) <= 100]
    checks.equal("kernels of another user without a name", [0], others)


@alone
def test_handles_that_lead_to_no_name(case):
    flood(case, "handles", 60000, 64, True)


@alone
def test_allocations_that_are_never_freed(case):
    flood(case, "memory", 120000, 64, False)


@alone
def test_errors_that_no_library_has(case):
    result = flood(case, "errors", 50000, 64, False)
    if len(result.summary["errors"]) > 5000:
        raise Failure(f"{len(result.summary['errors'])} kinds of errors")


@alone
def test_streams_without_number(case):
    flood(case, "streams", 50000, 64, False)


@alone
def test_threads_and_processes_that_come_and_go(case):
    flood(case, "threads", 10000, 64, False)
    for ending in (".jsonl", ".json"):
        os.unlink(case.path("trace" + ending))
    flood(case, "processes", 2000, 64, False)


@alone
def test_allocations_on_a_stack_of_their_own(case):
    """memleak: more than are kept of one target. What holds memory is counted all the same."""
    process = case.cuscope("memleak", "--ring-size", "16M", "--interval", "10m", "--",
                           Places.program("hostile-floods"), "stacks", 90000)
    peak = peak_of(process)
    checks.equal("status", 0, process.wait())
    if not peak or peak > 128 * MIB:
        raise Failure(f"{peak / MIB:.0f} MiB of memory")
    checks.contains("what is held", "it had not freed 90000 allocations", process.out())
    checks.contains("what was left out", "allocations without a place", process.out())
    checks.contains("why", "the memory for one target .* is used up|came faster than stacks are walked", process.out())


def last_page(case, tool, n):
    """Of a command that goes on for some pages more: who ended is folded a page after his end."""
    process = case.cuscope(tool, "--format", "json", "--interval", "500ms", "--", "/bin/sh", "-c",
                           f"{Places.program('hostile-floods')} leavers {n}; sleep 3")
    checks.equal("status", 0, process.wait(100))
    page = json.loads(process.out().splitlines()[-1])
    checks.equal("complete", True, page["missed"]["complete"])
    return page


def check_folded(rows):
    """Those that ended long ago are one process."""
    checks.equal("rows of what ended long ago", 1, sum(row["process"] == "[ended]" for row in rows))
    if len(rows) > 2000:
        raise Failure(f"{len(rows)} rows for 2,600 processes, of which 1,024 are told apart")


@alone
def test_memleak_of_processes_that_come_and_go(case):
    n = 2600
    kinds = last_page(case, "memleak", n)["memory"]["kinds"]
    check_folded(kinds)
    checks.equal("allocations that went with their process", n,
                 sum(row["released_by_exit"]["count"] for row in kinds))


@alone
def test_live_allocations_of_one_users_processes_leave_rows_for_others(case):
    """Four processes have what there is for one user: what another one allocates then has rows all the same."""
    floods = Places.program("hostile-floods")
    script = (f"for i in 1 2 3 4; do setpriv --reuid 1234 --regid 1234 --clear-groups {floods} memory 90000000 & them=\"$them $!\"; done; "
              f"sleep 8; setpriv --reuid 1235 --regid 1235 --clear-groups {floods} memory 3000; sleep 2; kill $them")
    process = case.cuscope("memleak", "--format", "json", "--interval", "500ms", "--", "/bin/sh", "-c", script)
    process.wait(100)
    pages = [json.loads(line)["memory"]["kinds"] for line in process.out().splitlines()]
    rows = [row for page in pages for row in page if row["allocated"]["count"] == 3000]
    if not any(row["untracked"]["count"] for page in pages for row in page):
        raise Failure("the flood did not fill what there is")
    checks.equal("of another user", {"untracked": 0, "released": 3000},
                 {"untracked": rows[-1]["untracked"]["count"], "released": rows[-1]["released_by_exit"]["count"]})


@alone
def test_launches_of_processes_that_come_and_go(case):
    n = 2600
    launches = last_page(case, "launches", n)["launches"]
    check_folded(launches["kernels"])
    checks.equal("launches", n, sum(row["launches"] for row in launches["kernels"]))
