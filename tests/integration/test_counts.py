# SPDX-License-Identifier: MIT
"""What cuscope counts is what the program did: calls, launches, bytes, memory, errors."""

import collections
import json
import os
import signal
import struct
import subprocess
import time

import checks
from harness import Counts, Failure, Places, alone, wait_until


def test_threads_each_call_of_each_thread(case):
    result = case.trace("threads", "8", "25")
    checks.everything(result)
    checks.equal("threads", 9, len({c["tid"] for c in result.calls()}))


def test_launches_name_grid_block_shmem_stream(case):
    result = case.trace("threads", "3", "2")
    checks.launches(result)
    checks.equal("kernels", {"tick()", "void shapes::block<float, 4>(float*, int)"},
                 {k["name"] for k in result.summary["kernels"]})


def test_copies_bytes_direction_and_way(case):
    result = case.trace("copies")
    checks.everything(result)


def test_memory_of_all_kinds(case):
    result = case.trace("memory")
    checks.valid(result)
    checks.nothing_missed(result)
    checks.calls(result)
    checks.memory(result)
    checks.differences("address ranges", result.counts.of("reserved"), collections.Counter(
        str(c["size"]) for c in result.calls(op="alloc", memory="vmm-va")))


def test_errors_have_their_names(case):
    result = case.trace("errors")
    checks.everything(result)


def refused(result, n, error):
    calls = result.calls(name="cudaLaunchKernel", error=error)
    checks.equal("refused launches", n, len(calls))
    checks.equal("failed calls", n, result.summary["calls"]["failed"])
    checks.equal("unfinished", [], result.calls(unfinished=True))
    checks.equal("kernels", {"scale(float*, float, int)"}, {c["kernel"] for c in calls})


def test_launches_that_the_runtime_refuses_are_seen_where_failures_are_asked_for(case):
    result = case.trace("refused", "500", "3", options=["--failed"])
    refused(result, 500, "cudaErrorInvalidConfiguration")
    checks.nothing_missed(result)
    checks.equal("launches", 3, result.summary["launches"]["kernels"])


def test_launches_without_a_device_are_seen(case):
    case.env = {"SIMCUDA_DEVICES": "0"}
    result = case.trace("refused", "500")
    calls = result.calls(name="cudaLaunchKernel", error="cudaErrorNoDevice")
    checks.equal("refused launches", 500, len(calls))
    checks.equal("unfinished", [], result.calls(unfinished=True))
    checks.nothing_missed(result)


def test_that_refused_launches_were_not_looked_at_is_told(case):
    """A program that never asks what an error means: they are in no table, and each says so. The driver alone is all of
    another program, and one of which failures are asked for has them."""
    words = "launches that the runtime refuses"
    trace = case.path("not.cuscope")
    record = case.cuscope("record", "-o", trace, "--", Places.program("refused"), "40", "10")
    checks.equal("status", 0, record.wait())
    for what in (["info"], ["report", "summary"], ["report", "errors"], ["report", "launches"]):
        told = case.cuscope(*what, trace)
        checks.equal("status", 0, told.wait())
        checks.contains(" ".join(what), words, told.out())
    result = case.trace("refused", "40", "10", name="trace")
    checks.equal("told once", ["not_looked_at"], [hook["kind"] for hook in result.summary["missed"]["hooks"]])
    checks.equal("nothing was lost", True, result.summary["missed"]["complete"])
    for name, program, options in (("failed", ["refused", "40", "10"], ["--failed"]), ("driver", ["threads", "2", "40"], [])):
        result = case.trace(*program, options=options, name=name)
        checks.equal(f"{name}: nothing is told", [], result.summary["missed"]["hooks"])


def test_a_first_launch_that_initialises_returns(case):
    result = case.trace("refused", "0", "7")
    checks.equal("unfinished", [], result.calls(unfinished=True))
    checks.equal("launches", 7, result.summary["launches"]["kernels"])
    checks.equal("of these in the driver", 7, result.names()["cuLaunchKernel"])
    checks.equal("the outer ones", 7, len(result.calls(op="launch", nested=None)))
    checks.equal("and in the runtime", 1, result.names()["cudaLaunchKernel"])
    checks.nothing_missed(result)


def test_after_a_launch_failed_the_runtime_s_are_hooked(case):
    """A process that works, and one that finds no device: its later launches are seen."""
    script = (f"{Places.program('refused')} 0 3; SIMCUDA_DEVICES=0 {Places.program('refused')} 5; "
              f"sleep 1; SIMCUDA_DEVICES=0 {Places.program('refused')} 40; {Places.program('refused')} 0 9")
    result = case.trace("/bin/sh", "-c", script)
    late = len(result.calls(name="cudaLaunchKernel", error="cudaErrorNoDevice"))
    if not 40 <= late <= 45:
        raise Failure(f"{late} refused launches were seen")
    checks.equal("launches", 12, result.summary["launches"]["kernels"])
    checks.contains("what it said", "hooked in the runtime as well", result.err)
    checks.equal("told as late", 1, len(result.said("hooked_late")))
    checks.equal("complete", False, result.summary["missed"]["complete"])


def test_after_the_words_of_an_error_were_asked_for_refused_launches_are_seen(case):
    """The driver never hears of them, and no call that is looked at fails: the program's own check is what tells."""
    result = case.trace("refused", "40", "10", "1")
    checks.equal("refused launches", 40, len(result.calls(name="cudaLaunchKernel", error="cudaErrorInvalidConfiguration")))
    checks.equal("launches", 10, result.summary["launches"]["kernels"])
    checks.equal("failed calls", 40, result.summary["calls"]["failed"])
    checks.equal("told as late", 1, len(result.said("hooked_late")))
    checks.equal("complete", False, result.summary["missed"]["complete"])


def test_errors_of_functions_that_are_off_by_default(case):
    options = ["--only", "cuDeviceGet", "--only", "cudaSetDevice"]
    result = case.trace("errors", options=options)
    checks.valid(result)
    checks.calls(result, options)
    checks.errors(result, options)
    checks.equal("errors of both layers", {"CUDA_ERROR_NOT_INITIALIZED", "CUDA_ERROR_INVALID_DEVICE",
                                           "cudaErrorInvalidDevice"},
                 {c["error"] for c in result.calls() if "error" in c})


def test_captured_launches_are_not_counted_as_run(case):
    result = case.trace("capture")
    checks.everything(result)
    if not result.calls(captured=True):
        raise Failure("nothing was captured")


def test_stream_0_is_each_thread_s_own_where_the_program_says_so(case):
    result = case.trace("ptsz", "20")
    checks.valid(result)
    checks.nothing_missed(result)
    calls = result.calls(op="launch")
    checks.equal("captured", 2, sum("captured" in c for c in calls))
    checks.equal("run", 22, result.summary["launches"]["kernels"])
    checks.equal("captured, in the summary", 2, result.summary["launches"]["captured_kernels"])
    checks.equal("streams", {"0x2"}, {c["stream"] for c in calls})


def test_streams_of_threads_are_rows_of_their_own(case):
    path = case.path("run.cuscope")
    process = case.cuscope("record", "-o", path, "--", Places.program("ptsz"), "20")
    checks.equal("status", 0, process.wait())
    report = case.cuscope("report", path, "streams", "--format", "csv")
    checks.equal("status", 0, report.wait())
    rows = [line.split(",") for line in report.out().splitlines() if "per-thread" in line]
    checks.equal("streams of threads", 2, len({row[-1] for row in rows}))
    checks.equal("their launches", [2, 20], sorted(int(row[1]) for row in rows))


def test_runtime13_by_default(case):
    checks.everything(case.trace("runtime13"), without=checks.FOR_LAUNCHES)


def test_runtime12_by_default(case):
    checks.everything(case.trace("runtime12"), without=checks.FOR_LAUNCHES)


def test_static_runtime_in_an_executable(case):
    result = case.trace("static")
    checks.everything(result, without=checks.FOR_LAUNCHES)
    checks.equal("library of cudaMalloc", {"static"},
                 {c["lib"] for c in result.calls(name="cudaMalloc")})


def test_static_runtime_stripped_has_its_calls_as_well(case):
    """Its functions are found without symbols, but for some that programs do not call by themselves."""
    result = case.trace("static-stripped")
    checks.valid(result)
    checks.nothing_missed(result)
    checks.launches(result)
    checks.memory(result)
    made, hooked = result.counts.of("calls"), checks.hooked()
    checks.differences("calls", {name: n for name, n in made.items() if name in hooked and name.startswith("cuda")},
                       {name: n for name, n in result.names(nested=None).items() if name.startswith("cuda")})
    checks.equal("library of cudaMalloc", {"static-stripped"},
                 {c["lib"] for c in result.calls(name="cudaMalloc")})


def test_static_runtime_stripped_whose_every_call_fails(case):
    """None of them reaches a driver."""
    folder = case.path("none")
    os.makedirs(folder)
    case.env["LD_LIBRARY_PATH"] = folder
    with open(os.path.join(folder, "libcuda.so.1"), "w"):
        pass
    result = case.trace("static-stripped", status=None)
    checks.equal("layers", {"runtime"}, {c["layer"] for c in result.calls()})
    checks.equal("all fail", set(), {c["name"] for c in result.calls() if not c.get("error")} -
                 {"__cudaRegisterFatBinary", "__cudaRegisterFunction", "__cudaRegisterFatBinaryEnd"})


def test_static_runtime_stripped_whose_functions_are_not_found_is_told(case):
    """As where the tables of its functions' places are gone, too."""
    path = case.path("no-tables")
    with open(Places.program("static-stripped"), "rb") as file:
        data = bytearray(file.read())
    headers, size, n = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for at in range(headers, headers + n * size, size):
        if struct.unpack_from("<I", data, at)[0] == 0x6474e550:  # PT_GNU_EH_FRAME
            struct.pack_into("<I", data, at, 0)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755)
    result = case.trace(path)
    checks.equal("layers", {"driver"}, {c["layer"] for c in result.calls()})
    checks.equal("complete", False, result.summary["missed"]["complete"])
    checks.contains("it says", "runtime linked in without symbols",
                    " ".join(hook["why"] for hook in result.said("not_hooked")))


def test_layer_auto_launches_in_the_driver_rest_in_both(case):
    result = case.trace("runtime13")
    checks.equal("layer of launches", {"driver"}, {c["layer"] for c in result.calls(op="launch")})
    names = result.names(nested=None)
    checks.equal("cudaMalloc", 2, names["cudaMalloc"])
    checks.equal("cudaLaunchKernel", 0, names["cudaLaunchKernel"])
    checks.equal("cuMemAlloc_v2 is nested", 2, result.names(nested=True)["cuMemAlloc_v2"])


def test_layer_both_marks_nested_and_counts_once(case):
    for program, path in (("runtime13", "__cudaLaunchKernel"), ("runtime12", "cudaLaunchKernel")):
        result = case.trace(program, options=["--layer", "both"], name=program)
        checks.valid(result)
        checks.nothing_missed(result)
        checks.equal("outer launches", 6, len(result.calls(op="launch", nested=None)))
        checks.equal("they are", {"cudaLaunchKernel"},
                     {c["name"] for c in result.calls(op="launch", nested=None)})
        checks.equal("inner launches", 6, len(result.calls(name="cuLaunchKernel", nested=True)))
        checks.equal("depth of inner ones", {1}, {c["depth"] for c in result.calls(nested=True)})
        checks.equal("launches", 6, result.summary["launches"]["kernels"])
        checks.equal("transfers", 2, result.summary["transfers"]["count"])
        checks.equal("allocations", 1, result.summary["memory"]["allocated"]["count"])
        shapes = {(tuple(c["grid"]), tuple(c["block"]), c["shmem"], c["kernel"])
                  for c in result.calls(op="launch")}
        checks.equal("shapes of both layers", {
            ((65535, 3, 2), (256, 2, 2), 512, "scale(float*, float, int)"),
            ((1, 1, 1), (1, 1, 1), 0, "fill(int*)")}, shapes)


def test_layer_driver_and_layer_runtime_show_only_theirs(case):
    for layer in ("driver", "runtime"):
        result = case.trace("runtime13", options=["--layer", layer], name=layer)
        checks.valid(result)
        checks.equal("layers", {layer}, {c["layer"] for c in result.calls()})
        checks.equal("launches", 6, result.summary["launches"]["kernels"])
        checks.equal("kernels", {"scale(float*, float, int)": 5, "fill(int*)": 1},
                     {k["name"]: k["launches"] for k in result.summary["kernels"]})


def lines_of(result, text):
    with open(result.path + ".jsonl", "rb") as file:
        return sum(text in line for line in file)


def told_or_lost(result, told, made):
    """Inside a process calls of a tight loop are recorded faster than they are read: what is lost is counted, to the last one."""
    lost = sum(n for reason, n in result.summary["missed"]["lost"].items() if reason != "late")
    checks.equal("calls told and lost", made, told + lost)


@alone
def test_a_million_calls_in_a_tight_loop(case):
    result = case.trace("tight", "1000000", options=["--only", "cuCtxSetCurrent", "--summary-only"],
                        lines=False)
    if Places.in_process:
        told_or_lost(result, result.summary["calls"]["total"], result.counts.of("calls")["cuCtxSetCurrent"])
        return
    checks.nothing_missed(result)
    checks.equal("calls", result.counts.of("calls")["cuCtxSetCurrent"],
                 result.summary["calls"]["total"])


@alone
def test_a_million_calls_in_a_tight_loop_written_to_a_file(case):
    result = case.trace("tight", "1000000", options=["--only", "cuCtxSetCurrent"], lines=False)
    if Places.in_process:
        told_or_lost(result, lines_of(result, b'"name":"cuCtxSetCurrent"'), 1000001)
        return
    checks.nothing_missed(result)
    checks.equal("lines", 1000001, lines_of(result, b'"name":"cuCtxSetCurrent"'))


@alone
def test_two_threads_in_tight_loops(case):
    result = case.trace("tight", "200000", "2", options=["--only", "cuCtxSetCurrent"])
    checks.nothing_missed(result)
    checks.equal("calls", 400001, len(result.calls()))


def test_strings_belong_to_their_call(case):
    result = case.trace("threads", "1", "1")
    checks.equal("names asked for", ["_Z4tickv", "_ZN6shapes5blockIfLi4EEEvPT_i", "plain_name"],
                 [c["args"].get("name") for c in result.calls(name="cuModuleGetFunction")])


def test_events_are_in_the_order_in_which_calls_ended(case):
    result = case.trace("threads", "4", "50")
    ends = [c["ts"] + c["duration_us"] / 1000 for c in result.calls()]
    wrong = sum(1 for a, b in zip(ends, ends[1:]) if b < a - 0.0015)
    checks.equal("calls out of order", 0, wrong)


def test_each_thread_has_its_calls_one_after_the_other(case):
    result = case.trace("threads", "4", "50")
    last = {}
    for call in result.calls():
        begin, end = call["ts"], call["ts"] + call["duration_us"] / 1000
        if begin < last.get(call["tid"], begin) - 1e-6:
            raise Failure(f"{call} began before the one before it ended")
        last[call["tid"]] = end


def test_entry_shapes(case):
    for shape in ("push", "endbr", "stub"):
        if not os.path.exists(Places.simcuda(shape)):
            continue
        case.shape = shape
        if os.path.exists(case.path("counts")):
            os.unlink(case.path("counts"))
        result = case.trace("threads", "2", "5", name=shape)
        checks.everything(result)


def test_kernel_names_when_handles_are_used_again(case):
    """A module is unloaded and another kernel gets the handle of the last one."""
    result = case.trace("reload", "30")
    checks.everything(result)
    result = case.trace("reload", "30", options=["--class", "launch"], name="launches")
    checks.equal("kernels", {"one()": 40, "two()": 40, "three()": 40},
                 {k["name"]: k["launches"] for k in result.summary["kernels"]})


def test_calls_within_calls_that_return(case):
    for depth in (1, 2, 3):
        for options in ([], ["-v"]):
            result = case.trace("nested", str(depth), "5", options=options, name=f"d{depth}{options}")
            checks.valid(result)
            checks.nothing_missed(result)
            checks.equal("outer allocations", 5, result.names(nested=None)["cuMemAlloc_v2"])
            checks.equal("inner allocations", 5, result.names(nested=True)["cuMemAlloc_v2"])
            checks.equal("outer callbacks", 5, result.names(nested=None)["cuSimCallback"])
            checks.equal("unfinished", 0, len(result.calls(unfinished=True)))


def test_calls_nested_deeper_than_is_followed_are_counted_as_such(case):
    result = case.trace("nested", "10", "5", options=["-v"])
    checks.valid(result)
    lost = result.summary["missed"]["lost"]
    made = result.counts.of("calls")
    seen = result.names()
    total = sum(seen[name] for name in ("cuSimCallback", "cuMemAlloc_v2", "cuMemFree_v2"))
    expected = sum(made[name] for name in ("cuSimCallback", "cuMemAlloc_v2", "cuMemFree_v2"))
    checks.equal("seen and lost are all", expected, total + lost["too_deep"])
    checks.equal("returns without an entry", 0, lost["no_entry"])
    checks.equal("outer allocations", 5, result.names(nested=None)["cuMemAlloc_v2"])


@alone
def test_an_output_that_takes_nothing_for_a_while_loses_nothing(case):
    """What fills the rings meanwhile is kept: 300,000 calls are more than those of two CPUs have room for."""
    process = case.cuscope("trace", "--format", "jsonl", "--only", "cuCtxSetCurrent", "--ring-size", f"{8 * os.cpu_count()}MiB", "--json-summary",
                           case.path("summary.json"), "--", Places.program("tight"), "150000", "2", stdout=subprocess.PIPE)
    wait_until(lambda: os.path.exists(case.path("counts")), "the calls to be made", 60)
    time.sleep(0.5)
    calls = sum(b'"name":"cuCtxSetCurrent"' in line for line in process.process.stdout)
    checks.equal("status", 0, process.wait())
    with open(case.path("summary.json")) as file:
        missed = json.load(file)["missed"]
    checks.equal("lost", 0, missed["lost"]["ring_full"])
    checks.equal("calls", Counts(case.path("counts")).of("calls")["cuCtxSetCurrent"], calls)


@alone
def test_what_is_lost_is_counted(case):
    """A reader that is stopped cannot keep up: what is there and what is lost are all the calls."""
    process = case.start_trace(["--only", "cuCtxSetCurrent", "--ring-size", "64KiB"],
                               ["--", Places.program("tight"), "300000", "2"])
    for _ in range(5):
        time.sleep(0.2)
        process.signal(signal.SIGSTOP)
        time.sleep(0.1)
        process.signal(signal.SIGCONT)
    result = case.result(process, lines=False)
    checks.equal("status", 0, result.status)
    missed = result.summary["missed"]
    if not missed["lost"]["ring_full"]:
        raise Failure("nothing was lost: the test did not test")
    checks.equal("said to be complete", False, missed["complete"])
    made = result.counts.of("calls")["cuCtxSetCurrent"]
    seen = lines_of(result, b'"name":"cuCtxSetCurrent"')
    checks.equal("seen and lost together", made, seen + missed["lost"]["ring_full"])
