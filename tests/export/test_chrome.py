# SPDX-License-Identifier: MIT
"""Chrome's JSON: the golden outputs, the rules of those who read it, and the rules themselves."""

import gzip
import json
import os
import subprocess
import sys

from case import Failure, Skip, equal, hide_version

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema"))

import hta_rules  # noqa: E402 (found by the line above)


def chrome(case, trace, *options, name="out.json"):
    return hta_rules.parse(hta_rules.text_of(case.export(trace, name, *options)))


def obeys(*paths):
    findings = hta_rules.check(paths)
    if findings:
        raise Failure("; ".join(findings[:5]))


def test_chrome_golden_outputs(case):
    for trace in ("plain", "gpu", "lost", "ranges", "stacks"):
        path = case.export(trace, trace + ".json")
        obeys(path)
        with open(path) as file:
            case.golden(trace + ".json", hide_version(case, file.read().replace(case.folder, ".")))


def test_chrome_says_what_was_missed_as_all_else_does(case):
    told = chrome(case, "ranges")["cuscope"]
    equal("complete", False, told["complete"])
    equal("rings", 17, told["lost"]["gpu_ring_full"])
    equal("hooks", ["no_gpu_times"], [miss["kind"] for miss in told["hooks"]])


def test_chrome_edges_obey_the_rules(case):
    obeys(case.export("edges", "edges.json"))
    obeys(case.export("hard stacks", "stacks.json"))


def test_chrome_names_are_as_they_were(case):
    """Whatever they hold, JSON can say it; but for bytes that are no UTF-8."""
    names = {event["name"] for event in chrome(case, "edges")["traceEvents"] if event.get("cat") == "kernel"}
    equal("kernels", {"plain(int)", 'k"\\\x1b[31m\n\ufffd<"x">'}, names)


def test_chrome_a_gpu_is_named_after_itself_and_its_rows_after_who_uses_it(case):
    names = {}
    for event in chrome(case, "gpu")["traceEvents"]:
        if event["name"] in ("process_name", "thread_name") and event["pid"] < 2:
            names[event["pid"], event["tid"] if event["name"] == "thread_name" else "all"] = event["args"]["name"]
    equal("names", {(0, "all"): "GPU 0", (0, 7): "stream 7 of vectorAdd 4242",
                    (0, 100000014): "stream 14 of python3 5151", (0, 100000013): "stream 13 of python3 5151",
                    (1, "all"): "GPU 1", (1, 13): "stream 13"}, names)
    alone = {event["args"]["name"] for event in chrome(case, "gpu", "--pid", "5151", name="one.json")["traceEvents"]
             if event["name"] == "thread_name" and event["pid"] == 0}
    equal("rows of the only process", {"stream 14", "stream 13"}, alone)


def test_chrome_compressed_is_the_same(case):
    path = case.export("gpu", "gpu.json.gz")
    obeys(path)
    with gzip.open(path, "rt") as file, open(case.export("gpu", "gpu.json")) as plain:
        equal("text", plain.read(), file.read().replace("gpu.json.gz", "gpu.json"))


def test_chrome_of_one_process_has_its_own_numbers(case):
    obeys(case.export("gpu", "one.json", "--pid", "5151"))
    equal("processes of calls", {5151},
          {event["pid"] for event in chrome(case, "gpu", "--pid", "5151")["traceEvents"]
           if event.get("cat") == "cuda_runtime"})


def test_chrome_ranks_are_told_apart(case):
    paths = [case.export("gpu", f"rank{rank}.json", "--rank", f"{rank}/2") for rank in range(2)]
    obeys(*paths)
    for path in paths:
        equal("world_size", 2, hta_rules.parse(hta_rules.text_of(path))["distributedInfo"]["world_size"])


def test_chrome_part_of_a_trace_has_whole_pairs_only(case):
    for part in (("--from", "5ms", "--to", "5.6ms"), ("--from", "12.53ms"), ("--min-duration", "50us")):
        obeys(case.export("gpu", "part.json", "--force", *part))


def test_chrome_failed_calls_only(case):
    slices = [event for event in chrome(case, "gpu", "--failed")["traceEvents"] if event["ph"] == "X"]
    equal("calls without an error", [], [event for event in slices if "error" not in event["args"]])
    if not slices:
        raise Failure("no failed call was written")


# ---- the rules: each sees what is broken on purpose

def first(trace, **wanted):
    return next(event for event in trace["traceEvents"]
                if all(event.get(key) == value for key, value in wanted.items()))


def drop_bandwidth(trace):
    del first(trace, cat="gpu_memcpy")["args"]["memory bandwidth (GB/s)"]


def overlap(trace):
    at = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    at[1]["ts"] = at[0]["ts"] + 0.001


def unsort(trace):
    first(trace, name="process_sort_index", pid=0)["args"]["sort_index"] += 1


def rename_launches(trace):
    for event in trace["traceEvents"]:
        if event["name"] == "cudaLaunchKernel":
            event["name"] = "cudaLaunchKernelExC"


BROKEN = {
    "skeleton": [lambda t: t.update(schemaVersion=2), lambda t: t.pop("baseTimeNanoseconds"),
                 lambda t: t.update(last=1), lambda t: t.update(deviceProperties=[])],
    "rule 2": [lambda t: first(t, ph="X").pop("dur"), lambda t: first(t, ph="X").update(cat="Trace")],
    "rule 3": [lambda t: first(t, cat="cuda_runtime")["args"].update(stream=7),
               lambda t: first(t, cat="kernel")["args"].update(stream=0),
               lambda t: first(t, cat="kernel")["args"].pop("correlation"),
               lambda t: first(t, cat="kernel").update(pid=4242)],
    "rule 4": [lambda t: t["traceEvents"].pop(0) and t["traceEvents"].insert(0, first(t, ph="X")),
               lambda t: t["traceEvents"].remove(first(t, name="thread_name", pid=0)) or
               t["traceEvents"].remove(first(t, name="thread_sort_index", pid=0)), unsort,
               lambda t: t["traceEvents"].append(dict(first(t, name="process_name")))],
    "rule 6": [rename_launches, lambda t: first(t, name="cudaMalloc").update(name="cudaMalloc_v2"),
               lambda t: first(t, name="cudaMalloc").update(name="cudaMalloc_ptsz")],
    "rule 7": [lambda t: t["traceEvents"].remove(first(t, cat="kernel")),
               lambda t: t["traceEvents"].append(dict(first(t, name="cudaLaunchKernel"), tid=4243)),
               lambda t: t["traceEvents"].append(dict(first(t, cat="kernel"), tid=99))],
    "rule 9": [lambda t: first(t, ph="X").update(ts=1.5), lambda t: first(t, ph="X").update(ts=1e13)],
    "flows": [lambda t: t["traceEvents"].remove(first(t, ph="f")), lambda t: first(t, ph="s").update(tid=1),
              lambda t: first(t, ph="f").update(ts=1.0), lambda t: first(t, ph="f").pop("bp")],
    "rows": [overlap],
    "kernels": [lambda t: first(t, cat="kernel")["args"].pop("grid")],
    "copies": [drop_bandwidth, lambda t: first(t, cat="gpu_memcpy")["args"].update(bytes=1)],
}

BROKEN_TEXT = {
    "rule 1": [lambda text: text.replace('"rank": ', '"rank":'),
               lambda text: text.replace('{\n', '{\n  "other": {"rank": 3},\n', 1)],
    "rule 5": [lambda text: text.replace(".000,", ".0,", 1), lambda text: text.replace('"dur": 1', '"dur": -1', 1)],
}


def findings_of(case, text):
    path = case.path("broken.json")
    with open(path, "w") as file:
        file.write(text)
    return hta_rules.check([path])


def test_chrome_rules_see_what_is_broken(case):
    text = hta_rules.text_of(case.export("gpu", "gpu.json"))
    texts = [(rule, change(text)) for rule, changes in BROKEN_TEXT.items() for change in changes]
    for rule, changes in BROKEN.items():
        for change in changes:
            trace = hta_rules.parse(text)
            change(trace)
            texts.append((rule, json.dumps(trace, indent=1)))
    for i, (rule, broken) in enumerate(texts):
        if not any(finding.startswith(rule) for finding in findings_of(case, broken)):
            raise Failure(f"{rule} does not see change {i}")
    if not any("files are of rank" in finding for finding in hta_rules.check([case.path("gpu.json")] * 2)):
        raise Failure("rule 1 does not see two files of a rank")


def sees(case, trace, rule, changes):
    text = hta_rules.text_of(case.export(trace, trace + ".json"))
    for i, change in enumerate(changes):
        broken = hta_rules.parse(text)
        change(broken)
        if not any(finding.startswith(rule) for finding in findings_of(case, json.dumps(broken, indent=1))):
            raise Failure(f"{rule} does not see change {i}")


def test_chrome_rules_see_broken_ranges(case):
    sees(case, "ranges", "rule 3", [lambda t: first(t, cat="user_annotation")["args"].update(stream=7),
                                    lambda t: first(t, cat="cuda_sync").update(name="Some Sync"),
                                    lambda t: first(t, cat="cuda_sync").update(pid=7)])


def test_chrome_rules_see_broken_waits(case):
    sees(case, "events", "rule 10", [
        lambda t: first(t, name="cudaEventRecord")["args"].pop("correlation"),
        lambda t: first(t, name="Event Sync")["args"].pop("wait_on_stream"),
        lambda t: first(t, name="Event Sync")["args"].update(wait_on_cuda_event_record_corr_id=1),
        lambda t: first(t, name="Event Sync")["args"].update(wait_on_stream=99)])


def test_chrome_waits_name_the_record_that_they_wait_for(case):
    obeys(case.export("events", "events.json"))
    events = chrome(case, "events")["traceEvents"]
    records = {event["args"]["correlation"]: round(event["ts"]) % 1000 for event in events
               if event["name"] == "cudaEventRecord"}
    waits = [(event["name"], records.get(event["args"]["wait_on_cuda_event_record_corr_id"]),
              event["args"]["wait_on_stream"], event["args"]["wait_on_cuda_event_id"])
             for event in events if event.get("cat") == "cuda_sync" and event["name"] != "Context Sync"]
    step = [("Stream Wait Event", 20, 13, 1), ("Event Sync", 250, 14, 2)]
    equal("waits", 3 * step + [("Stream Wait Event", None, -1, 3), ("Event Sync", 250, 14, 2)], waits)


def test_chrome_a_process_is_named_once_after_what_it_became(case):
    events = chrome(case, "events")["traceEvents"]
    equal("names", [("process_name", "train"), ("thread_name", "thread 77 (train)")],
          [(event["name"], event["args"]["name"]) for event in events
           if event["name"] in ("process_name", "thread_name") and event["pid"] == 77])


def test_chrome_kernels_say_how_well_they_fill_a_gpu(case):
    """264 blocks of 256 threads on 132 multiprocessors: 2 of 8 that there would be room for."""
    kernel = first(chrome(case, "events"), cat="kernel")["args"]
    equal("what a multiprocessor has", [0, 2.0, 16.0, 25],
          [kernel[key] for key in ("queued", "blocks per SM", "warps per SM", "est. achieved occupancy %")])
    equal("without a GPU that is known", False, "blocks per SM" in first(chrome(case, "edges", name="edges.json"), cat="kernel")["args"])


def test_chrome_ranges_are_on_gpus_too(case):
    """From the first to the last work that was asked for in them, in a row of each stream."""
    events = chrome(case, "events")["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name" and not event["pid"]}
    seen = [(event["name"], names[event["tid"]], round(event["ts"]) % 1000, event["dur"]) for event in events
            if event.get("cat") == "gpu_user_annotation"]
    equal("steps", [step for i in range(4) for step in (
        (f"ProfilerStep#{i}", "stream 13 (annotations)", 30, 200.0),
        (f"ProfilerStep#{i}", "stream 14 (annotations)", 260, 300.0))], seen)
    inner = {event["name"] for event in chrome(case, "ranges", name="ranges.json")["traceEvents"]
             if event.get("cat") == "gpu_user_annotation"}
    equal("work is that of the innermost range", {"aten::mm", "forward \x1b[31m", "ncclAllReduce", "optimizer"}, inner)


HTA = """
import os, sys
from hta.trace_analysis import TraceAnalysis
path, step = sys.argv[1:]
analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))
for name in ("get_temporal_breakdown", "get_idle_time_breakdown", "get_gpu_kernel_breakdown", "get_comm_comp_overlap",
             "get_cuda_kernel_launch_stats"):
    getattr(analysis, name)(visualize=False)
analysis.get_queue_length_summary()
analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False)
graph, found = analysis.critical_path_analysis(rank=0, annotation=step, instance_id=0)
print("critical path:", found, *[graph._get_node_name(node.ev_idx) for node in
                                 sorted((graph.node_list[i] for i in graph.critical_path_nodes), key=lambda n: n.ts)
                                 if node.is_start])
"""


def hta(case, trace, step):
    """What HTA's own analyses print of a trace."""
    command = [sys.executable, "-c", "import hta.trace_analysis"]
    if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
        raise Skip("no Holistic Trace Analysis (pip install HolisticTraceAnalysis)")
    result = subprocess.run([sys.executable, "-c", HTA, case.export(trace, trace + ".json"), step],
                            capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"HTA fails at {trace}: {result.stderr[-600:]}")
    return result.stdout


def test_chrome_hta_follows_waits_on_its_critical_path(case):
    """From one stream to the other, as the second waits for what the first has recorded."""
    path = hta(case, "events", "ProfilerStep")
    equal("found", True, "critical path: True" in path)
    equal(f"both kernels are on it: {path}", True, "first()" in path and "second()" in path)


def test_chrome_hta_analyses_golden_traces(case):
    for trace, step in (("ranges", "ProfilerStep"), ("gpu", "")):
        equal(trace, True, "critical path: " in hta(case, trace, step))


def test_chrome_rules_see_broken_stacks(case):
    sees(case, "stacks", "stacks", [lambda t: t.pop("stackFrames"), lambda t: t["stackFrames"].pop("1"),
                                    lambda t: t["stackFrames"]["2"].update(parent=2),
                                    lambda t: t["stackFrames"]["2"].pop("name"),
                                    lambda t: first(t, ph="P").update(sf=99), lambda t: first(t, ph="P").update(id=1),
                                    lambda t: first(t, ph="P").update(dur=1.0)])


def test_chrome_steps_are_those_of_the_program(case):
    events = chrome(case, "ranges")["traceEvents"]
    steps = [(event["name"], event["pid"], event["tid"], event["dur"]) for event in events
             if event["name"].startswith("ProfilerStep#")]
    equal("steps", [("ProfilerStep#1", 5151, 5151, 4500.0), ("ProfilerStep#2", 5151, 5151, 4500.0)], steps)
    halves = [(event["ph"], event["id"]) for event in events if event["name"] == "epoch"]
    equal("halves of a range that does not nest", [("b", 1), ("e", 1)], halves)


def test_chrome_parser_is_strict(case):
    for text in ('{"a": NaN}', '{"a": 1, "a": 2}', '{"a": Infinity}', '{"a": 1,}'):
        try:
            hta_rules.parse(text)
        except ValueError:
            continue
        raise Failure(f"{text} was taken for JSON")
