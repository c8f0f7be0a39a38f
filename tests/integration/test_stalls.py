# SPDX-License-Identifier: MIT
"""Why kernels wait (--stalls), by the simulated driver and libcupti: what is told, and that nothing that CUPTI does harms a target."""

import json
import re
import subprocess
import time

import checks
from harness import Failure, Places, wait_until

SETTINGS = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "300"}


def ran(case, *words, status=0, **options):
    process = case.cuscope(*words, **options)
    checks.equal("status of " + words[0], status, process.wait())
    return process


def record(case, says=None, seconds=2, cupti="libcupti.so.13", options=(), batch=50, **env):
    """The tables of the report: the program launches until that is said, or for so long, and ends well, and in time."""
    case.env = {**SETTINGS, **env}
    process = case.cuscope("record", "--force", "--stalls", "--cupti", Places.simcuda(cupti), *options, "-o", case.path("run.cuscope"), "--",
                           Places.program("gpuloop"), 120, batch, 2, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the first launches")
    time.sleep(seconds)
    if says:
        wait_until(lambda: says in process.err(), says, 40)
        time.sleep(seconds)
    case.said = process.out()
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())
    return reported(case)


def reported(case):
    return json.loads(ran(case, "report", case.path("run.cuscope"), "stalls", "--format", "json").out())


def no_samples(tables):
    checks.equal("rows", [], tables["reasons"])


def test_stalls_do_not_go_with_windows(case):
    process = ran(case, "record", "--stalls", "--gpu-window", "1s/5s", "-o", case.path("run.cuscope"), "--", "true", status=2)
    checks.contains("what it said", "it does not go with --gpu-window", process.err())


def test_stalls_have_reasons_places_and_lines(case):
    tables = record(case)
    first = tables["reasons"][0]
    checks.equal("the reason", ("long_scoreboard", "waits for memory", "tick()"),
                 (first["Reason"], first["The Kernel"], first["Name"]))
    if not 60 < first["Of Kernel (%)"] < 80:
        raise Failure(f"{first}")
    places = {row["Offset"]: row["Line"] for row in tables["places"]}
    checks.equal("lines", {"0x80": "/home/user/train/kernels.cu:88", "0x50": "/home/user/train/kernels.cu:85", "0x1f0": None}, places)


def test_stalls_are_exported_as_they_came(case):
    record(case)
    lines = [json.loads(line) for line in ran(case, "export", case.path("run.cuscope"), "--format", "jsonl", "-o", "-").out().splitlines()]
    stalls = [line for line in lines if line["type"] == "stall" and "kernel" in line]
    total = sum(row["Samples"] for row in reported(case)["reasons"])
    checks.equal("samples", total, sum(line["samples"] for line in stalls))
    rows = ran(case, "export", case.path("run.cuscope"), "--format", "csv", "-o", "-").out().splitlines()
    checks.equal("rows of csv", len(stalls), sum(",gpu,stall," in row for row in rows))


def test_stalls_are_frames_below_their_kernel(case):
    """Shares of the kernel's time on the GPU, under the stack of its launches."""
    record(case, options=["--stacks"])
    ran(case, "profile", case.path("run.cuscope"), "--mode", "gpu", "--force", "-o", case.path("gpu.folded"))
    with open(case.path("gpu.folded")) as file:
        lines = file.read().splitlines()
    times = {}
    for line in lines:
        stack, _, number = line.rpartition(" ")
        times[stack.split(";")[-1]] = times.get(stack.split(";")[-1], 0) + int(number)
        if ";[GPU_Kernel]tick();[stall]" not in stack or "cuLaunchKernel;" not in stack:
            raise Failure(line)
    share = times["[stall]long_scoreboard: waits for memory"] / sum(times.values())
    if not 0.6 < share < 0.8:
        raise Failure(f"{times}")


def counted(case):
    """(samples of kernels, samples that are nobody's)"""
    lines = [json.loads(line) for line in ran(case, "export", case.path("run.cuscope"), "--format", "jsonl", "-o", "-").out().splitlines()]
    stalls = [line for line in lines if line["type"] == "stall"]
    return sum(line["samples"] for line in stalls if "kernel" in line), sum(line.get("foreign", 0) for line in stalls)


def test_stalls_of_graphs_that_are_made_at_once(case):
    """CUPTI knows kernels only of graphs that were made while it was enabled, or after: who makes one waits for that."""
    case.env = {**SETTINGS, "SIMCUPTI_PCS_ENABLE_MS": "100", "SIMCUPTI_STRICT": "1"}
    ran(case, "record", "--stalls", "--cupti", Places.simcuda("libcupti.so.13"), "-o", case.path("run.cuscope"), "--",
        Places.program("gpunodes"), "1000")
    known, foreign = counted(case)
    if known < 1000 or foreign > known / 10:
        raise Failure(f"{known} samples of kernels, {foreign} of nobody's")


def test_stalls_of_graphs_that_were_there_are_nobodys(case):
    case.env = SETTINGS
    loop = case.start(Places.program("gpunodes"), "2500", "wait", stdin=subprocess.PIPE)
    wait_until(lambda: "captured" in loop.out(), "graphs")
    process = case.cuscope("record", "--stalls", "--cupti", Places.simcuda("libcupti.so.13"), "-o", case.path("run.cuscope"), "-p", loop.pid)
    wait_until(lambda: "GPU times of process" in process.err(), "the agent")
    loop.process.stdin.write(b"go\n")
    loop.process.stdin.close()
    checks.equal("status of the program", 0, loop.wait())
    checks.equal("status", 0, process.wait())
    known, foreign = counted(case)
    if foreign < 1000 or known > foreign / 2:
        raise Failure(f"{known} samples of kernels, {foreign} of nobody's")


def test_stalls_of_a_program_that_begins_late(case):
    """The first episode has nothing; the next one comes soon, not in a minute."""
    case.env = SETTINGS
    process = case.cuscope("record", "--stalls", "--cupti", Places.simcuda("libcupti.so.13"), "-o", case.path("run.cuscope"), "--",
                           Places.program("gpunodes"), "5000", "late", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "its first launches")
    time.sleep(5)
    process.process.stdin.write(b"go\n")
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())
    known, foreign = counted(case)
    if known < 1000 or foreign > known / 10:
        raise Failure(f"{known} samples of kernels, {foreign} of nobody's")


def test_stalls_of_kernels_that_are_too_short_are_not_looked_for_at_once(case):
    """What has launched and gave no samples gives none in two seconds either: an episode costs its launches."""
    record(case, seconds=8, SIMCUDA_KERNEL_US="1", SIMCUPTI_PCS_SHORT="1")
    found = re.search(r"(\d+) windows of", ran(case, "report", case.path("run.cuscope"), "stalls").out())
    if not found or not 1 <= int(found[1]) <= 14:
        raise Failure(f"{found and found[0]}, where an episode has some ten")


def test_why_says_what_the_longest_kernel_waits_for(case):
    """Of a program that runs, and of a command. CUPTI tells of a module at each launch, too."""
    case.env = SETTINGS
    watched = ["--stalls", "--cupti", Places.simcuda("libcupti.so.13"), "--duration", "6s"]
    loop = case.start(Places.program("gpuloop"), "60", "50", "2", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in loop.out(), "the first launches")
    text = ran(case, "why", *watched, "-p", loop.pid).out()
    checks.contains("what the longest kernel waits for", "% of its samples, most often at /home/user/train/kernels.cu:88", text)
    checks.contains("what the longest kernel waits for", "  It waits for memory .long scoreboard. in ", text)
    if len(text.splitlines()) > 15:
        raise Failure(f"more than fifteen lines: {text}")
    ran(case, "why", *watched, "--gpu", "-o", case.path("run.cuscope"), "--", Places.program("gpuloop"), "6", "50", "2", stdin=subprocess.PIPE)
    stall = json.loads(ran(case, "why", case.path("run.cuscope"), "--format", "json").out())["longest_kernel"]["stall"]
    checks.equal("reason and line", ("long_scoreboard", "/home/user/train/kernels.cu", 88), (stall["reason"], stall["file"], stall["line"]))
    if not 60 < stall["percent"] < 80:
        raise Failure(f"{stall}")


def test_stalls_go_with_what_has_them(case):
    case.env = SETTINGS
    for words, why in ((["why", "--stalls", "--no-gpu", "-p", "1"], "which --no-gpu leaves out"), (["why", "--stalls", "--gpu-busy", "-p", "1"], "which --gpu-busy leaves out"),
                       (["why", "--stalls", "run.cuscope"], "--stalls is for watching"), (["top", "--stalls", "--once"], "--stalls goes with --why")):
        checks.contains(" ".join(words), why, ran(case, *words, status=2).err())


def test_stalls_need_much_free_memory(case):
    tables = record(case, "free, and CUPTI's buffer with a margin takes", SIMCUDA_MEMORY=str(1 << 30))
    no_samples(tables)
    missed = json.loads(ran(case, "info", case.path("run.cuscope"), "--json").out())
    if "no_stalls" not in json.dumps(missed):
        raise Failure("no miss of stalls")


def test_stalls_of_an_old_cupti_are_told_as_missing(case):
    tables = record(case, "as that of CUDA 12.9 and newer can", cupti="libcupti.so.12")
    no_samples(tables)


def test_stalls_that_cupti_refuses_have_its_reason(case):
    tables = record(case, "cuptiPCSamplingEnable gave error 35: the driver lets only root profile", SIMCUDA_FAIL="cuptiPCSamplingEnable:*=35")
    no_samples(tables)
    tables = record(case, "cuptiPCSamplingSetConfigurationAttribute gave error 8 for attribute 4", SIMCUPTI_PCS_ROOM="1000000")
    no_samples(tables)


def test_stalls_of_a_full_buffer_are_told(case):
    tables = record(case, "CUPTI's buffer was full", SIMCUPTI_PCS_FULL="1")
    no_samples(tables)


def test_stalls_are_given_up_where_a_call_is_slow(case):
    """As on an H200. The program waits once, and its launches go on."""
    for switch in ("SIMCUPTI_PCS_SLOW_MS", "SIMCUPTI_PCS_STOP_MS"):
        record(case, "a call of CUPTI's took ", **{switch: "900"})
        rates = [int(line.split()[0]) for line in re.findall(r"^\d+ \d+$", case.said, re.M)]
        if len(rates) < 2 or min(rates[-2:]) == 0:
            raise Failure(f"launches in each half second: {rates}")


def test_stalls_that_come_when_all_is_off_are_told(case):
    tables = record(case, SIMCUPTI_PCS_LATE="1")
    checks.equal("the reason", "long_scoreboard", tables["reasons"][0]["Reason"])


def test_stalls_begin_late_where_enabling_takes_long(case):
    tables = record(case, seconds=4, SIMCUPTI_PCS_ENABLE_MS="900", SIMCUPTI_STRICT="1")
    checks.equal("the reason", "long_scoreboard", tables["reasons"][0]["Reason"])


def test_stalls_end_a_window_when_the_gpu_is_done(case):
    """CUPTI would wait for kernels that run, and the program's threads for CUPTI: 0.6 s of them, again and again."""
    tables = record(case, seconds=6, batch=2, SIMCUDA_KERNEL_US="300000", SIMCUPTI_STRICT="1")
    checks.equal("the reason", "long_scoreboard", tables["reasons"][0]["Reason"])


def test_stalls_of_a_gpu_that_is_never_done_stay_on(case):
    """And the program goes on, as before."""
    record(case, "its GPU was for seconds never done with what it had to do", batch=7, SIMCUDA_KERNEL_US="1300000", SIMCUPTI_STRICT="1")
    rates = [int(line.split()[0]) for line in re.findall(r"^\d+ \d+$", case.said, re.M)]
    if sum(rates) < 14:
        raise Failure(f"launches in each half second: {rates}")
