# SPDX-License-Identifier: MIT
"""The formats: table, log, the summary; where they go."""

import json
import os
import re
import signal
import subprocess
import time

import checks
from harness import Failure, Places, alone, wait_until


def text_trace(case, options, program, *arguments, **more):
    process = case.cuscope("trace", *options, "--", Places.program(program), *arguments, **more)
    status = process.wait()
    return process, status


def test_sigusr1_prints_the_summary_so_far(case):
    program = case.program("loop", 60, 100, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    process = case.start_trace([], ["-p", program.pid])
    case.attached(process)
    time.sleep(0.5)
    process.signal(signal.SIGUSR2)
    wait_until(lambda: "SIGUSR2" in process.err(), "a sentence")
    for n in (1, 2):
        process.signal(signal.SIGUSR1)
        wait_until(lambda: process.out().count("WHAT WAS MISSED") == n, "the summary")
    calls = [int(n) for n in re.findall(r"Total CUDA API calls: (\d+)", process.out())]
    launches = [int(n) for n in re.findall(r"\n +(\d+)  \w+\(", process.out())]
    if not 0 < calls[0] <= calls[1] or not 0 < launches[0] <= launches[1]:
        raise Failure(f"{calls} calls, {launches} launches of a kernel")
    program.process.stdin.close()
    checks.equal("status", 0, process.wait())
    checks.equal("summaries", 3, process.out().count("WHAT WAS MISSED"))
    checks.equal("status of the program", 0, program.wait())


def test_table_says_what_each_call_did(case):
    process, status = text_trace(case, [], "threads", "1", "1")
    checks.equal("status", 0, status)
    out = process.out()
    for wanted in (
            r"TIME\(ms\)\s+PROCESS\s+PID\s+TID\s+EVENT\s+DURATION\s+DETAILS",
            r"\d+\.\d{3}\s+threads\s+\d+\s+\d+\s+cuMemAlloc_v2\s+\S+ [num]?s\s+size=4\.00 KiB -> 0x[0-9a-f]+",
            r"cuMemcpyHtoDAsync_v2\s.*H2D 4\.00 KiB async stream=0x",
            r"tick\(\) grid=\(1,1,1\) block=\(32,2,1\) shmem=0 stream=0x",
            r"void shapes::block<float, 4>\(float\*, int\) grid=\(7,1,2\) block=\(64,1,3\) shmem=1\.00 KiB",
            r"cuMemcpyDtoH_v2\s.*D2H 4\.00 KiB",
            r"=== TRACE SUMMARY ===",
            r"Kernel launches: 2\b",
            r"nothing was lost"):
        checks.contains("table", wanted, out)
    checks.contains_not("a pipe has no colours", "\x1b", out)
    checks.equal("nothing on stderr", "", process.err())


def test_table_shows_errors_by_name(case):
    process, _ = text_trace(case, [], "errors")
    checks.contains("table", r"cudaMalloc\s.*size=.*= cudaErrorMemoryAllocation \(2\)", process.out())
    checks.contains("table", r"cuMemFree_v2.*= CUDA_ERROR_INVALID_VALUE \(1\)", process.out())
    checks.contains("summary", r"ERRORS\n.*FUNCTION\s+COUNT\s+ERROR", process.out())
    checks.contains("summary", r"cuLaunchKernel\s+3\s+CUDA_ERROR_INVALID_HANDLE \(400\)", process.out())


def test_table_hides_nested_calls_but_for_verbose(case):
    quiet, _ = text_trace(case, [], "runtime13")
    loud, _ = text_trace(case, ["-v"], "runtime13")
    checks.contains_not("without -v", r"\bcuMemAlloc_v2 +[\d.]+ [num]s", quiet.out().split("===")[0])
    checks.contains("with -v", r"\bcuMemAlloc_v2 +[\d.]+ [num]?s", loud.out().split("===")[0])


def test_colour_when_asked_and_no_color(case):
    process, _ = text_trace(case, ["--color", "always"], "threads", "1", "1")
    checks.contains("--color always", "\x1b\\[", process.out())
    for options, env in (([], {}), (["--color", "never"], {})):
        process, _ = text_trace(case, options, "threads", "1", "1")
        checks.contains_not("no terminal", "\x1b", process.out())
    script = Places.cuscope() + " trace -- " + Places.program("threads") + " 1 1"
    terminal = case.start("script", "-qec", script, "/dev/null")
    terminal.wait()
    checks.contains("a terminal", "\x1b\\[", terminal.out())
    case.env["NO_COLOR"] = "1"
    terminal = case.start("script", "-qec", script, "/dev/null")
    terminal.wait()
    checks.contains_not("a terminal with NO_COLOR", "\x1b\\[[0-9;]*m", terminal.out())


def test_log_lines(case):
    path = case.path("trace.log")
    process, status = text_trace(case, ["-o", path], "threads", "1", "2")
    checks.equal("status", 0, status)
    with open(path) as file:
        lines = file.read().splitlines()
    form = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - \[(\w+)\] pid: \d+, tid: \d+, "
                      r"time_start: (\d+), time_end: (\d+)(, .*)?$")
    counts = {}
    for line in lines:
        match = form.match(line)
        if not match:
            raise Failure(f"line of another form: {line}")
        counts[match[1]] = counts.get(match[1], 0) + 1
        if int(match[3]) < int(match[2]):
            raise Failure(f"ends before it begins: {line}")
    checks.equal("launches", 4, counts["cuLaunchKernel"])
    text = "\n".join(lines)
    for wanted in (
            r"\[cuLaunchKernel\].*gridDimX: 7, gridDimY: 1, gridDimZ: 2, blockDimX: 64, blockDimY: 1, "
            r"blockDimZ: 3, sharedMemBytes: 1024, hStream: 0x[0-9a-f]+,.*"
            r"kernel: void shapes::block<float, 4>\(float\*, int\), result: CUDA_SUCCESS \(0\)",
            r"\[cuMemAlloc_v2\].*devPtr: 0x[0-9a-f]+, size: 4096, result: CUDA_SUCCESS",
            r"\[cuMemcpyHtoDAsync_v2\].*dstDevice: 0x[0-9a-f]+, srcHost: 0x[0-9a-f]+, ByteCount: 4096, "
            r"hStream: 0x[0-9a-f]+"):
        checks.contains("log", wanted, text)


def test_format_wins_over_the_ending(case):
    path = case.path("trace.log")
    text_trace(case, ["-o", path, "--format", "jsonl"], "threads", "1", "1")
    with open(path) as file:
        json.loads(file.readline())


def test_jsonl_on_standard_output_is_nothing_but_jsonl(case):
    process, status = text_trace(case, ["--format", "jsonl"], "threads", "1", "1")
    checks.equal("status", 0, status)
    for line in process.out().splitlines():
        json.loads(line)
    checks.contains("the summary is on stderr", "=== TRACE SUMMARY ===", process.err())


def test_summary_only(case):
    process, status = text_trace(case, ["--summary-only", "--json-summary", case.path("s.json")],
                                 "threads", "2", "5")
    checks.equal("status", 0, status)
    checks.contains_not("no calls", "DETAILS", process.out())
    checks.contains("summary", "=== TRACE SUMMARY ===", process.out())
    checks.contains("summary", r"Kernel launches: 20\b", process.out())
    with open(case.path("s.json")) as file:
        checks.equal("launches", 20, json.load(file)["launches"]["kernels"])


def test_summary_numbers_are_those_of_the_program(case):
    process, _ = text_trace(case, [], "memory")
    out = process.out()
    checks.contains("allocations", r"Memory allocations: 16, 12 freed", out)
    checks.contains("leak", r"4 allocations .*never freed: released by process exit", out)
    process, _ = text_trace(case, [], "capture")
    checks.contains("captures", r"Kernels captured into graphs, not run: 6", process.out())
    checks.contains("graphs", r"Graph launches: 4", process.out())


def test_summary_percentiles_are_in_order(case):
    result = case.trace("threads", "4", "100")
    for row in result.summary["functions"]:
        if "p50_ns" in row:
            slack = 1 + result.summary["percentile_error"]
            values = [row["min_ns"], row["p50_ns"] * slack, row["p95_ns"] * slack ** 2,
                      row["p99_ns"] * slack ** 3, row["max_ns"] * slack ** 4]
            if values != sorted(values):
                raise Failure(f"{row}")
            average = row["total_ns"] / (row["calls"] - row["nested"])
            if abs(average - row["average_ns"]) > 1:
                raise Failure(f"average of {row}: {average}")


@alone
def test_durations_are_those_of_the_simulated_work(case):
    """A copy of 1 MiB takes as long as the simulated driver says; cuscope shows that and no less."""
    case.env["SIMCUDA_TIME_SCALE"] = "1"
    case.env["SIMCUDA_KERNEL_US"] = "20000"
    result = case.trace("threads", "1", "3")
    waits = [c["duration_us"] for c in result.calls(name="cuStreamSynchronize")]
    if any(w < 35000 for w in waits) or any(w > 400000 for w in waits):
        raise Failure(f"waiting for two kernels of 20 ms took {waits} us")
    blocked = result.summary["syncs"]["blocked_ns"]
    if not sum(waits) * 999 <= blocked <= sum(waits) * 1001 + 1000:
        raise Failure(f"blocked_ns {blocked}, waits {waits}")


def test_json_summary_appears_whole(case):
    """It is never there half written."""
    result = case.trace("threads", "1", "1")
    checks.equal("left beside it", ["trace.json"],
                 [name for name in os.listdir(case.folder) if ".json" in name and "jsonl" not in name])
    checks.equal("format", 1, result.summary["format"])


def test_jq_recipes_of_the_documentation(case):
    result = case.trace("runtime13", options=["--layer", "both"])
    with open(os.path.join(Places.root, "docs", "jsonl.md")) as file:
        recipes = re.findall(r"^(jq .*trace\.jsonl.*?)(?:\s+#.*)?$", file.read(), re.M)
    if len(recipes) < 5:
        raise Failure(f"only {len(recipes)} recipes found")
    for recipe in recipes:
        done = subprocess.run(["/bin/sh", "-c", recipe], cwd=case.folder, capture_output=True,
                              text=True, timeout=20, check=False)
        if done.returncode:
            raise Failure(f"{recipe}: {done.stderr}")
    done = subprocess.run(["jq", "-s", "map(select(.op==\"alloc\" and .retval==0 and (.nested|not)).size)"
                           "|add", result.path + ".jsonl"], capture_output=True, text=True, check=True)
    checks.equal("bytes allocated", "65536", done.stdout.strip())


def test_disk_that_is_full_from_the_first_line_on(case):
    process, status = text_trace(case, ["-o", "/dev/full", "--format", "jsonl"], "threads", "1", "1")
    checks.equal("status", 1, status)
    checks.contains("why", "No space left on device; free some space", process.err())


def test_empty_trace_says_why(case):
    process = case.cuscope("trace", "--", "true")
    checks.equal("status", 0, process.wait())
    checks.contains("no CUDA", "nothing was traced: no target was seen to load CUDA", process.err())
    process, status = text_trace(case, ["--only", "nosuch*"], "threads", "1", "1")
    checks.equal("status", 0, status)
    checks.contains("no match", "no CUDA function matches", process.err())


def test_json_summary_that_exists_is_kept_without_force(case):
    path = case.path("kept.json")
    with open(path, "w") as file:
        file.write("kept")
    process, status = text_trace(case, ["--json-summary", path], "threads", "1", "1")
    checks.equal("status", 1, status)
    checks.contains("why", "exists already: --force overwrites it", process.err())
    with open(path) as file:
        checks.equal("the file", "kept", file.read())
    _, status = text_trace(case, ["--force", "--json-summary", path], "threads", "1", "1")
    checks.equal("status with --force", 0, status)
    with open(path) as file:
        checks.equal("format", 1, json.load(file)["format"])


def test_what_a_command_prints_stands_apart_from_what_programs_read(case):
    """A pipe to jq had the command's own lines between the objects. A table is for people: the two share it."""
    app = ["--", "sh", "-c", f"echo the   command speaks; exec {Places.program('memory')}"]
    for name, *command in (("watch", "watch", "memleak,launches", "--format", "json", *case.options),
                           ("classic", "launches", "--format", "classic", *case.options),
                           ("trace", "trace", "--format", "jsonl", *case.options),
                           ("named", "trace", "--format", "jsonl", "-o", "/dev/stdout", "--force", *case.options),
                           ("top", "top", "--once", "--interval", "1s", "--format", "json")):
        process = case.cuscope(*command, *app, name=name)
        checks.equal(f"status of {name}", 0, process.wait())
        checks.contains_not(f"standard output of {name}", "the command speaks", process.out())
        checks.contains(f"standard error of {name}", "the command speaks\n", process.err())
        if name != "classic":
            text = process.out().strip()
            for one in [text] if name == "top" else text.split("\n"):
                json.loads(one)
    process = case.cuscope("trace", *case.options, *app, name="table")
    checks.equal("status", 0, process.wait())
    checks.contains("standard output of a table", "the command speaks\n", process.out())
