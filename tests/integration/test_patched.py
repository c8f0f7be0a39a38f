# SPDX-License-Identifier: MIT
"""Programs that have written code of their own over a CUDA function's entry: no probe may be put there."""

import os
import shutil
import subprocess
import time

import checks
from harness import Places, wait_until


def patched(case, *arguments, shape="push"):
    """Such a program, with a library that nobody else has: what is left alone is so for all who map it."""
    os.makedirs(case.path("lib"), exist_ok=True)
    shutil.copy(Places.simcuda(shape, "libcuda.so.1"), case.path("lib"))
    case.env["LD_LIBRARY_PATH"] = case.path("lib") + ":" + Places.simcuda()
    process = case.program("patches", 60, *arguments, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program")
    return process


def lives(process):
    process.process.stdin.close()
    checks.equal("it goes on, and its own code sees all", 0, process.wait())


def told(result, process, name="cuMemAlloc_v2"):
    missed = [hook for hook in result.said("not_hooked") if hook.get("name") == name]
    checks.equal("functions that are left alone", 1, len(missed))
    checks.equal("as the process has another one", process.pid, missed[0]["pid"])
    checks.contains("why", "code of its own", missed[0]["why"])
    checks.equal("complete", False, result.summary["missed"]["complete"])


def attach(case, process, options=()):
    return case.result(case.start_trace([*options, "--duration", "700ms"], ["-p", process.pid]))


def stays_alone(case, options=(), shape="push"):
    process = patched(case, shape=shape)
    result = attach(case, process, options)
    lives(process)
    told(result, process)
    checks.equal("no call of what is left alone", 0, len(result.calls(name="cuMemAlloc_v2")))
    if not result.calls(name="cuCtxSynchronize"):
        checks.equal("calls of other functions", "some", "none")


def test_a_function_with_a_jump_of_the_programs_own_is_left_alone(case):
    stays_alone(case)


def test_a_function_with_a_jump_over_the_place_of_the_probe_is_left_alone(case):
    """The entry is endbr64 there, and the probe would lie behind it."""
    stays_alone(case, shape="endbr")


def test_a_function_with_a_jump_is_left_alone_by_what_records_inside(case):
    stays_alone(case, ["--in-process"])


def test_a_function_with_a_jump_is_left_alone_by_single_probes(case):
    stays_alone(case, ["--without", "session,multi"])


def test_a_bystander_with_a_jump_of_its_own_lives(case):
    """A probe is in the file, for all who have mapped it."""
    process = patched(case)
    result = case.trace("loop", "1", "100")
    lives(process)
    told(result, process)
    checks.equal("calls of the target", result.counts.of("calls")["cuMemFree_v2"],
                 result.names()["cuMemFree_v2"])


def test_a_jump_is_left_alone_by_a_hook_of_ones_own(case):
    process = patched(case)
    result = attach(case, process, ["--only", "cuCtxSynchronize", "--hook", "uprobe:libcuda.so.1:cuMemAlloc_v2()"])
    lives(process)
    checks.equal("its calls", 0, len(result.calls(name="cuMemAlloc_v2")))
    missed = [hook for hook in result.said("not_hooked") if hook.get("name") == "cuMemAlloc_v2"]
    checks.contains("it says", f"process {process.pid} has code of its own", missed[0]["why"] if missed else "")


def test_code_that_is_mapped_writable_is_told_of(case):
    """The kernel puts no probe there, and says nothing."""
    process = patched(case, 1)
    result = attach(case, process)
    lives(process)
    checks.equal("its calls", 0, len(result.calls(name="cuMemAlloc_v2")))
    missed = [hook for hook in result.said("not_hooked") if "mapped writable" in hook["why"]]
    checks.equal("it says so of the process", [process.pid], [hook["pid"] for hook in missed])


def test_code_that_is_written_over_a_probe_is_told_of(case):
    """The program goes on, and what it calls there is not seen any more."""
    os.makedirs(case.path("lib"))
    shutil.copy(Places.simcuda("push", "libcuda.so.1"), case.path("lib"))
    case.env["LD_LIBRARY_PATH"] = case.path("lib") + ":" + Places.simcuda()
    trace = case.start_trace([], ["--", Places.program("patches"), "60"], stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in trace.out(), "the program")
    time.sleep(2.5)
    trace.process.stdin.close()
    result = case.result(trace)
    checks.equal("status", 0, result.status)
    checks.equal("its calls", 0, len(result.calls(name="cuMemAlloc_v2")))
    told = [hook for hook in result.said("not_hooked") if hook.get("name") == "cuMemAlloc_v2"]
    checks.contains("it says", "written code of its own over the probe", told[0]["why"] if told else "")
    checks.equal("once", 1, len(told))


def test_code_that_is_written_over_a_probe_shortly_before_the_end_is_told_of(case):
    """However short the trace is: the last look is at its end."""
    os.makedirs(case.path("lib"))
    shutil.copy(Places.simcuda("push", "libcuda.so.1"), case.path("lib"))
    case.env["LD_LIBRARY_PATH"] = case.path("lib") + ":" + Places.simcuda()
    trace = case.start_trace(["--duration", "0.1"], ["--", Places.program("patches"), "60"], stdin=subprocess.PIPE)
    wait_until(lambda: "the trace is over" in trace.err(), "its end")
    trace.process.stdin.close()
    result = case.result(trace)
    told = [hook for hook in result.said("not_hooked") if hook.get("name") == "cuMemAlloc_v2"]
    checks.contains("it says", "written code of its own over the probe", told[0]["why"] if told else "")
