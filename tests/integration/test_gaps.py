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


BUSY = ("kernels", "copies", "communication", "gpu_wait")


def adds_up(case, path):
    """Busy and idle are all there is, causes and places are all that is idle, and `why` says the same."""
    parts = gaps(case, path)
    why = json.loads(report(case, path, "why", "--format", "json"))["gpus"]
    for gpu in parts["gpus"]:
        mine = [gpu["GPU"], gpu["PID"]]
        checks.equal("busy and idle", gpu["Time (ns)"], gpu["Busy (ns)"] + gpu["Idle (ns)"])
        for part in ("causes", "places"):
            rows = [row["Time (ns)"] for row in parts[part] if [row["GPU"], row["PID"]] == mine]
            if abs(sum(rows) - gpu["Idle (ns)"]) > len(rows):
                raise Failure(f"{part} are {sum(rows)} ns of {gpu}")
        if gpu["In Gaps (ns)"] + gpu["In Shorter (ns)"] + gpu["For Peers (ns)"] - gpu["Idle (ns)"] not in range(-9, 10):
            raise Failure(f"its gaps are not its idle time: {gpu}")
        account = next(one for one in why if [one["gpu"], one["pid"]] == mine)
        checks.equal("the time of why", account["ns"], gpu["Time (ns)"])
        busy = sum(line["ns"] for line in account["account"] if line["cause"] in BUSY)
        rest = account["ns"] - sum(line["ns"] for line in account["account"] if line["cause"] != "rest")
        if not busy - 9 <= gpu["Busy (ns)"] <= busy + rest + 9:
            raise Failure(f"busy for {gpu['Busy (ns)']} ns, of why {busy} and {rest} of small ones")
    return parts


def test_gaps_of_all_that_ran(case):
    path = record(case, Places.program("gpustreams"), 30)
    parts = adds_up(case, path)
    unknown = [cause for cause in parts["causes"] if cause["Cause"] == "unknown"]
    if unknown and unknown[0]["Share (%)"] > 20: # each call was seen
        raise Failure(f"too much is not known: {parts['causes']}")


def test_gaps_of_a_program_that_copies(case):
    parts = adds_up(case, record(case, Places.program("gpucopies"), 60))  # a sample in one of them is of the place alone
    causes = {cause["Cause"]: cause for cause in parts["causes"]}
    if "copy_call" not in causes:
        raise Failure(f"no gap is due to copies: {list(causes)}")
    calls = {place["By"] for place in parts["places"] if place["Cause"] == "copy_call"}
    if not any(call and "emcpy" in call for call in calls):
        raise Failure(f"no copy is named: {parts['places']}")


def test_gaps_do_not_count_what_was_not_measured(case):
    program = f"sleep 4.3 | {Places.program('gpuloop')} 4 20 1"
    parts = adds_up(case, record(case, "/bin/sh", "-c", program, options=["--gpu-window", "200ms/1s"]))
    gpu = parts["gpus"][0]
    if not 500_000_000 < gpu["Not Measured (ns)"] < 4_000_000_000:
        raise Failure(f"windows of 200 ms in four seconds: {gpu}")
    longest = max(gap["Gap (ns)"] for gap in parts["longest"])
    if longest > 500_000_000:
        raise Failure(f"the time between windows is a gap: {parts['longest'][0]}")


def test_gaps_of_a_trace_without_gpu_times(case):
    path = record(case, Places.program("threads"), 1, 2, gpu=False)
    checks.contains("the report", "GPU times were not recorded", report(case, path, "gaps"))
