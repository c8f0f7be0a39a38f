# SPDX-License-Identifier: MIT
"""Targets whose names a demangler does not get through: a name of 349 bytes would take it a minute, and one of eleven
more twice that. What is not read in time stays as it is linked, and nobody waits."""

import time

import checks
import profiles
from harness import Failure, Places, wait_until

LIMIT = 20
RIDDLE = "_Z1fDpFv1k1bIS_S_E"  # as it begins


def riddles():
    return Places.program("hostile-riddles")


def test_kernels_with_such_names(case):
    begin = time.monotonic()
    trace = case.start_trace(target=["--", riddles(), "kernels", 300])
    result = case.result(trace, seconds=LIMIT)
    checks.equal("status", 0, result.status)
    checks.equal("complete", True, result.summary["missed"]["complete"])
    checks.equal("calls", 1 + 2 * 302, result.summary["calls"]["total"])
    names = {call["kernel"] for call in result.calls(name="cuLaunchKernel")}
    checks.equal("kernels as they are linked", 300, sum(name.startswith(RIDDLE) for name in names))
    for plain in ("void first<float>(float*)", "last(float const*, int)"):
        checks.equal(plain, True, plain in names)
    if time.monotonic() - begin > LIMIT:
        raise Failure(f"{time.monotonic() - begin:.0f} s")


def test_a_signal_ends_it_meanwhile(case):
    trace = case.start_trace(target=["--", riddles(), "kernels", 3000])
    wait_until(lambda: RIDDLE in trace.out() or trace.process.poll() is not None, "the first such name")
    begin = time.monotonic()
    trace.signal(2)
    trace.process.wait(timeout=LIMIT)
    if time.monotonic() - begin > 5:
        raise Failure(f"{time.monotonic() - begin:.1f} s")


def test_a_function_on_stacks_with_such_a_name(case):
    process = profiles.started(case, riddles(), "stacks")
    path = case.path("p.folded")
    profile = case.cuscope("profile", "--duration", "1s", "-o", path, "-p", process.pid)
    checks.equal(f"status ({profile.err()})", 0, profile.wait(LIMIT))
    with open(path, encoding="utf-8") as file:
        checks.contains("the stacks", RIDDLE, file.read())
    profiles.ended(process)


def test_a_hook_on_a_function_with_such_a_name(case):
    result = case.trace("hostile-riddles", "calls", options=["--hook", f"uprobe:{riddles()}:_Z*"])
    checks.equal("calls of it", 100, sum(call["name"].startswith(RIDDLE) for call in result.calls(layer="hook")))


def test_functions_that_can_be_hooked_are_listed(case):
    listing = case.cuscope("probes", f"uprobe:{riddles()}:_Z*")
    checks.equal(f"status ({listing.err()})", 0, listing.wait(LIMIT))
    checks.contains("the list", RIDDLE, listing.out())
