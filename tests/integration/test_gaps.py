# SPDX-License-Identifier: MIT
"""The report gaps, of recordings with GPU times by the simulated driver and libcupti."""

import json

import checks
from harness import Failure, Places


def record(case, *command, options=(), gpu=True):
    path = case.path("run.cuscope")
    times = ["--gpu", "--cupti", Places.simcuda("libcupti.so.13")] if gpu else []
    process = case.cuscope("record", "-o", path, *times, *options, "--", *map(str, command))
    checks.equal("status of record", 0, process.wait())
    return path


def report(case, path, *arguments):
    process = case.cuscope("report", path, *arguments)
    checks.equal(f"status of report {arguments}", 0, process.wait())
    return process.out()


def gaps(case, path, *options):
    return json.loads(report(case, path, "gaps", "--format", "json", *options))


def adds_up(parts):
    """Busy and idle are all there is, and the causes are all that is idle."""
    for gpu in parts["gpus"]:
        causes = [cause for cause in parts["causes"] if cause["GPU"] == gpu["GPU"]]
        idle = sum(cause["In Gaps (ns)"] + cause["In Shorter (ns)"] for cause in causes)
        checks.equal("idle time by causes", gpu["Idle (ns)"], idle)
        checks.equal("gaps by causes", gpu["Gaps"], sum(cause["Gaps"] for cause in causes))
        checks.equal("from the first to the last", gpu["Last (ns)"] - gpu["First (ns)"],
                     gpu["Busy (ns)"] + gpu["Idle (ns)"] + gpu["Not Measured (ns)"])
        for part in ("processes", "streams"):
            for row in parts[part]:
                if row["GPU"] == gpu["GPU"] and row["Busy (ns)"] > gpu["Busy (ns)"]:
                    raise Failure(f"more busy than its GPU: {row}")
    for stream in parts["streams"]:
        checks.equal("idle time by the rule of HTA", stream["Idle (ns)"],
                     stream["host_wait (ns)"] + stream["kernel_wait (ns)"] + stream["other (ns)"])


def test_gaps_of_all_that_ran(case):
    path = record(case, Places.program("gpustreams"), 30)
    parts = gaps(case, path)
    adds_up(parts)
    ran = json.loads(report(case, path, "cuda_gpu_trace", "--format", "json"))
    checks.equal("activities", len(ran), sum(gpu["Activities"] for gpu in parts["gpus"]))
    checks.equal("activities of streams", len(ran), sum(row["Activities"] for row in parts["streams"]))
    unknown = [cause for cause in parts["causes"] if cause["Cause"] == "unknown"]
    if unknown and unknown[0]["Share (%)"] > 20: # each call was seen
        raise Failure(f"too much is not known: {parts['causes']}")


def test_gaps_of_a_program_that_copies(case):
    parts = gaps(case, record(case, Places.program("gpucopies"), 3))
    adds_up(parts)
    causes = {cause["Cause"]: cause for cause in parts["causes"]}
    if "copy" not in causes:
        raise Failure(f"no gap is due to copies: {list(causes)}")


def test_gaps_do_not_count_what_was_not_measured(case):
    program = f"sleep 2.3 | {Places.program('gpuloop')} 2 20 1"
    parts = gaps(case, record(case, "/bin/sh", "-c", program, options=["--gpu-window", "200ms/1s"]))
    adds_up(parts)
    gpu = parts["gpus"][0]
    if not 500_000_000 < gpu["Not Measured (ns)"] < 2_000_000_000:
        raise Failure(f"two windows of 200 ms in two seconds: {gpu}")
    longest = max(gap["Gap (ns)"] for gap in parts["longest"])
    if longest > 500_000_000:
        raise Failure(f"the time between windows is a gap: {parts['longest'][0]}")


def test_gaps_of_a_trace_without_gpu_times(case):
    path = record(case, Places.program("threads"), 1, 2, gpu=False)
    checks.contains("the report", "GPU times were not recorded", report(case, path, "gaps"))
