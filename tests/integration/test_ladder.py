# SPDX-License-Identifier: MIT
"""The same is seen with each mechanism that a kernel may have, best to plainest."""

import signal

import checks
from harness import Failure, Places, alone

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


def nested_deeply_with(case, *without):
    """Calls that are not followed return like others: none of their returns is without an entry."""
    result = case.trace("nested", "10", "5", options=["-v", *without, "--only", "cuSimCallback"])
    lost = result.summary["missed"]["lost"]
    made = result.counts.of("calls")["cuSimCallback"]
    checks.equal("seen and lost are all", made, result.names()["cuSimCallback"] + lost["too_deep"])
    checks.equal("too deep", True, lost["too_deep"] > 0)
    checks.equal("returns without an entry", 0, lost["no_entry"])


def test_nested_deeply_with_session(case):
    nested_deeply_with(case)


def test_nested_deeply_without_session(case):
    nested_deeply_with(case, "--without", "session")


def test_nested_deeply_without_session_and_multi(case):
    nested_deeply_with(case, "--without", "session,multi")


def returns_given_up_with(case, *without):
    """Calls come all the time while their returns are taken away, some of them still with one."""
    result = case.trace("tight", "1000000", options=[*without, "--only", "cuCtxSetCurrent", "--summary-only",
                                                    "--max-overhead", "1%"], lines=False)
    checks.equal("returns are given up", 1, len(result.said("entry_only")))
    checks.equal("returns without an entry", 0, result.summary["missed"]["lost"]["no_entry"])


@alone
def test_returns_given_up_with_session(case):
    returns_given_up_with(case)


@alone
def test_returns_given_up_without_session(case):
    returns_given_up_with(case, "--without", "session")


@alone
def test_returns_given_up_without_session_and_multi(case):
    returns_given_up_with(case, "--without", "session,multi")


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


@alone
def test_without_events_of_mappings_all_processes_are_looked_at(case):
    """One that starts under the trace, and loads CUDA later."""
    environment = case.environment()
    environment.pop("LD_LIBRARY_PATH")  # no library is known beforehand
    trace = case.start_trace([], ["--without", "tracefs", "--all"], env=environment)
    case.attached(trace)
    script = ("import ctypes, time\n"
              "time.sleep(0.5)\n"
              f"cuda = ctypes.CDLL('{Places.simcuda('push', 'libcuda.so.1')}')\n"
              "time.sleep(3)\n"
              "for i in range(100): cuda.cuInit(0)\n")
    checks.equal("status", 0, case.start("/usr/bin/python3", "-c", script).wait())
    trace.signal(signal.SIGINT)
    result = case.result(trace)
    checks.equal("cuInit", 100, result.names()["cuInit"])


@alone
def test_without_events_of_mappings_a_run_is_never_complete(case):
    """Who lives too short to be looked at is counted by nobody."""
    result = case.trace("threads", "1", "1", options=["--without", "tracefs"])
    checks.equal("complete", False, result.summary["missed"]["complete"])
    checks.equal("told", 1, sum(hook["kind"] == "unseen" for hook in result.summary["missed"]["hooks"]))
    checks.contains("text", "not looked into: this kernel does not report what processes map",
                    result.out)


def test_a_feature_that_does_not_exist(case):
    process = case.cuscope("trace", "--without", "sesion", "--", "true")
    if not process.wait():
        raise Failure("accepted")
    checks.contains("suggestion", "session", process.err())
