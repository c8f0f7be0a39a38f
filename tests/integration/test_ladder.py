# SPDX-License-Identifier: MIT
"""The same is seen with each mechanism that a kernel may have, best to plainest."""

import checks
from harness import Failure, alone

# Single links are taken away one after the other here, each with a grace period: a few hooks only.
FEW = ["--only", "cuLaunchKernel", "--only", "cuMemAlloc_v2", "--only", "cuModuleGetFunction"]


def same_with(case, without, options=()):
    options = ["--without", without, *options]
    result = case.trace("threads", "4", "20", options=options)
    checks.valid(result)
    checks.nothing_missed(result)
    checks.launches(result)
    filters = [o for o in options if o not in ("--without", without)]
    checks.calls(result, filters)
    checks.equal("calls without a duration", 0, sum("duration_us" not in c for c in result.calls()))
    return result


def nested_with(case, without, options=()):
    result = case.trace("runtime13", options=["--without", without, "--layer", "both", *options],
                        name="nested")
    checks.valid(result)
    checks.nothing_missed(result)
    checks.equal("launches", 6, result.summary["launches"]["kernels"])
    checks.equal("nested launches", 6, len(result.calls(name="cuLaunchKernel", nested=True)))


def test_without_session(case):
    same_with(case, "session")
    nested_with(case, "session")


def test_without_session_longjmp_and_ends_of_threads(case):
    for program, name in (("longjmp", "jump"), ("threadexit", "exit")):
        result = case.trace(program, "20", options=["--without", "session"], name=name)
        checks.valid(result)
        outer = result.calls(name="cuSimCallback", nested=None)
        if not outer or any("unfinished" not in c for c in outer):
            raise Failure(f"{program}: calls that are not unfinished")
        checks.equal(f"{program}: nested ordinary calls", 0,
                     sum(c["name"] != "cuSimCallback" for c in result.calls(nested=True)))
        checks.nothing_missed(result)


def test_without_session_and_multi(case):
    same_with(case, "session,multi", FEW)


def test_without_session_multi_and_cookie(case):
    same_with(case, "session,multi,cookie", FEW)


def test_without_session_and_multi_no_returns(case):
    result = case.trace("threads", "2", "5",
                        options=["--without", "session,multi", "--no-returns", *FEW])
    checks.valid(result)
    checks.nothing_missed(result)
    checks.launches(result)


@alone
def test_without_events_of_mappings(case):
    """Then libraries loaded later are found by looking, and what came before is missed and told."""
    result = case.trace("waitload", "0", options=["--without", "tracefs", "--only",
                                                  "cuDriverGetVersion"])
    checks.valid(result)
    seen, late = len(result.calls()), result.counts.of("late")["cuDriverGetVersion"]
    if seen < late:
        raise Failure(f"{seen} calls seen, {late} were made 200 ms after loading")
    if seen < result.counts.of("calls")["cuDriverGetVersion"]:
        checks.contains("told", "hooked late", result.out + result.err)


def test_a_feature_that_does_not_exist(case):
    process = case.cuscope("trace", "--without", "sesion", "--", "true")
    if not process.wait():
        raise Failure("accepted")
    checks.contains("suggestion", "session", process.err())
