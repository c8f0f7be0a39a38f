# SPDX-License-Identifier: MIT
"""Which functions are hooked and which calls are shown."""

import json
import os

import checks
from harness import Counts, Failure, Places, alone, wait_until


def test_only(case):
    options = ["--only", "cuMem*"]
    result = case.trace("threads", "2", "5", options=options)
    checks.valid(result)
    checks.calls(result, options)
    checks.equal("names", {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoH_v2"},
                 set(result.names()))


def test_only_without_the_variants_suffix(case):
    result = case.trace("threads", "1", "3", options=["--only", "cuMemAlloc"])
    checks.equal("calls", {"cuMemAlloc_v2": 3}, dict(result.names()))


def test_only_hooks_what_is_off_by_default(case):
    result = case.trace("threads", "4", "1", options=["--only", "cuCtxSetCurrent"])
    checks.equal("calls", {"cuCtxSetCurrent": 5}, dict(result.names()))
    result = case.trace("threads", "4", "1", name="default")
    checks.equal("by default", 0, result.names()["cuCtxSetCurrent"])


def test_only_of_a_runtime_launch(case):
    """A function that --only names is always hooked, launches in the runtime, too."""
    result = case.trace("runtime12", options=["--only", "cudaLaunchKernel"])
    checks.valid(result)
    checks.equal("calls", {"cudaLaunchKernel": 6}, dict(result.names()))
    checks.equal("kernels", {"scale(float*, float, int)", "fill(int*)"},
                 {c["kernel"] for c in result.calls()})


def test_only_twice_and_skip(case):
    result = case.trace("threads", "1", "3",
                        options=["--only", "cuMem*", "--only", "cuLaunch*", "--skip", "cuMemcpy*"])
    checks.equal("calls", {"cuMemAlloc_v2": 3, "cuMemFree_v2": 3, "cuLaunchKernel": 6},
                 dict(result.names()))


def test_skip(case):
    options = ["--skip", "cuLaunch*"]
    result = case.trace("threads", "1", "3", options=options)
    checks.valid(result)
    checks.calls(result, options)
    checks.equal("launches", 0, len(result.calls(op="launch")))


def test_class(case):
    result = case.trace("threads", "1", "3", options=["--class", "launch,sync"])
    checks.valid(result)
    checks.equal("calls", {"cuLaunchKernel": 6, "cuStreamSynchronize": 3}, dict(result.names()))
    checks.equal("classes", {"launch", "sync"}, {c["class"] for c in result.calls()})


def test_each_class_is_what_it_says(case):
    everything = case.trace("capture", name="all")
    for cls in sorted({c["class"] for c in everything.calls()}):
        result = case.trace("capture", options=["--class", cls], name=cls)
        checks.differences(f"calls of class {cls}",
                           [c["name"] for c in everything.calls(**{"class": cls})],
                           [c["name"] for c in result.calls()])


def test_captures_are_told_though_only_launches_are_shown(case):
    result = case.trace("capture", options=["--class", "launch"])
    checks.valid(result)
    checks.launches(result)


def test_failed(case):
    result = case.trace("errors", options=["--failed"])
    checks.valid(result)
    checks.errors(result)
    checks.equal("calls that did not fail", 0, sum("error" not in c for c in result.calls()))
    if result.summary["calls"]["total"] <= len(result.calls()):
        raise Failure("the summary counts only what is shown")


@alone
def test_min_duration(case):
    case.env["SIMCUDA_TIME_SCALE"] = "1"
    case.env["SIMCUDA_KERNEL_US"] = "5000"
    result = case.trace("threads", "1", "4", options=["--min-duration", "3ms"])
    checks.valid(result)
    short = [c for c in result.calls() if c["duration_us"] < 3000]
    checks.equal("shorter ones", [], short)
    if result.names()["cuStreamSynchronize"] < 4:
        raise Failure(f"calls that took longer are not there: {dict(result.names())}")
    if result.summary["calls"]["total"] <= len(result.calls()):
        raise Failure("the summary counts only what is shown")


def test_no_returns(case):
    result = case.trace("threads", "2", "20", options=["--no-returns"])
    checks.valid(result)
    checks.calls(result)
    checks.launches(result)
    checks.equal("calls with a duration or result", 0,
                 sum("duration_us" in c or "retval" in c for c in result.calls()))
    checks.equal("told", False, result.summary["returns"])
    checks.equal("allocated bytes are known all the same", sum(
        int(k.split()[1]) * n for k, n in result.counts.of("allocs").items()),
                 result.summary["memory"]["allocated"]["bytes"])


def test_no_returns_on_the_runtime(case):
    result = case.trace("runtime13", options=["--no-returns"])
    checks.valid(result)
    checks.equal("launches", 6, result.summary["launches"]["kernels"])
    checks.equal("kernels", {"scale(float*, float, int)": 5, "fill(int*)": 1},
                 {k["name"]: k["launches"] for k in result.summary["kernels"]})


def counted_alone(case, summary, names=("cudaMalloc", "cudaMemcpy")):
    alone = Counts(case.path("counts")).of("alone")
    told = {hook["name"]: hook["calls"] for hook in summary["missed"]["hooks"] if hook["kind"] == "counted"}
    if "cudaMalloc" not in names:
        told.pop("cudaFree", None)  # of nothing: what it calls in the driver to initialise it is not hooked here
    checks.differences("calls that the runtime refused by itself", {name: alone[name] for name in names}, told)
    checks.equal("complete", False, summary["missed"]["complete"])


def test_no_returns_calls_that_the_runtime_refuses_are_counted(case):
    """The driver, which tells of all others, hears nothing of them."""
    result = case.trace("answers", "50", options=["--no-returns"])
    checks.valid(result)
    counted_alone(case, result.summary)
    made = result.counts.of("driver")
    checks.differences("calls of the driver", made, {name: result.names()[name] for name in made})
    checks.equal("calls of it alone", result.counts.of("calls")["cuCtxSynchronize"],
                 result.names()["cuCtxSynchronize"])


def test_no_returns_beside_return_probes_of_another_tracer(case):
    """The return address of a call is another one from its entry on: it is within the call all the same."""
    case.env["LD_LIBRARY_PATH"] = Places.libraries("push")
    case.env["SAMPLE_WAIT"] = case.path("go")
    program = case.program("answers", 50)
    wait_until(lambda: os.path.exists(f"/proc/{program.pid}/maps") and "libcudart" in
               open(f"/proc/{program.pid}/maps").read(), "the runtime")
    first = case.start_trace([], ["-p", str(program.pid), "--layer", "both"], "first")
    case.attached(first)
    traced = case.start_trace([], ["-p", str(program.pid), "--no-returns"], "traced")
    case.attached(traced)
    last = case.start_trace([], ["-p", str(program.pid), "--layer", "both"], "last")
    case.attached(last)
    open(case.path("go"), "w").close()
    checks.equal("status", 0, program.wait())
    result = case.result(traced, "traced")
    for name, other in (("first", first), ("last", last)):
        alone = case.result(other, name)
        checks.equal(f"returns of the {name}", True, all(
            "duration_us" in call for call in alone.calls() if call["name"] == "cudaMalloc"))
        checks.equal(f"cudaMalloc of the {name}", 200, alone.names()["cudaMalloc"])
    counted_alone(case, result.summary)
    made = Counts(case.path("counts")).of("driver")
    checks.differences("calls of the driver", made, {name: result.names()[name] for name in made})


def test_no_returns_refused_calls_are_counted_where_calls_are_summed_up(case):
    process = case.cuscope("bandwidth", "--no-returns", "--format", "json", "--", Places.program("answers"), "50")
    checks.equal("status", 0, process.wait())
    counted_alone(case, json.loads(process.out().splitlines()[-1]), ["cudaMemcpy"])


def test_begin_end(case):
    result = case.trace("threads", "2", "10", options=["--begin-end"])
    checks.valid(result)
    begins = [e for e in result.events if e.get("phase") == "B"]
    ends = [e for e in result.events if e.get("phase") == "E"]
    checks.differences("begins and ends", [e["name"] for e in begins], [e["name"] for e in ends])
    checks.calls(result)
    checks.launches(result)
    open_calls = {}
    for event in result.events:
        if event.get("phase") == "B":
            open_calls.setdefault(event["tid"], []).append(event["name"])
        elif event.get("phase") == "E":
            checks.equal("the call that ends", open_calls[event["tid"]].pop(), event["name"])
    times = [e["ts"] for e in result.events if "phase" in e]
    if times != sorted(times):
        raise Failure("not in the order of time")


def test_all_calls(case):
    """The getters, too; the governor may take some away again, and then says so."""
    result = case.trace("errors", options=["--all-calls", "--max-overhead", "100%"])
    checks.valid(result)
    checks.calls(result, ["--all-calls"])
    checks.errors(result, ["--all-calls"])


def test_nested_calls_of_a_runtime_are_marked(case):
    result = case.trace("runtime13")
    nested = result.calls(nested=True)
    if not nested:
        raise Failure("no nested calls in the file")
    checks.equal("layers of nested calls", {"driver"}, {c["layer"] for c in nested})
    checks.equal("nested calls with a duration", ["cuInit"],  # it tells whether the driver works
                 [c["name"] for c in nested if "duration_us" in c])
    result = case.trace("runtime13", options=["-v"], name="verbose")
    checks.equal("nested calls without a duration, -v", 0,
                 sum("duration_us" not in c for c in result.calls(nested=True)))
