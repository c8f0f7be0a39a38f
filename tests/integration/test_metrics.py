# SPDX-License-Identifier: MIT
"""Metrics of GPUs by the simulated NVML: in recordings, exports and reports; and NVMLs that refuse, hang or lie."""

import json
import os
import sqlite3
import subprocess
import time

import checks
from harness import Failure, Places, wait_until

MEMORY = "gpm.1 91\ngpm.5 12\ngpm.10 84\n"
SMALL = "gpm.1 98\ngpm.2 9\ngpm.4 1\ngpm.5 0\ngpm.10 3\ngpm.11 0\ngpm.12 7\ngpm.13 0\n"


def settings(case, text):
    """What the simulated GPUs tell from now on."""
    path = case.path("nvml.settings")
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)
    case.env["SIMNVML_FILE"] = path


def nvml(case, text="", gpus=1):
    case.env["LD_LIBRARY_PATH"] = Places.libraries() + ":" + os.path.join(Places.build, "simnvml")
    case.env["SIMNVML_GPUS"] = str(gpus)
    settings(case, text)


def begin(case, *options, seconds=3, command="record", output="run.cuscope"):
    return case.cuscope(command, *options, "-o", case.path(output), "--", Places.program("gpuloop"), str(seconds), "50", "1",
                        stdin=subprocess.PIPE)


def record(case, *options, seconds=1):
    process = begin(case, *options, seconds=seconds)
    checks.equal("status of record", 0, process.wait())
    return case.path("run.cuscope"), process.err()


def read(case, *arguments):
    process = case.cuscope(*arguments)
    checks.equal(f"status of {arguments[0]}", 0, process.wait())
    return process.out()


def told(case, path):
    return json.loads(read(case, "info", path, "--json")).get("gpu_metrics")


def test_metrics_are_recorded_and_every_output_has_them(case):
    nvml(case, MEMORY, gpus=2)
    path, _ = record(case)
    lines = [json.loads(line) for line in read(case, "export", path, "--format", "jsonl", "-o", "-").splitlines()]
    samples = [line for line in lines if line["type"] == "gpu_metrics"]
    if not 6 <= len(samples) <= 200:
        raise Failure(f"{len(samples)} samples of two GPUs in a second or some more")
    checks.equal("GPUs", {0, 1}, {sample["gpu"] for sample in samples})
    checks.equal("DRAM", {84.0}, {sample["dram_percent"] for sample in samples})
    checks.equal("export", 0, case.cuscope("export", path, "-o", case.path("run.sqlite")).wait())
    with sqlite3.connect(case.path("run.sqlite")) as database:
        rows = database.execute("SELECT typeId & 255, avg(value), count(*) FROM GPU_METRICS JOIN TARGET_INFO_GPU_METRICS "
                                "USING (typeId, metricId) WHERE metricName LIKE 'SMs Active%' GROUP BY 1").fetchall()
    checks.equal("SMs active", [(0, 80.0), (1, 81.0)], [row[:2] for row in rows])
    checks.equal("samples", len(samples), sum(row[2] for row in rows))
    checks.equal("of info", len(samples), told(case, path)["gpm_samples"])
    shares = json.loads(read(case, "report", path, "gpu_metrics", "--format", "json"))["shares"]
    checks.equal("of the report", [12.0, 12.0], [row["Mean (%)"] for row in shares if row["Metric"] == "Tensor cores"])


def test_metrics_are_of_the_gpu_that_the_driver_says_a_process_used(case):
    """It calls it 0, and another one is as busy."""
    nvml(case, gpus=2)
    program = case.program("gpuloop", 60, 50, 1, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    for gpu in (0, 1):
        settings(case, f"gpu{gpu}.pid {program.pid}\ngpu{1 - gpu}.pid 1\n" + MEMORY)
        answer = json.loads(read(case, "why", "-p", str(program.pid), "--gpu", "--duration", "2s", "--format", "json"))
        checks.equal("the GPU", [(0, gpu)], [(one["gpu"], one.get("machine_gpu")) for one in answer["gpus"]])
    program.process.stdin.close()
    program.wait()


def test_metrics_of_a_gpu_without_gpm_are_its_utilisation_and_that_is_said(case):
    nvml(case, "gpm 0\nbusy 66\n")
    path, _ = record(case)
    checks.contains("info", "for want of GPM", read(case, "info", path))
    report = read(case, "report", path, "gpu_metrics")
    checks.contains("the report", "66.0", report)
    checks.contains("the report", "since this GPU tells no GPM", report)


def test_metrics_can_be_left_out_and_asked_for(case):
    nvml(case)
    path, _ = record(case, "--no-gpu-metrics")
    checks.equal("metrics", None, told(case, path))
    checks.equal("interval", 50000000, told(case, record(case, "--force", "--gpu-metrics=20")[0])["interval_ns"])
    for value in ("0", "21", "x", ""):
        process = case.cuscope("record", "--gpu-metrics=" + value, "--", "true")
        checks.equal("status", 2, process.wait())
        checks.contains("what it said", "is no number from 1 to 20", process.err())


def test_metrics_without_a_management_library_are_missed_by_who_asked_only(case):
    path, said = record(case)
    checks.contains_not("what record said", "GPU metrics", said)
    checks.equal("metrics", None, told(case, path))
    checks.contains("the report", "no metrics of GPUs were recorded", read(case, "report", path, "gpu_metrics"))
    path, said = record(case, "--force", "--gpu-metrics")
    checks.contains("what record said", "no GPU metrics: no GPU figures: libnvidia-ml.so.1 is not installed here", said)


def test_metrics_of_a_gpu_that_hangs_hold_nothing_up(case):
    nvml(case, gpus=2)
    process = begin(case, seconds=5)
    time.sleep(3)
    settings(case, "gpu1.hang 1\n")
    began = time.monotonic()
    checks.equal("status of record", 0, process.wait())
    if time.monotonic() - began > 10:
        raise Failure("the recording waited for the GPU")
    samples = [json.loads(line) for line in read(case, "export", case.path("run.cuscope"), "--format", "jsonl", "-o", "-")
               .splitlines() if '"gpu_metrics"' in line]
    last = {gpu: max(sample["ts"] for sample in samples if sample["gpu"] == gpu) for gpu in (0, 1)}
    if last[0] < last[1] + 500:
        raise Failure(f"the other GPU was held up: {last}")


def test_metrics_a_duration_begins_with_the_first_of_them(case):
    """They are there much later than what was asked for is over."""
    nvml(case, MEMORY)
    case.env["SIMNVML_SLOW"] = "700"
    path, _ = record(case, "--gpu-metrics=20", "--duration", "300ms", seconds=4)
    samples = told(case, path)["gpm_samples"]
    if not 4 <= samples <= 40:
        raise Failure(f"{samples} samples, twenty a second")


def test_metrics_that_no_gpu_can_have_are_left_out(case):
    nvml(case, "gpm.2 1e300\ngpm.3 -7\ngpm.5 nan\ngpm.20 1e40\n")
    path, _ = record(case)
    lines = read(case, "export", path, "--format", "jsonl", "-o", "-")
    checks.contains_not("jsonl", '"gpu_metrics"', lines)  # no number: the sample is none
    settings(case, "gpm.2 1e300\ngpm.3 -7\ngpm.20 1e40\n")
    path, _ = record(case, "--force")
    samples = [json.loads(line) for line in read(case, "export", path, "--format", "jsonl", "-o", "-").splitlines()]
    samples = [sample for sample in samples if sample["type"] == "gpu_metrics"]
    if not samples:
        raise Failure("there is no sample")
    for key in ("sm_percent", "occupancy_percent", "pcie_tx_bytes_per_s"):
        checks.equal(key, [], [sample for sample in samples if key in sample])


def test_metrics_tell_what_a_gpu_is_bound_by(case):
    for text, said in ((MEMORY, "its memory"), (SMALL, "kernels too small for its multiprocessors")):
        nvml(case, text)
        path, _ = record(case, "--force", "--gpu-metrics=20", seconds=2)
        findings = json.loads(read(case, "report", path, "findings", "--format", "json"))
        found = [row["Finding"] for row in findings["findings"] if row["Cause"] == "bound"]
        checks.equal("findings", 1, len(found))
        checks.contains("what bounds it", rf"what bounds kernels: {said} \(", found[0])


def test_metrics_are_in_a_trace_to_a_file(case):
    nvml(case)
    process = begin(case, command="trace", seconds=3, output="run.jsonl")
    checks.equal("status of trace", 0, process.wait())
    with open(case.path("run.jsonl"), encoding="utf-8") as file:
        wait_until(lambda: any('"gpu_metrics"' in line for line in file), "metrics in the trace", seconds=1)


def test_metrics_tell_how_busy_a_gpu_was_second_by_second(case):
    nvml(case, "gpm.1.span 1\n")  # metric 1 is 50 where it is the mean of a second, and less where it is of less
    path, _ = record(case, seconds=4)
    lines = [json.loads(line) for line in read(case, "export", path, "--format", "jsonl", "-o", "-").splitlines()]
    told = [line.get("graphics_percent") for line in lines if line["type"] == "gpu_metrics"]
    known = [value for value in told if value is not None]
    if len(known) < 11 or None in told[:11]:
        raise Failure(f"not all but the last are known: {told}")
    # on a busy machine readings may come with a pause, after which the first has its own mean
    seconds = [value for value in known[1:] if 46 <= value <= 70]
    if len(seconds) < len(known) * 2 / 3 or len(set(known)) > len(known) / 3:
        raise Failure(f"means of seconds: {known}")
    shares = json.loads(read(case, "report", path, "gpu_metrics", "--format", "json"))["shares"]
    mean = [row["Mean (%)"] for row in shares if row["Metric"] == "Graphics or compute engine"]
    if not 30 <= mean[0] <= 70:
        raise Failure(f"of the report: {mean}")
