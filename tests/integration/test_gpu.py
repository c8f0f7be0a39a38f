# SPDX-License-Identifier: MIT
"""GPU times (--gpu), by the simulated driver and libcupti: what ran, and which call asked for it."""

import collections
import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import checks
import gpu_trace
from gpu_trace import measures, read, record, sensible, start
from harness import LIMIT_SECONDS, Counts, Failure, Places, Skip, alone, wait_until

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "export"))
from page_file import Page  # noqa: E402 (found by the line above)


def kernel_key(kernel):
    return "kernel {name} {gridX},{gridY},{gridZ} {blockX},{blockY},{blockZ}".format(**dict(kernel))


def equal_kernels(trace, counts):
    expected = {key: n for key, n in counts.of("activities").items() if key.startswith("kernel")}
    checks.differences("kernels", expected, collections.Counter(map(kernel_key, trace.kernels)))


def one_call_each(trace):
    """Each kernel has a launch of its own; each launch has its kernel."""
    numbers = collections.Counter((k["pid"], k["correlationId"]) for k in trace.kernels)
    checks.differences("launches with kernels",
                       {(c["pid"], c["correlationId"]): 1 for c in trace.launches()}, numbers)


def counts_of(case):
    return Counts(case.path("counts"))


# ---- what ran -----------------------------------------------------------------------------------


def test_gpu_every_kernel_has_its_launch(case):
    trace = record(case, "gpuloop", 1, 50, 1)
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)
    sensible(trace)


def test_gpu_times_begin_when_others_do(case):
    """What lies across the moment is cut, and what ended before it is not there."""
    process = start(case, ["--", Places.program("gpuloop"), "60", "20"], ["--begin-at", "/2s", "--duration", "300ms"],
                    stdin=subprocess.PIPE)
    wait_until(lambda: "trace is over" in process.err() or "waiting for" in process.err(), "the recording's end")
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())
    trace = read(case)
    starts = [kernel["start"] for kernel in trace.kernels]
    checks.equal("kernels", True, len(starts) > 10)
    checks.equal("the first begins then or later", True, min(starts) >= 0)
    ends = [kernel["end"] for kernel in trace.kernels]
    checks.equal("of the time that was asked for", True, 250e6 < max(ends) - min(starts) < 3e9)


def test_gpu_threads_and_their_streams(case):
    trace = record(case, "gpuloop", 1, 20, 8)
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)
    sensible(trace)
    by_thread = collections.defaultdict(set)
    for kernel in trace.kernels:
        by_thread[trace.call_of(kernel)["tid"]].add(kernel["streamId"])
    checks.equal("threads that launched", 8, len(by_thread))
    checks.equal("streams of a thread", {1}, {len(streams) for streams in by_thread.values()})


def of_two_hundred_threads(case):
    """CUPTI of CUDA 13 has a buffer for each of them, unless it is told otherwise."""
    trace = record(case, "gpuloop", 0, 20, 200)
    checks.equal("records that CUPTI dropped", 0, lost(case, "gpu_buffers"))
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)
    checks.equal("threads that launched", 200, len({c["tid"] for c in trace.launches()}))


def test_gpu_two_hundred_threads_at_once(case):
    of_two_hundred_threads(case)


def test_gpu_two_hundred_threads_with_a_buffer_each(case):
    case.env = {"SIMCUDA_FAIL": "cuptiActivitySetAttribute:*=1"}
    of_two_hundred_threads(case)


def test_gpu_streams_that_wait_for_one_another(case):
    trace = record(case, "gpustreams", 20)
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)
    sensible(trace)


def ended_by_the_waits(trace):
    """What a thread had launched before it waited has ended when it goes on; clocks differ a little."""
    ends = sorted((trace.call_of(k)["start"], k["end"]) for k in trace.kernels)
    waits = sorted((c["start"], c["end"]) for c in trace.calls if c["name"] == "cuStreamSynchronize")
    last, n = 0, 0
    for begin, end in waits:
        while n < len(ends) and ends[n][0] < begin:
            last, n = max(last, ends[n][1]), n + 1
        if last > end + 5_000_000:
            raise Failure(f"a kernel ended {last - end} ns after the wait for it")
    checks.equal("kernels before the last wait", len(ends), n)


def test_gpu_a_queue_of_kernels_takes_its_time(case):
    """A kernel that waits behind others begins long after its launch, never before it."""
    case.env = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "2000"}
    trace = record(case, "gpuloop", 1, 100, 1)
    sensible(trace)
    delays = [k["start"] - trace.call_of(k)["start"] for k in trace.kernels]
    if max(delays) < 4_000_000:  # of two kernels; a hundred are launched before each wait
        raise Failure(f"the longest delay is {max(delays)} ns")
    times = sorted((k["start"], k["end"]) for k in trace.kernels)
    checks.equal("kernels that began before the one before had ended", 0,
                 sum(later[0] < earlier[1] for earlier, later in zip(times, times[1:])))
    ended_by_the_waits(trace)


def test_gpu_copies_and_sets(case):
    trace = record(case, "gpucopies", 3)
    expected = collections.Counter()
    for key, n in counts_of(case).of("activities").items():
        kind, rest = key.split(" ", 1)
        expected[kind, int(rest.split()[1 if kind == "copy" else 0])] += n
    seen = collections.Counter([("copy", c["bytes"]) for c in trace.copies] +
                               [("set", s["bytes"]) for s in trace.sets])
    checks.differences("copies and sets", expected, seen)
    sensible(trace)
    for copy in trace.copies:
        checks.contains("the call of a copy", "cuMemcpy", trace.call_of(copy)["name"])


def test_gpu_graphs_have_the_kernels_of_their_nodes(case):
    trace = record(case, "gpugraphs", 5, 4)
    equal_kernels(trace, counts_of(case))
    sensible(trace)
    of_graphs = collections.Counter(k["correlationId"] for k in trace.kernels
                                    if trace.call_of(k)["name"].startswith("cuGraphLaunch"))
    checks.equal("kernels of each graph launch", {5: 4, 2: 4},
                 dict(collections.Counter(of_graphs.values())))


REPLAYED = [("capture_both;capture_attention", "tick()", 160), ("capture_backward", "block", 160), ("capture_updated", "tick()", 160),
            ("capture_both;capture_transfers", "HtoD", None), ("capture_both;capture_transfers", "Device", None), ("main;parent_of", "plain_name", 80)]


def by_place(case, trace):
    """Time of the GPU in a profile of a trace: by the stack's text, and what ran."""
    path = case.path("nodes.folded")
    done = case.cuscope("profile", "--force", trace, "-o", path, name="profile")
    checks.equal("status of profile", 0, done.wait())
    with open(path) as file:
        return [line.rsplit(" ", 1) for line in file if "[GPU_" in line]


def check_replayed(case, trace, scale=1):
    lines = by_place(case, trace)
    for place, kernel, us in REPLAYED:
        found = [int(weight) for stack, weight in lines if f"{place};" in stack and kernel in stack.rsplit(";", 1)[1]]
        if len(found) != 1 or (us and abs(found[0] - us * scale) > us * scale / 4):
            raise Failure(f"{kernel} of {place}: {found} us, should be {us}: {lines}")
    if any("capture_update;" in stack for stack, _ in lines):
        raise Failure(f"what was updated still runs: {lines}")


def test_gpu_nodes_are_where_they_were_captured(case):
    """On any thread, also in a clone that is a child of another graph, and after an update; a node made by hand where it is added."""
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    done = start(case, ["--stacks", "--", Places.program("gpunodes"), "20"])
    checks.equal("status", 0, done.wait())
    check_replayed(case, case.path("trace.cuscope"))
    check_stacks_of_nodes(case, case.path("trace.cuscope"))


def check_stacks_of_nodes(case, trace):
    """Each export has the stack of the call that was captured, of copies by its number."""
    for ending in ("jsonl", "csv", "json", "html", "pftrace"):
        checks.equal(f"status of export to {ending}", 0, case.cuscope("export", trace, "-o", case.path(f"nodes.{ending}"), name=ending).wait())
    with open(case.path("nodes.jsonl")) as file:
        events = [json.loads(line) for line in file]
    frames = {event["stack"]: [frame.get("function") for frame in event["frames"]] for event in events if event["type"] == "stack"}
    copies = [event for event in events if event["type"] == "gpu" and event["op"] == "copy" and event.get("graph_node")]
    checks.equal("copies of graphs", 40, len(copies))
    if not all("capture_transfers" in frames[event["stack"]] for event in copies):
        raise Failure(f"a copy is elsewhere: {copies[0]}")
    with open(case.path("nodes.csv"), newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["graph_node"] and row["direction"]]
    checks.equal("stacks of copies in csv", [str(event["stack"]) for event in copies], [row["stack"] for row in rows])
    with open(case.path("nodes.json")) as file:
        chrome = json.load(file)
    at = chrome["stackFrames"]

    def names(number):
        while number is not None:
            yield at[str(number)]["name"]
            number = at[str(number)].get("parent")

    nodes = [event for event in chrome["traceEvents"] if event.get("cat") == "gpu_memcpy" and event["args"].get("graph node id")]
    checks.equal("copies of graphs in json", 40, len(nodes))
    if not all(any("capture_transfers" in name for name in names(event["sf"])) for event in nodes):
        raise Failure(f"a copy is elsewhere in json: {nodes[0]}")
    page = Page(case.path("nodes.html"))
    nodes = [row for _, row in page.rows("work") if "node=" in row["detail"] and "HtoD" in row["name"]]
    checks.equal("copies of graphs in html", 40, len(nodes))
    stacks = page.stacks()
    if not all(any("capture_transfers" in words[0] for words in stacks[row["stack"] - 1]) for row in nodes):
        raise Failure(f"a copy is elsewhere in html: {nodes[0]}")


def test_gpu_nodes_made_before_are_where_they_are_launched(case):
    """cuscope comes when all is captured."""
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    program = case.program("gpunodes", "1000", "wait", stdin=subprocess.PIPE)
    wait_until(lambda: "captured" in program.out(), "the program to capture")
    done = start(case, ["--stacks", "-p", program.pid])
    wait_until(lambda: "GPU times of process" in done.err(), "the agent to measure", LIMIT_SECONDS)
    program.process.stdin.write(b"\n")
    program.process.stdin.close()
    program.wait()
    checks.equal("status", 0, done.wait())
    places = {stack.split(";")[-3] for stack, _ in by_place(case, case.path("trace.cuscope"))}
    if places != {"replay", "sample_launch"}:
        raise Failure(f"kernels are in {places}; record said {done.err()}")


def test_gpu_nodes_of_a_program_that_ran_before(case):
    """It captures when cuscope is in it, whose library is a file of that process alone then; `why` walks them as well."""
    case.env = {"SIMCUDA_TIME_SCALE": "1"}
    for name, words in (("record", ["--stacks"]), ("why", [])):
        program = case.program("gpunodes", "40", "late", stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in program.out(), "the program to begin")
        trace = case.path(f"{name}.cuscope")
        cupti = ["--cupti", Places.simcuda("libcupti.so.13")]
        done = case.cuscope(name, "--gpu", *cupti, *words, "-o", trace, "-p", program.pid, "--duration", "30s", name=name)
        wait_until(lambda: "GPU times of process" in done.err(), "the agent to measure", LIMIT_SECONDS)
        time.sleep(1)  # until the library's own file is known
        program.process.stdin.write(b"\n")
        program.process.stdin.close()
        program.wait()
        checks.equal(f"status of {name}", 0, done.wait())
        check_replayed(case, trace, scale=2)


def test_gpu_several_gpus(case):
    case.env = {"SIMCUDA_DEVICES": "3"}
    trace = record(case, "gpudevices", 3)
    equal_kernels(trace, counts_of(case))
    sensible(trace)
    checks.equal("kernels by device and blocks", {(0, 1): 1, (1, 2): 2, (2, 3): 3},
                 dict(collections.Counter((k["deviceId"], k["gridX"]) for k in trace.kernels)))


def test_gpu_runtime_programs_find_the_libcupti_beside_their_runtime(case):
    process = start(case, ["--", Places.program("runtime13")], cupti=None)
    checks.equal("status", 0, process.wait())
    checks.contains("what it said", r"by \S*/simcuda/libcupti.so.13 \(CUDA 13.0\)", process.err())
    trace = read(case)
    sensible(trace)
    if not trace.kernels or not trace.copies:
        raise Failure(f"{len(trace.kernels)} kernels, {len(trace.copies)} copies")
    names = {trace.call_of(c)["name"] for c in trace.copies}
    if not any(name.startswith("cudaMemcpy") for name in names):
        raise Failure(f"copies belong to {names}: the outermost call is the runtime's")


def test_gpu_only_what_is_asked_for(case):
    trace = record(case, "gpucopies", 2, options=["--gpu=sets"])
    # --gpu alone, which start() gives, asks for the rest: kinds add up
    if not trace.copies:
        raise Failure("kinds of several --gpu are to add up")
    process = case.cuscope("record", "-o", case.path("sets.cuscope"), "--gpu=sets", "--cupti",
                           Places.simcuda("libcupti.so.13"), "--", Places.program("gpucopies"), "2")
    checks.equal("status", 0, process.wait())
    trace = read(case, "sets")
    checks.equal("copies", 0, len(trace.copies))
    if not trace.sets:
        raise Failure("no sets")


def test_gpu_calls_that_are_not_traced(case):
    """Kernels of launches that nobody asked to see are there, and belong to no call."""
    trace = record(case, "gpuloop", 1, 50, 1, options=["--class", "memory"])
    equal_kernels(trace, counts_of(case))
    checks.equal("numbers of calls", {0}, {k["correlationId"] or 0 for k in trace.kernels})


def test_gpu_entries_only(case):
    trace = record(case, "gpuloop", 1, 50, 1, options=["--no-returns"])
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)


def test_gpu_what_cuscope_takes_in_cuinit_is_not_cuinits(case):
    """CUPTI is loaded within it: told as overhead, and taken off the call, live and from the file."""
    case.env = {"SIMCUPTI_LOAD_MS": "1000"}
    trace = record(case, "gpuloop", 1, 50, 1)
    out = case.path("trace.jsonl")
    export = case.cuscope("export", case.path("trace.cuscope"), "-o", out)
    checks.equal("status of the export", 0, export.wait())
    with open(out) as lines:
        events = [json.loads(line) for line in lines]
    init = [e for e in events if e.get("name") == "cuInit"]
    loading = [e for e in events if e.get("name") == "CUPTI Loading"]
    checks.equal("cuInit, and loading", (1, 1), (len(init), len(loading)))
    took = loading[0]["duration_us"]
    if took < 1_000_000 or init[0]["duration_us"] > 500_000:
        raise Failure(f"loading took {took} us, and cuInit {init[0]['duration_us']}")
    checks.equal("threads", init[0]["tid"], loading[0]["tid"])
    rows = case.cuscope("report", case.path("trace.cuscope"), "cuda_api_sum", "--format", "csv")
    checks.equal("status", 0, rows.wait())
    total = next(line.split(",") for line in rows.out().splitlines() if line.endswith(",cuInit"))
    if int(total[1]) > 500_000_000:
        raise Failure(f"cuda_api_sum has {total}")
    trace_out = case.start_trace(["--gpu", "--cupti", Places.simcuda("libcupti.so.13")],
                                 ["--", Places.program("gpuloop"), "1", "50", "1"], name="live")
    live = case.result(trace_out, name="live").calls(name="cuInit")
    if live[0]["duration_us"] > 500_000:
        raise Failure(f"live, cuInit took {live[0]['duration_us']} us")
    if len(trace.kernels) < 50:
        raise Failure("no kernels")


# ---- what libcupti may do ------------------------------------------------------------------------


def test_gpu_numbers_that_wrap(case):
    case.env = {"SIMCUPTI_FIRST_CORRELATION": str(2**32 - 200)}
    trace = record(case, "gpuloop", 1, 50, 2)
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)
    sensible(trace)


def test_gpu_buffers_that_come_late_and_shuffled(case):
    case.env = {"SIMCUPTI_LATE_MS": "150", "SIMCUPTI_SHUFFLE": "1"}
    trace = record(case, "gpuloop", 0, 50, 4)
    equal_kernels(trace, counts_of(case))
    one_call_each(trace)
    sensible(trace)
    ends = [k["end"] for k in trace.kernels]
    if ends != sorted(ends):
        raise Failure("kernels are not in order of their ends")


def test_gpu_impossible_times_are_left_out_and_counted(case):
    case.env = {"SIMCUPTI_BAD_TIMES": "7"}
    trace = record(case, "gpuloop", 1, 50, 1)
    launched = sum(counts_of(case).of("launches").values())
    bad = lost(case, "gpu_bad_times")
    checks.equal("kernels", launched - launched // 7, len(trace.kernels))
    # of the last ones of a program, those without an end may as well be unfinished
    if not launched // 7 // 4 <= bad <= launched // 7:
        raise Failure(f"{bad} of {launched} were counted")
    sensible(trace)


def test_gpu_work_that_seems_to_begin_before_its_call_is_there(case):
    """The GPU's clock is a little behind, as was seen on real ones."""
    case.env = {"SIMCUPTI_BEHIND_NS": "50000"}
    process = case.cuscope("trace", "--gpu", "--cupti", Places.simcuda("libcupti.so.13"), "--json-summary",
                           case.path("summary.json"), "--", Places.program("gpuloop"), "1", "50", "1")
    checks.equal("status", 0, process.wait())
    with open(case.path("summary.json")) as file:
        summary = json.load(file)
    launched = sum(counts_of(case).of("launches").values())
    checks.equal("kernels", launched, sum(kernel["runs"] for kernel in summary["gpu"]["kernels"]))
    checks.equal("left out", 0, summary["missed"]["lost"]["gpu_bad_times"])
    if not 1000 < summary["gpu"]["clock_error_ns"] <= 50000:
        raise Failure(f"the clocks are said to differ by {summary['gpu']['clock_error_ns']} ns")
    checks.contains("a kernel", r"\[kernel\].* begins \d+\.\d+ us before its call \(clocks differ\)", process.out())


def lost(case, key):
    summary = case.cuscope("report", case.path("trace.cuscope"), "summary", "--format", "json")
    checks.equal("status", 0, summary.wait())
    return int(re.search(rf'"{key}": *(\d+)', summary.out()).group(1))


def test_gpu_a_full_ring_is_counted(case):
    trace = record(case, "gpuloop", 1, 2000, 2, options=["--ring-size", "64KiB"], stdin=subprocess.PIPE)
    if not lost(case, "gpu_ring_full"):
        raise Failure(f"nothing was lost of {len(trace.kernels)} kernels in a ring of 64 KiB")
    if not trace.kernels:
        raise Failure("no kernels")


# ---- processes ------------------------------------------------------------------------------------


def test_gpu_forks_and_execs(case):
    process = start(case, ["--", Places.program("gpufork"), "3"])
    checks.equal("status", 0, process.wait())
    trace = read(case)
    equal_kernels(trace, counts_of(case))
    sensible(trace)
    checks.equal("processes with kernels", 2, len({k["pid"] for k in trace.kernels}))
    checks.equal("notices", 2, process.err().count("GPU times of process"))


def test_gpu_forks_before_cuda_is_used(case):
    """Parent, child and grandchild each initialise CUDA, and get an agent. The younger ones end by
    _exit at once, and take with them what libcupti holds."""
    process = start(case, ["--", Places.program("fork"), "before"])
    checks.equal("status", 0, process.wait())
    checks.equal("notices", 3, process.err().count("GPU times of process"))
    trace = read(case)
    checks.equal("launches", 3, len(trace.launches()))
    if not 1 <= len(trace.kernels) <= 3:
        raise Failure(f"{len(trace.kernels)} kernels")
    sensible(trace)


def test_gpu_a_program_that_execs_another(case):
    """Each program gets an agent of its own; records that exec takes away are those of the old."""
    process = start(case, ["--", Places.program("exec"), "1"])
    checks.equal("status", 0, process.wait())
    trace = read(case)
    sensible(trace)
    if not 2 <= len(trace.copies) <= 4:
        raise Failure(f"{len(trace.copies)} copies: the last programs of two processes made one each")
    checks.equal("notices", 2, process.err().count("GPU times of process"))


def test_gpu_two_processes_at_once(case):
    programs = [case.program("loop", 30, 1000, stdin=subprocess.PIPE) for _ in range(2)]
    for program in programs:
        wait_until(lambda p=program: "ready" in p.out(), "the program to begin")
    process = start(case, ["-p", ",".join(str(p.pid) for p in programs), "--duration", "2s"])
    checks.equal("status", 0, process.wait())
    trace = read(case)
    checks.equal("processes with kernels", {p.pid for p in programs}, {k["pid"] for k in trace.kernels})
    sensible(trace, unknown=4)


def test_gpu_the_end_of_a_process_comes_after_its_last_kernel(case):
    trace = record(case, "gpulast", 2000)
    checks.equal("launches", 2000, len(trace.launches()))
    if len(trace.kernels) > 2000:
        raise Failure(f"{len(trace.kernels)} kernels of 2000 launches")
    sensible(trace)


def not_recorded(case, trace, of):
    """Each launch has its kernel or is counted, and none is twice."""
    checks.equal("launches", of, len(trace.launches()))
    checks.equal("kernels, and launches without", of,
                 len(trace.kernels) + lost(case, "gpu_not_recorded"))


def test_gpu_what_is_with_cupti_at_an_exit_at_once_is_counted(case):
    trace = record(case, "gpulast", 2000, "exit")
    not_recorded(case, trace, 2000)
    if len(trace.kernels) == 2000:
        raise Failure("nothing was with CUPTI")


def test_gpu_kernels_that_still_run_at_the_exit_are_counted(case):
    case.env = {"SIMCUDA_TIME_SCALE": "1000"}
    trace = record(case, "gpulast", 300)
    not_recorded(case, trace, 300)
    if len(trace.kernels) == 300:
        raise Failure("all kernels had ended")


def test_gpu_launches_beside_an_exit_are_counted(case):
    """Those of a thread that goes on while another one is in exit(), behind the last flush."""
    for turn in range(5):
        trace = record(case, "gpulast", 2000, "thread", options=["--force"] if turn else ())
        launches = trace.launches()
        ended = [c for c in launches if c["end"] > c["start"]]  # of the last one nobody knows whether it launched
        told = len(trace.kernels) + lost(case, "gpu_not_recorded")
        if not len(ended) <= told <= len(launches):
            raise Failure(f"{told} kernels and launches without, of {len(ended)} to {len(launches)} launches")
        if len(ended) <= 2000:
            raise Failure("nothing was launched beside the exit")


def test_gpu_what_is_with_cupti_at_an_exec_is_counted(case):
    trace = record(case, "/bin/sh", "-c", f"{Places.program('gpulast')} 500 exit; "
                   f"exec {Places.program('gpulast')} 700 exit")
    not_recorded(case, trace, 1200)


def test_gpu_launches_into_graphs_are_not_missed(case):
    """Nor any launch of programs that wait for their work."""
    record(case, "gpugraphs", 5, 4)
    checks.equal("not recorded", 0, lost(case, "gpu_not_recorded"))
    record(case, "gpustreams", 20, options=["--force"])
    checks.equal("not recorded", 0, lost(case, "gpu_not_recorded"))


def test_gpu_as_another_user(case):
    os.chmod(case.folder, 0o777)
    trace = record(case, "gpuloop", 1, 50, 1, options=["--user", "nobody", "--env", "S*"])
    if not trace.kernels:
        raise Failure("no kernels")
    sensible(trace)


def in_time_namespace(case, seconds, attached):
    """loop, whose clock is that far off, and a recording of it; loop ends when its input does."""
    unshare = ["/usr/bin/unshare", "--time", "--monotonic", str(seconds), "--boottime", str(seconds)]
    if case.start(*unshare, "true").wait():
        raise Skip("no time namespaces here")
    words = [*unshare, Places.program("loop"), "60", "1000"]
    if not attached:
        recording = program = start(case, ["--", *words], stdin=subprocess.PIPE)
    else:
        program = case.start(*words, stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in program.out(), "the program")
        recording = start(case, ["-p", program.pid])
    measures(recording)
    time.sleep(1)
    program.process.stdin.close()
    return recording


def gpu_in_time_namespace(case, seconds, attached):
    """CUPTI takes times from the process's clock; the calls have the machine's."""
    process = in_time_namespace(case, seconds, attached)
    checks.equal("status", 0, process.wait())
    checks.equal("left out", 0, lost(case, "gpu_bad_times"))
    trace = read(case)
    if len(trace.kernels) < 20:
        raise Failure(f"{len(trace.kernels)} kernels of {len(trace.launches())} launches")
    sensible(trace, unknown=2)
    for kernel in trace.kernels[2:]:
        if kernel["start"] - trace.call_of(kernel)["start"] > 1_000_000_000:
            raise Failure(f"a kernel began {kernel['start'] - trace.call_of(kernel)['start']} ns after its launch")


def test_gpu_in_a_time_namespace_that_is_behind(case):
    gpu_in_time_namespace(case, -1, False)


def test_gpu_in_a_time_namespace_that_is_ahead(case):
    gpu_in_time_namespace(case, 1000000, False)


def test_gpu_attached_to_a_time_namespace(case):
    gpu_in_time_namespace(case, 1000000, True)


def start_cleaned(case, *options, status=0):
    """The agent cannot come with the environment."""
    keep = [f"{key}={value}" for key, value in case.environment().items()
            if key in ("LD_LIBRARY_PATH", "SAMPLE_COUNTS", "SIMCUDA_TIME_SCALE")]
    process = start(case, ["--", "/usr/bin/env", "-i", *keep, Places.program("loop"), "60"], options,
                    stdin=subprocess.PIPE)
    if status:
        wait_until(lambda: "ready" in process.out(), "the program")
    else:
        measures(process)
    time.sleep(1)
    process.process.stdin.close()
    checks.equal("status", status, process.wait())
    return process, read(case)


def test_gpu_in_a_pid_namespace(case):
    """Threads have other numbers there; their calls are theirs all the same."""
    case.env = {"SIMCUDA_KERNEL_US": "50", "SIMCUDA_TIME_SCALE": "1"}
    process = start(case, ["--", "/usr/bin/unshare", "--pid", "--fork", "--kill-child",
                           Places.program("gpuloop"), "1", "10", "3"], stdin=subprocess.PIPE)
    checks.equal("status", 0, process.wait())
    trace = read(case)
    sensible(trace)
    by_thread = collections.defaultdict(set)
    for kernel in trace.kernels:
        by_thread[trace.call_of(kernel)["tid"]].add(kernel["streamId"])
    checks.equal("streams of each thread", [1, 1, 1], [len(streams) for streams in by_thread.values()])


def test_gpu_an_environment_that_was_cleaned(case):
    process, trace = start_cleaned(case, status=1)
    checks.contains("what it said", "With --no-hold cuscope enters it", process.err())
    checks.equal("kernels", 0, len(trace.kernels))


def test_gpu_an_environment_that_was_cleaned_and_no_hold(case):
    process, trace = start_cleaned(case, "--no-hold")
    checks.contains("what it said", "it was stopped for", process.err())
    if not trace.kernels:
        raise Failure("no kernels")
    sensible(trace, unknown=2)


# ---- launches that agents tell of instead of probes -----------------------------------------------


def told_once(case, trace):
    launched = sum(counts_of(case).of("launches").values())
    checks.equal("launches", launched, len(trace.launches()))
    checks.equal("kernels", launched, len(trace.kernels))
    one_call_each(trace)
    sensible(trace)


def test_gpu_each_launch_is_told_once(case):
    """Probes on launches go after 0.3 s, when the agent is there: nothing shows of that."""
    case.env = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "50"}
    trace = record(case, "gpuloop", 2, 10, 2, stdin=subprocess.PIPE)
    told_once(case, trace)
    checks.equal("names of kernels", {"tick()"}, {k["name"] for k in trace.kernels})
    launch = trace.rows("select a.gridX, a.blockX, s.value from cuscope_argument a join "
                        "CUPTI_ACTIVITY_KIND_RUNTIME c on c.rowid = a.callId join StringIds n on "
                        "n.id = c.nameId left join StringIds s on s.id = a.kernelId "
                        "where n.value like 'cuLaunch%'")
    checks.equal("shapes and kernels of launches", {(1, 32, "tick()")}, set(map(tuple, launch)))


def test_gpu_probes_that_come_and_go(case):
    """Each process that is born brings them back for a while."""
    case.env = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "50"}
    script = (f"exec 3<&0; {Places.program('gpuloop')} 4 10 2 <&3 & "
              "for i in 1 2 3 4 5 6 7; do sleep 0.5; done; wait")
    process = start(case, ["--", "/bin/sh", "-c", script], stdin=subprocess.PIPE)
    checks.equal("status", 0, process.wait())
    told_once(case, read(case))


# ---- processes that run ---------------------------------------------------------------------------


def start_loop(case, *arguments, program="loop"):
    process = case.program(program, *(arguments or (60, 1000)), stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    return process


def stop_loop(program):
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())


def test_gpu_attached(case):
    program = start_loop(case)
    process = start(case, ["-p", program.pid])
    measures(process)
    time.sleep(1)
    stop_loop(program)
    checks.equal("status", 0, process.wait())
    checks.contains("what it said", r"from \d+ ms on; it was stopped for \d+\.\d ms", process.err())
    trace = read(case)
    sensible(trace, unknown=2)
    first = min(k["correlationId"] for k in trace.kernels if k["correlationId"])
    checks.equal("kernels of launches from the first on",
                 len([c for c in trace.launches() if c["correlationId"] >= first]),
                 len([k for k in trace.kernels if k["correlationId"]]))


def test_gpu_attached_before_cuda_is_used(case):
    """A process that loads the driver later is entered after its first call that worked."""
    script = f"read x; exec {Places.program('loop')} 2 1000"
    shell = case.start("/bin/sh", "-c", script, stdin=subprocess.PIPE)
    process = start(case, ["-p", shell.pid])
    wait_until(lambda: "not loaded CUDA" in process.err(), "the trace to begin")
    shell.process.stdin.write(b"\n")
    shell.process.stdin.flush()
    checks.equal("status", 0, process.wait())
    checks.contains("what it said", f"GPU times of process {shell.pid} by", process.err())
    trace = read(case)
    if not trace.kernels:
        raise Failure("no kernels")
    sensible(trace, unknown=2)


def test_gpu_what_children_of_attached_processes_run(case):
    """Their environment knows nothing of an agent: they are entered, too."""
    script = f"read x; {Places.program('loop')} 2 1000; true"
    shell = case.start("/bin/sh", "-c", script, stdin=subprocess.PIPE)
    process = start(case, ["-p", shell.pid])
    wait_until(lambda: "waiting for it" in process.err(), "the trace to begin")
    shell.process.stdin.write(b"\n")
    shell.process.stdin.flush()
    checks.equal("status", 0, process.wait())
    trace = read(case)
    if not trace.kernels:
        raise Failure(f"no kernels: {process.err()}")
    sensible(trace, unknown=2)


def costs_of(program):
    """Nanoseconds of a launch, in each half second."""
    return [int(line.split()[1]) for line in program.out().splitlines()[1:] if line]


def loop_of_known_cost(case):
    program = start_loop(case, 120, 100, 1, program="gpuloop")
    wait_until(lambda: len(costs_of(program)) >= 3, "the first costs")
    return program, min(costs_of(program))


def is_as_fast_as(program, before):
    wait_until(lambda: costs_of(program)[-1] <= before * 1.5 + 1000, f"it to be as fast as before ({before} ns)", LIMIT_SECONDS)


def test_gpu_the_program_is_as_fast_afterwards(case):
    """SIMCUPTI_COST_NS makes every call slow until libcupti is left."""
    case.env = {"SIMCUPTI_COST_NS": "20000"}
    program, before = loop_of_known_cost(case)
    process = start(case, ["-p", program.pid])
    wait_until(lambda: costs_of(program)[-1] >= before + 15000, "libcupti to cost something", LIMIT_SECONDS)
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait())
    is_as_fast_as(program, before)
    stop_loop(program)


def test_gpu_windows(case):
    program = start_loop(case)
    process = start(case, ["-p", program.pid, "--duration", "3s", "--gpu-window", "200ms/1s"])
    checks.equal("status", 0, process.wait())
    stop_loop(program)
    trace = read(case)
    sensible(trace, unknown=8)
    seconds = [k["start"] / 1e9 for k in trace.kernels]
    gaps = [b - a for a, b in zip(seconds, seconds[1:]) if b - a > 0.5]
    if not 2 <= len(gaps) <= 3 or any(not 0.6 < gap < 1 for gap in gaps):
        raise Failure(f"times without kernels: {gaps}")
    summary = case.cuscope("report", case.path("trace.cuscope"), "summary")
    summary.wait()
    checks.contains("what was missed", "0.2 s in every 1 s", summary.out())
    checks.contains_not("what is said", "not all was seen", process.err())


def test_gpu_attach_and_detach_again(case):
    program = start_loop(case)
    for i in range(5):
        process = start(case, ["-p", program.pid], name=f"trace{i}")
        measures(process)
        time.sleep(0.3)
        process.signal(signal.SIGINT)
        checks.equal("status", 0, process.wait())
        trace = read(case, f"trace{i}")
        if not trace.kernels:
            raise Failure(f"no kernels in run {i}: {process.err()}")
        sensible(trace, unknown=2)
    stop_loop(program)


def test_gpu_an_idle_process_is_told_of(case):
    program = start_loop(case, program="gpuidle")
    begin = time.monotonic()
    process = start(case, ["-p", program.pid, "--duration", "500ms"])
    checks.equal("status", 0, process.wait())
    if time.monotonic() - begin > 8:
        raise Failure("it waited for too long")
    stop_loop(program)


# ---- how long ------------------------------------------------------------------------------------


def lasts(rows, least, most):
    """Seconds between the first and the last of them."""
    seconds = (max(r["start"] for r in rows) - min(r["start"] for r in rows)) / 1e9 if rows else 0
    if not least <= seconds <= most:
        raise Failure(f"{len(rows)} in {seconds} s, not {least} to {most} s")


def test_gpu_the_duration_begins_when_agents_are_in(case):
    """That takes longer here than what was asked for."""
    case.env = {"SIMCUPTI_LOAD_MS": "1000"}
    program = start_loop(case)
    process = start(case, ["-p", program.pid, "--duration", "300ms"])
    checks.equal("status", 0, process.wait())
    stop_loop(program)
    lasts(read(case).kernels, 0.25, 3)


def test_gpu_the_duration_of_a_command_begins_when_its_agent_is_in(case):
    """Also where it has not said anything yet: all that is seen then is a cuInit that has not returned."""
    for name in "SIMCUPTI_LOAD_MS", "SIMCUDA_INIT_MS":
        case.env = {name: "1000"}
        trace = record(case, "loop", 5, 1000, options=["--duration", "300ms"], stdin=subprocess.PIPE, name=name)
        lasts(trace.kernels, 0.25, 3)


def has_begun(case):
    """A recording: what it writes is whole pieces, its first calls are in the second one."""
    path = case.path("trace.cuscope")
    wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 1000, "the first calls")


def is_without(case, process, pid, why):
    """Nothing says that all is well, or to record with --gpu."""
    checks.equal("status", 1, process.wait())
    checks.contains("what it said", f"no GPU times of process {pid}: {why}", process.err())
    checks.contains("what it said last", "there are no GPU times, which --gpu asks for", process.err())
    info = case.cuscope("info", "--json", case.path("trace.cuscope"))
    info.wait()
    missed = json.loads(info.out())["missed"]
    checks.equal("complete", False, missed["complete"])
    checks.contains("missed", "no_gpu_times", json.dumps(missed["hooks"]))
    report = case.cuscope("report", case.path("trace.cuscope"), "cuda_gpu_kern_sum")
    report.wait()
    checks.contains("the report", "GPU times were wanted, and did not come", report.out())


def test_gpu_a_program_that_is_killed_before_its_agent_measures(case):
    case.env = {"SIMCUPTI_LOAD_MS": "20000"}
    program = start_loop(case)
    process = start(case, ["-p", program.pid])
    has_begun(case)
    program.signal(signal.SIGKILL)
    is_without(case, process, program.pid, "it ended before its agent measured")


def test_gpu_a_trace_that_is_ended_before_its_agent_measures(case):
    """The agent measures for a moment while the trace ends: a kernel of it would belie what was told."""
    case.env = {"SIMCUPTI_LOAD_MS": "2500"}
    program = start_loop(case)
    process = start(case, ["-p", program.pid])
    has_begun(case)
    process.signal(signal.SIGINT)
    is_without(case, process, program.pid, "the trace ended before its agent measured")
    stop_loop(program)


def test_gpu_the_last_second_has_what_ran_in_it(case):
    """GPU times come seconds late: a file that is asked for waits for them."""
    program = start_loop(case)
    process = start(case, ["-p", program.pid, "--last", "1s"], name="trace")
    measures(process)
    time.sleep(4)
    asked = time.monotonic()
    process.signal(signal.SIGUSR2)
    wait_until(lambda: os.path.exists(case.path("trace.cuscope")), "the file")
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait())
    stop_loop(program)
    trace = read(case)
    info = case.cuscope("info", "--json", case.path("trace.cuscope"))
    info.wait()
    begin = json.loads(info.out())["begin_ns"] / 1e9
    for rows in (trace.kernels, trace.launches()):
        seconds = [begin + r["start"] / 1e9 for r in rows]
        if not seconds or min(seconds) > asked - 0.9 or max(seconds) < asked - 0.1:
            raise Failure(f"{len(rows)} from {min(seconds) - asked} to {max(seconds) - asked} s around the signal")


def test_gpu_a_program_whose_calls_are_not_traced_has_its_name(case):
    """Its name comes with no call then, and it has ended when its kernels are told of."""
    process = case.cuscope("trace", "--gpu", "--cupti", Places.simcuda("libcupti.so.13"), "--class", "graph",
                           "--format", "jsonl", "--", Places.program("gpustreams"))
    checks.equal("status", 0, process.wait())
    lines = [json.loads(line) for line in process.out().splitlines()]
    names = {line["comm"] for line in lines if "comm" in line}
    checks.equal("names", {"gpustreams"}, names)


# ---- what cannot be had --------------------------------------------------------------------------


def goes_on(case, said, program="gpuloop", arguments=(1, 20, 1), cupti="libcupti.so.13", options=()):
    """The run goes on without GPU times, and says why."""
    process = start(case, ["--", Places.program(program), *map(str, arguments)], options, cupti=cupti)
    checks.equal("status", 1, process.wait())
    checks.contains("what it said last", "there are no GPU times, which --gpu asks for", process.err())
    checks.contains("what it said", said, process.err())
    trace = read(case)
    if not trace.calls:
        raise Failure("no calls")
    checks.equal("kernels", 0, len(trace.kernels))
    summary = case.cuscope("report", case.path("trace.cuscope"), "summary")
    summary.wait()
    checks.contains("what was missed", "without GPU times", summary.out())


def test_gpu_another_profiler(case):
    case.env = {"SIMCUPTI_BUSY": "1"}
    goes_on(case, "another|profiler")


def test_gpu_another_profiler_is_named(case):
    case.env = {"SIMCUPTI_OTHER": "alone"}
    goes_on(case, r"another profiler \(CUPTI for other tool\) is using CUPTI")


def test_gpu_beside_another_tool(case):
    case.env = {"SIMCUPTI_OTHER": "several"}
    trace = record(case, "gpuloop", 1, 20, 1, said="13.3/libcupti.so.13", cupti="13.3/libcupti.so.13")
    equal_kernels(trace, counts_of(case))


def test_gpu_a_libcupti_that_fails(case):
    case.env = {"SIMCUDA_FAIL": "cuptiSubscribe:*=999"}
    goes_on(case, "cuptiSubscribe")


def test_gpu_a_libcupti_of_another_cuda(case):
    """CUPTI of CUDA 11 was seen to end programs on a driver of CUDA 13."""
    goes_on(case, r"does not fit its driver.*the one of --cupti \(of CUDA 11\).*of CUDA 12 or 13",
            cupti="libcupti.so.11.0")


def test_gpu_a_libcupti_of_the_cuda_before(case):
    trace = record(case, "gpuloop", 1, 20, 1, said="libcupti.so.12", cupti="libcupti.so.12")
    equal_kernels(trace, counts_of(case))


def test_gpu_a_libcupti_that_is_none(case):
    fifo = case.path("fifo")
    os.mkfifo(fifo)
    for path, said in (("/bin/true", "no libcupti"), (fifo, "no regular file"), ("/nothing", "cannot open")):
        process = start(case, ["--", Places.program("gpuloop"), "1"], ["--cupti", path])
        checks.equal("status", 1, process.wait())
        checks.contains("what it said", "--cupti: .*" + said, process.err())


def test_gpu_wrong_usage(case):
    for options, said in ((["--gpu=kernel"], "did you mean 'kernels'"),
                          (["--gpu", "kernels,copies"], "follows '=': --gpu=kernels,copies"),
                          (["--gpu-window", "1s/30s"], "goes with --gpu"),
                          (["--cupti", "x"], "goes with --gpu"),
                          (["--gpu", "--gpu-window", "3s/1s"], "shorter than the period"),
                          (["--gpu", "--gpu-window", "3s"], "is no window")):
        process = case.cuscope("trace", *options, "--", "true")
        checks.equal("status", 2, process.wait())
        checks.contains("what it said", said, process.err())
    for tool in ("memleak", "launches", "bandwidth"):
        process = case.cuscope(tool, "--gpu", "--", "true")
        checks.equal("status", 2, process.wait())
        checks.contains("what it said", "trace, record and top have it", process.err())


def test_gpu_a_process_that_a_debugger_has(case):
    """ptrace is for one at a time."""
    program = start_loop(case)
    seize = ("import ctypes, sys, time; c = ctypes.CDLL(None, use_errno=True); "
             "print(c.ptrace(0x4206, int(sys.argv[1]), None, None), flush=True); time.sleep(30)")
    debugger = case.start("/usr/bin/python3", "-c", seize, str(program.pid))
    wait_until(lambda: debugger.out().strip() == "0", "the debugger to attach")
    process = start(case, ["-p", program.pid, "--duration", "1s"])
    checks.equal("status", 1, process.wait())
    checks.contains("what it said", f"process {program.pid} is traced by process {debugger.pid}",
                    process.err())
    trace = read(case)
    if not trace.calls:
        raise Failure("no calls")
    debugger.stop()
    stop_loop(program)


# ---- deaths ---------------------------------------------------------------------------------------


def test_gpu_killed_the_agent_leaves_by_itself(case):
    case.env = {"SIMCUPTI_COST_NS": "20000"}
    program, before = loop_of_known_cost(case)
    process = start(case, ["-p", program.pid])
    wait_until(lambda: costs_of(program)[-1] >= before + 15000, "libcupti to cost something", LIMIT_SECONDS)
    process.signal(signal.SIGKILL)
    process.wait()
    is_as_fast_as(program, before)
    stop_loop(program)


# ---- the GPUs of the machine --------------------------------------------------------------------


def test_gpu_the_machine_tells_its_gpus(case):
    """NVML's answers stand in the file, and in its exports the tables that join them have rows."""
    case.env["LD_LIBRARY_PATH"] = Places.libraries() + ":" + os.path.join(Places.build, "simnvml")
    record(case, "gpuloop", 1, 50, 1)
    with sqlite3.connect(case.path("trace.sqlite")) as db:
        gpus = db.execute("SELECT name, uuid, busLocation, smCount, computeMajor, clockRate, totalMemory "
                          "FROM TARGET_INFO_GPU").fetchall()
        devices = db.execute("SELECT c.cudaId, g.name FROM TARGET_INFO_CUDA_DEVICE c "
                             "JOIN TARGET_INFO_GPU g ON g.id = c.gpuId").fetchall()
    checks.equal("GPUs", [("NVIDIA Simulated 0", "GPU-00000000-0000-0000-0000-000000000000",
                           "0000:18:00.0", 132, 9, 1980000000, 80 << 30)], gpus)
    checks.equal("devices", [(0, "NVIDIA Simulated 0")], devices)


def test_gpu_a_management_library_that_hangs_holds_nothing_up(case):
    case.env["LD_LIBRARY_PATH"] = Places.libraries() + ":" + os.path.join(Places.build, "simnvml")
    case.env["SIMNVML_SLOW"] = "60000"
    trace = record(case, "gpuloop", 1, 50, 1)
    equal_kernels(trace, counts_of(case))
