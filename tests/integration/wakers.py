# SPDX-License-Identifier: MIT
"""Recordings of tests/programs/waker, and what of them is whose."""

import json
import signal
import time

import checks
import harness
import profiles
from harness import Places, wait_until


def start(case, length=1, rows=1, user=0, closed=0, under=(), name=None):
    """The program and its workers: row by row, and in a row each asks the next."""
    process = profiles.started(case, *under, Places.program("waker"), length, rows, user, closed, name=name)
    pids = [int(line) for line in process.out().splitlines() if line.isdigit()]
    checks.equal("workers", length * rows, len(pids))
    return process, sorted(pids)


def record(case, processes, seconds=3, options=("--host-waits",), until=(), meanwhile=None):
    """For so long, from when those of `until` are said to be sampled, or not to be; the events, and what was said."""
    path = case.path("r.cuscope")
    pids = ",".join(str(process.pid) for process in processes)
    limit = [] if until else ["--duration", f"{seconds * harness.patience:g}s"]
    recording = case.cuscope("record", "--force", "-o", path, "--stacks", *options, *limit, "-p", pids)
    for pid in until:
        wait_until(lambda: f"process {pid} (worker)" in recording.err(), f"process {pid} to be sampled")
    if until:
        time.sleep(seconds * harness.patience)
    if meanwhile:
        meanwhile()
        time.sleep(seconds * harness.patience)
    if until:
        recording.signal(signal.SIGINT)
    checks.equal(f"status ({recording.err()[-300:]})", 0, recording.wait(60))
    export = case.cuscope("export", path, "--format", "jsonl", "-o", "-")
    checks.equal("status of export", 0, export.wait(60))
    return [json.loads(line) for line in export.out().splitlines()], recording.err()


def sampled(events):
    return {event["pid"] for event in events if event["type"] == "sample"}


def functions(events, pid, op):
    """Of the stacks of such samples, with the time that each function stands in."""
    stacks = {event["stack"]: event for event in events if event["type"] == "stack"}
    found = {}
    for event in events:
        if event["type"] == "sample" and event["pid"] == pid and event["op"] == op and "stack" in event:
            for name in {frame.get("function") for frame in stacks[event["stack"]]["frames"]}:
                found[name] = found.get(name, 0) + event["weight_us"]
    return found
