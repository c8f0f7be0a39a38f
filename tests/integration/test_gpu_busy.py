# SPDX-License-Identifier: MIT
"""When GPUs were busy, told from outside by the simulated CUPTI's PM sampling: in recordings, in the answer of why beside that of
records, and where it is not to be had."""

import json
import os
import sqlite3
import subprocess
import time

import checks
from harness import Failure, Places, wait_until


def sampled(case):
    """What drivers note of their work from now on, and counters tell."""
    case.env["SIMCUDA_BUSY"] = case.path("busy")
    case.env["SIMCUDA_KERNEL_US"] = "2000"
    case.env["SIMCUDA_TIME_SCALE"] = "1"


SECONDS = "4"


def record(case, *options, seconds=SECONDS, output="run.cuscope"):
    """Four kernels of 2 ms each, and a wait, over and over."""
    process = case.cuscope("record", *options, "-o", case.path(output), "--", Places.program("gpuloop"), seconds, "4", "1",
                           stdin=subprocess.PIPE)
    checks.equal("status of record", 0, process.wait())
    return case.path(output), process.err()


def read(case, *arguments):
    process = case.cuscope(*arguments)
    checks.equal(f"status of {arguments[0]}", 0, process.wait())
    return process.out()


def info(case, path):
    return json.loads(read(case, "info", path, "--json"))


def stretches(case, path):
    lines = [json.loads(line) for line in read(case, "export", path, "--format", "jsonl", "-o", "-").splitlines()]
    return [line for line in lines if line["type"] == "gpu_metrics" and line["source"] == "pm"]


def answer(case, path):
    return json.loads(read(case, "why", path, "--format", "json"))


def share(told, cause):
    return sum(part["percent"] for part in told["gpus"][0]["account"] if part["cause"] == cause)


def test_gpu_busy_is_recorded_and_outputs_have_it(case):
    sampled(case)
    path, _ = record(case, "--gpu-busy")
    told = stretches(case, path)
    if len(told) < 50:
        raise Failure(f"{len(told)} stretches in {SECONDS} seconds")
    for before, after in zip(told, told[1:]):
        if after["ts"] * 1000 + 1 < before["ts"] * 1000 + before["duration_us"]:
            raise Failure(f"stretches overlap: {before} {after}")
    of = info(case, path)["gpu_busy"]
    if of["samples"] < 5000 or of["interval_ns"] < 100000 or of["cpu_ns"] > 1000000000:
        raise Failure(f"info: {of}")
    checks.contains("info", "busy time of GPUs by", read(case, "info", path))
    timeline = read(case, "export", path, "--format", "chrome", "-o", "-")
    checks.contains("chrome", "GPU 0 GPU utilisation", timeline)
    checks.contains_not("chrome", 'GPU 0 SM active"', timeline)  # means of NVML's are not mixed with it
    tracks = [json.loads(line.rstrip(",")) for line in timeline.splitlines() if '"GPU 0 SM active, sampled"' in line]
    at_work = {line["args"]["%"] for line in tracks}
    if min(at_work) > 15 or max(at_work) < 50:  # of a stretch, which can begin or end within a sample
        raise Failure(f"values of the track: {sorted(at_work)}")
    for name in ("Tensor cores, sampled", "DRAM bandwidth, sampled"):
        checks.contains("chrome", f"GPU 0 {name}", timeline)
    read(case, "export", path, "-o", case.path("run.sqlite"))
    checks.equal("sqlite", len(tracks), sqlite3.connect(case.path("run.sqlite")).execute(
        "SELECT count(*) FROM GPU_METRICS JOIN TARGET_INFO_GPU_METRICS USING (typeId, metricId) "
        "WHERE metricName = 'SMs Active, sampled [Throughput %]'").fetchone()[0])


def busy_us(spans, begin, end):
    """How long within that time one of these spans was under way; each is a begin and an end."""
    total, until = 0, begin
    for first, last in sorted(spans):
        total += max(0, min(last, end) - max(first, until))
        until = max(until, min(last, end))
    return total


def test_gpu_busy_is_as_records_of_kernels_have_it(case):
    """Of one recording with both: busy time is the same, but for what samples are apart at each edge."""
    sampled(case)
    path, _ = record(case, "--gpu", "--gpu-busy=100us")
    lines = [json.loads(line) for line in read(case, "export", path, "--format", "jsonl", "-o", "-").splitlines()]
    kernels = [(line["ts"] * 1000, line["ts"] * 1000 + line["duration_us"]) for line in lines if line["type"] == "gpu"]
    told = [line for line in lines if line["type"] == "gpu_metrics" and line["source"] == "pm"]
    used = json.loads(read(case, "report", path, "gpu_metrics", "--format", "json"))
    row = used["kernels"][0]
    checks.equal("kernels by how well the GPU was used", (1, "tick()"), (len(used["kernels"]), row["Kernel"]))
    if row["Runs"] < 200 or not 50 < row["SM Active (%)"] <= 60 or not 30 < row["Tensor (%)"] <= 40:
        raise Failure(f"how well the GPU was used: {row}")
    begin, end = told[0]["ts"] * 1000, min(told[-1]["ts"] * 1000, kernels[-1][1])
    records = busy_us(kernels, begin, end)
    samples = sum(one["duration_us"] * one["busy_percent"] / 100 for one in told if one["ts"] * 1000 < end)
    if len(kernels) < 100 or abs(records - samples) > 0.03 * records + 2000:
        raise Failure(f"{len(kernels)} kernels: busy for {records:.0f} us by records, {samples:.0f} by samples of {end - begin:.0f}")
    checks.equal("gpu_times", "records", answer(case, path)["gpu_times"])
    checks.contains_not("text", "which kernels ran", read(case, "why", path))


def test_gpu_busy_gives_an_account_of_the_gpu(case):
    sampled(case)
    path, _ = record(case, "--stacks", "--host-waits", "--gpu-busy")
    told = answer(case, path)
    checks.equal("gpu_times", "samples", told["gpu_times"])
    checks.equal("GPU", 0, told["gpus"][0]["gpu"])
    if not 20 < share(told, "kernels") <= 100:
        raise Failure(f"kernels: {told['gpus'][0]['account']}")
    checks.contains("text", "which kernels ran, and pauses of the GPU shorter", read(case, "why", path))


def test_gpu_busy_is_why_without_anything_in_the_program(case):
    sampled(case)
    program = case.program("gpuloop", "20", "4", "1", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    process = case.cuscope("why", "--gpu-busy", "--duration", "2s", "--format", "json", "-p", program.pid)
    checks.equal("status", 0, process.wait())
    with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
        text = maps.read()
    checks.contains_not("maps", "libcupti", text)
    checks.contains_not("maps", "libcuscope", text)
    program.stop()
    told = json.loads(process.out())
    checks.equal("gpu_times", "samples", told["gpu_times"])
    if share(told, "kernels") < 20:
        raise Failure(f"kernels: {told['gpus'][0]['account']}")


def test_gpu_busy_that_cannot_be_had_is_said_and_the_account_is_of_threads(case):
    sampled(case)
    case.env["SIMCUDA_FAIL"] = "cuptiPmSamplingEnable:*=26"
    path, said = record(case, "--gpu-busy")
    checks.contains("what record said", "not known when GPUs were busy: another program samples GPU 0", said)
    checks.equal("gpu_busy", None, info(case, path).get("gpu_busy"))
    told = answer(case, path)
    checks.equal("gpu_times", "none", told["gpu_times"])
    checks.equal("GPU", None, told["gpus"][0].get("gpu"))


def test_gpu_busy_goes_on_after_its_process_was_killed(case):
    sampled(case)
    process = case.cuscope("record", "--gpu-busy", "-o", case.path("run.cuscope"), "--", Places.program("gpuloop"), "6", "4", "1",
                           stdin=subprocess.PIPE)
    killed = wait_until(lambda: samplers(process.pid), "a process that samples")
    time.sleep(1.5)
    os.kill(killed[0], 9)
    wait_until(lambda: samplers(process.pid) not in ([], killed), "another process that samples")
    checks.equal("status of record", 0, process.wait())
    checks.contains("what it said", "the process that samples GPUs ended", process.err())
    told = stretches(case, case.path("run.cuscope"))
    holes = [after["ts"] - before["ts"] - before["duration_us"] / 1000 for before, after in zip(told, told[1:])]
    if not max(holes) > 500:  # ms
        raise Failure(f"no hole where none was: {max(holes):.1f} ms")
    if answer(case, case.path("run.cuscope"))["gpus"][0]["not_measured_ns"] < 500000000:
        raise Failure("the hole was measured")


def samplers(parent):
    """Numbers of the processes of that cuscope that sample."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"cuscope-nvml", b"3"] and words[3] == str(parent).encode():
            found.append(int(pid))
    return found


def test_gpu_busy_has_bounds(case):
    for value in ("10us", "1s", "x", ""):
        process = case.cuscope("record", "--gpu-busy=" + value, "--", "true")
        checks.equal("status", 2, process.wait())
    for command in ("record", "why"):
        process = case.cuscope(command, "--gpu-busy", "--all", "--duration", "1s")
        checks.equal("status", 2, process.wait())
        checks.contains("what it said", "--gpu-busy goes without --all", process.err())
    process = case.cuscope("why", "--gpu-busy", "--no-gpu", "--", "true")
    checks.equal("status", 2, process.wait())
    checks.contains("what it said", "--gpu-busy goes without --no-gpu", process.err())
