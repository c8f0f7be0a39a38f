# SPDX-License-Identifier: MIT
"""Formats of other tools, straight from a trace and by way of a file."""

import collections
import json
import os
import re
import sqlite3
import subprocess

import checks
import hta_rules
from harness import Failure, Places

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")


def run(case, *arguments):
    process = case.cuscope(*arguments)
    if process.wait() != 0:
        raise Failure(f"{arguments[0]} ended with {process.process.returncode}: {process.err()}")
    return process


def slices(path):
    """Calls of a Chrome trace by name, after a look at its rules."""
    findings = hta_rules.check([path])
    if findings:
        raise Failure("; ".join(findings[:5]))
    events = hta_rules.parse(hta_rules.text_of(path))["traceEvents"]
    return collections.Counter(event["name"] for event in events if event["ph"] == "X")


def calls(path, expect_rules=True):
    """Begins of slices, ends and counters of a Perfetto trace."""
    if expect_rules:
        result = subprocess.run([os.path.join(SCHEMA, "perfetto.py"), path], capture_output=True, text=True)
        if result.returncode:
            raise Failure((result.stdout + result.stderr)[:400])
    with open(path, "rb") as file:
        text = subprocess.run(["protoc", f"--proto_path={SCHEMA}", "--decode=perfetto.protos.Trace",
                               "perfetto_subset.proto"], stdin=file, capture_output=True, text=True).stdout
    return collections.Counter(re.findall(r"type: (TYPE_\w+)", text))


def test_export_straight_from_a_trace(case):
    for name in ("x.pftrace", "x.json", "x.json.gz"):
        run(case, "trace", "-o", case.path(name), "--", Places.program("copies"))
    if calls(case.path("x.pftrace"))["TYPE_SLICE_BEGIN"] < 20:
        raise Failure("too few slices")
    plain, packed = (slices(case.path(name)) for name in ("x.json", "x.json.gz"))
    if plain != packed or plain["cudaLaunchKernel"] + plain["cuMemcpyHtoD"] < 1:
        raise Failure(f"{plain} and {packed}")


def test_export_tells_which_rank_a_process_was(case):
    both = case.path("both.sh")
    with open(both, "w", encoding="ascii") as file:
        file.write(f"for rank in 6 7; do RANK=$rank WORLD_SIZE=8 {Places.program('loop')} 1 20 & done\nwait\n")
    run(case, "record", "-o", case.path("both.cuscope"), "--", "/bin/sh", both)
    run(case, "export", case.path("both.cuscope"), "-o", case.path("both.json"))
    told = hta_rules.parse(hta_rules.text_of(case.path("both.json")))
    checks.equal("of two ranks", {"backend": "nccl", "rank": 0, "world_size": 1}, told["distributedInfo"])
    pids = {process["rank"]: process["pid"] for process in told["cuscope"]["processes"] if "rank" in process}
    checks.equal("ranks", {"6", "7"}, set(pids))
    for rank, pid in pids.items():
        run(case, "export", case.path("both.cuscope"), "-p", str(pid), "-o", case.path(f"{rank}.json"))
        told = hta_rules.parse(hta_rules.text_of(case.path(f"{rank}.json")))
        checks.equal("of one", {"backend": "nccl", "rank": int(rank), "world_size": 8}, told["distributedInfo"])
    checks.equal("HTA's rules of both", [], hta_rules.check([case.path("6.json"), case.path("7.json")]))
    run(case, "export", case.path("both.cuscope"), "--rank", "1/2", "--force", "-p", str(pids["7"]), "-o", case.path("7.json"))
    told = hta_rules.parse(hta_rules.text_of(case.path("7.json")))
    checks.equal("what the user says", {"backend": "nccl", "rank": 1, "world_size": 2}, told["distributedInfo"])


def test_export_tells_who_processes_are(case):
    case.env = {"SLURM_JOB_ID": "77", "RANK": "3,\x1b[1m"}
    run(case, "record", "-o", case.path("x.cuscope"), "--", Places.program("copies"))
    for name in ("x.pftrace", "x.json", "x.sqlite"):
        run(case, "export", case.path("x.cuscope"), "-o", case.path(name))
    slices(case.path("x.json"))
    with open(case.path("x.json")) as file:
        trace = json.load(file)
    seen = trace["cuscope"]["processes"][0]
    checks.equal("words", ("root", "77", "copies", ["slurm_job", "rank", "command"]),
                 (seen["user"], seen["slurm_job"], seen["command"], seen["own_word"]))
    labels = [event["args"]["labels"] for event in trace["traceEvents"] if event["name"] == "process_labels"]
    checks.contains("labels", r"^CPU,user root,slurm_job 77,rank 3 [^,]*,command copies", labels[-1])
    if "\x1b" in labels[-1]:
        raise Failure("a control character is in the file")
    with open(case.path("x.pftrace"), "rb") as file:
        if b"slurm_job 77" not in file.read():
            raise Failure("perfetto has no labels")
    calls(case.path("x.pftrace"))
    rows = sqlite3.connect(case.path("x.sqlite")).execute(
        "SELECT p.name, c.user, c.slurmJob, c.ownWord, c.pod FROM cuscope_process c JOIN PROCESSES p USING (globalPid)")
    checks.equal("rows", [("copies", "root", "77", "slurm_job,rank,command", None)], rows.fetchall())


def test_export_of_a_recorded_trace_has_what_was_traced(case):
    """Threads, nested calls, and a driver and a runtime."""
    run(case, "record", "-o", case.path("x.cuscope"), "-v", "--", Places.program("nested"))
    for name in ("x.pftrace", "x.json", "x.jsonl"):
        run(case, "export", case.path("x.cuscope"), "-o", case.path(name))
    found = calls(case.path("x.pftrace"))
    with open(case.path("x.jsonl")) as lines:
        expected = sum('"phase":"X"' in line and '"duration_us"' in line for line in lines)
    if found["TYPE_SLICE_BEGIN"] != expected or not expected:
        raise Failure(f"{found['TYPE_SLICE_BEGIN']} slices of {expected} calls")
    slices(case.path("x.json"))


def test_export_filters_of_a_trace_apply(case):
    target = ["--", Places.program("errors")]
    run(case, "trace", "-o", case.path("all.json"), *target)
    run(case, "trace", "-o", case.path("failed.json"), "--failed", *target)
    run(case, "trace", "-o", case.path("few.pftrace"), "--max-events", "3", *target)
    run(case, "trace", "-o", case.path("long.pftrace"), "--min-duration", "1h", *target)
    everything, failed = slices(case.path("all.json")), slices(case.path("failed.json"))
    if not failed or not failed < everything:
        raise Failure(f"{failed} of {everything}")
    if sum(calls(case.path("few.pftrace"))[kind] for kind in ("TYPE_SLICE_BEGIN", "TYPE_INSTANT")) > 3 + 3:
        raise Failure("more than three calls and what is said of the trace")
    if calls(case.path("long.pftrace"))["TYPE_SLICE_BEGIN"]:
        raise Failure("a call that took an hour")


def test_export_counts_memory_of_the_program(case):
    """What is still live at the end goes with the process: every counter comes back to 0."""
    path = case.path("x.pftrace")
    run(case, "trace", "-o", path, "--", Places.program("memory"))
    with open(path, "rb") as file:
        text = subprocess.run(["protoc", f"--proto_path={SCHEMA}", "--decode=perfetto.protos.Trace",
                               "perfetto_subset.proto"], stdin=file, capture_output=True, text=True).stdout
    last = dict(re.findall(r"track_uuid: (\d+)\n    counter_value: (-?\d+)", text))
    if not last or set(last.values()) != {"0"}:
        raise Failure(f"the last values are {last}")
