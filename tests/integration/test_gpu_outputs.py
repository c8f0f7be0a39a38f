# SPDX-License-Identifier: MIT
"""What a run with GPU times looks like in every format, live and from a file."""

import collections
import csv
import io
import json
import os
import subprocess
import sys

import checks
from gpu_trace import start
from harness import Failure, Places

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")
KINDS = ["--gpu=kernels,copies,sets,sync,nvtx"]

# Kernels that take longer than a traced launch on any machine: with those of 4 us a slow host never gets ahead of the GPU.
QUEUING = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "200"}


def program(*arguments):
    return ["--", Places.program(arguments[0]), *map(str, arguments[1:])]


def record(case, *arguments):
    process = start(case, program(*arguments), KINDS)
    checks.equal("status", 0, process.wait())


def exported(case, name, *options):
    path = case.path(name)
    process = case.cuscope("export", case.path("trace.cuscope"), "-o", path, "--force", *options)
    checks.equal(f"status of the export to {name}: {process.err()}", 0, process.wait())
    return path


def obeys(script, *arguments):
    result = subprocess.run([sys.executable, os.path.join(SCHEMA, script), *arguments], capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"{script}: {result.stdout[:2000]}{result.stderr[:2000]}")


def rows_of(case):
    with open(exported(case, "trace.csv")) as file:
        return list(csv.DictReader(file))


def test_gpu_outputs_of_ranges_and_work(case):
    record(case, "nvtx", 3)
    rows = rows_of(case)
    kinds = collections.Counter((row["layer"], row["function"]) for row in rows if row["layer"] in ("gpu", "nvtx"))
    for kind in (("gpu", "kernel"), ("nvtx", "push_pop"), ("nvtx", "start_end"), ("nvtx", "mark")):
        if not kinds[kind]:
            raise Failure(f"no row of {kind}: {dict(kinds)}")
    obeys("perfetto.py", exported(case, "trace.pftrace"))
    obeys("check.py", os.path.join(SCHEMA, "..", "..", "docs", "jsonl.schema.json"), exported(case, "trace.jsonl"))


def test_gpu_outputs_of_work_that_waited(case):
    case.env = QUEUING
    record(case, "gpuloop", 1, 100, 1)
    rows = rows_of(case)
    waited = [row for row in rows if row["function"] == "kernel" and row["queue_ns"]]
    calls = {row["correlation"]: row for row in rows if row["layer"] in ("driver", "runtime")}
    if not waited:
        raise Failure("no kernel waited")
    for row in waited:
        call = calls[row["correlation"]]
        checks.equal("delay", int(row["time_ns"]) - int(call["time_ns"]) - int(call["duration_ns"]),
                     int(row["queue_ns"]))


def test_gpu_outputs_for_hta(case):
    record(case, "gpuloop", 1, 20, 2)
    obeys("hta_rules.py", exported(case, "trace.json"))


def live(case, words, name, *arguments):
    target = ["--cupti", Places.simcuda("libcupti.so.13"), *KINDS, *program(name, *arguments)]
    process = case.cuscope("trace", *target)
    checks.equal("status", 0, process.wait())
    text = process.out() + process.err()
    for word in words:
        checks.contains("the trace", word, text)


def test_gpu_outputs_of_live_kernels(case):
    case.env = QUEUING
    live(case, ("[kernel]", " GPU 0 stream ", " queued ", "\nGPU\n", "KERNELS BY TIME ON THE GPU"), "gpuloop", 1, 100, 1)


def test_gpu_outputs_of_live_copies(case):
    live(case, ("[copy]", " GB/s ", "[set]", "\nGPU\n", "COPIES ON THE GPU"), "gpucopies")


def live_file(case, name, *arguments):
    """Written while the program runs, by `trace -o`."""
    path = case.path(name)
    process = case.cuscope("trace", "--cupti", Places.simcuda("libcupti.so.13"), KINDS[0], "-o", path,
                           *program(*arguments))
    checks.equal(f"status: {process.err()}", 0, process.wait())
    return path


def test_gpu_outputs_of_live_text_files(case):
    path = live_file(case, "live.jsonl", "gpuloop", 1, 50, 1)
    obeys("check.py", os.path.join(SCHEMA, "..", "..", "docs", "jsonl.schema.json"), path)
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    launches = {line["correlation"] for line in lines if line["type"] == "kernel" and line["depth"] == 0}
    kernels = [line["correlation"] for line in lines if line["type"] == "gpu" and line["op"] == "kernel"]
    checks.equal("kernels of jsonl have each its launch", sorted(launches), sorted(kernels))
    with open(live_file(case, "live.csv", "gpuloop", 1, 50, 1)) as file:
        rows = [row["function"] for row in csv.DictReader(file)]
    checks.equal("kernels of csv", rows.count("cuLaunchKernel"), rows.count("kernel"))
    with open(live_file(case, "live.log", "gpuloop", 1, 50, 1)) as file:
        text = file.read()
    checks.equal("kernels of the log", text.count("[cuLaunchKernel]"), text.count("[gpu kernel]"))
    checks.equal("launches of them", True, "cuLaunchKernel" in rows and "[cuLaunchKernel]" in text)


def test_gpu_outputs_of_live_timelines(case):
    path = live_file(case, "live.pftrace", "gpuloop", 1, 50, 1)
    obeys("perfetto.py", path)  # each launch has its kernel: no flow leads nowhere
    path = live_file(case, "live.json", "gpuloop", 1, 50, 1)
    obeys("hta_rules.py", path)
    with open(path) as file:
        trace = json.load(file)
    checks.equal("joined", False, "not_joined" in trace["cuscope"])
    ends = [event for event in trace["traceEvents"] if event["ph"] == "f"]
    work = [event for event in trace["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    checks.equal("work that its call leads to", len(work), len(ends))


def test_gpu_outputs_of_the_summary_as_json(case):
    path = case.path("summary.json")
    process = case.cuscope("trace", "--cupti", Places.simcuda("libcupti.so.13"), "--gpu", "--json-summary", path,
                           "--format", "jsonl", *program("gpuloop", 1, 20, 1))
    checks.equal("status", 0, process.wait())
    with open(path) as file:
        gpu = json.load(file)["gpu"]
    lines = [json.loads(line) for line in io.StringIO(process.out()) if line.startswith("{")]
    kernels = [line for line in lines if line["type"] == "gpu" and line["op"] == "kernel"]
    checks.equal("runs", len(kernels), sum(kernel["runs"] for kernel in gpu["kernels"]))
    checks.equal("runs on devices", len(kernels), sum(device["kernels"] for device in gpu["devices"]))
    checks.equal("work that waited or did not", len(kernels), gpu["queue"]["count"] + gpu["queue"]["not_queued"])
    calls = {line["correlation"] for line in lines if "retval" in line and "correlation" in line}
    checks.equal("work of calls without a number", [], [k for k in kernels if k["correlation"] not in calls])
