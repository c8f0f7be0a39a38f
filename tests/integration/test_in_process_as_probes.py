# SPDX-License-Identifier: MIT
"""A program that does the same each time is traced with probes and with --in-process: what is told has to be the same, call by
call, in the order of each thread, and so has what is summed up.

What differs from run to run is left out: times, ids, addresses. So is what probes cannot know, since a call within another one
has no return probe: what it returned and wrote, and how deep within others it is.
"""

import collections
import json
import re

import checks
from harness import Failure, Places, wait_until
from inside import SETTLED
from test_in_process import told_inside

RUN = ("event_id", "ts", "tid", "pid", "duration_us", "duration_ms", "bandwidth_gbps", "total_allocated")
RETURN = ("retval", "error", "args", "depth", "ptr", "stream", "event", "graph", "graph_exec", "context")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")

# Programs, their arguments, and how many of their calls are recorded inside at least: else probes are compared with probes.
PROGRAMS = (
    ("threads 4 25", 700), ("copies", 30), ("memory", 40), ("errors", 15), ("capture 5", 40), ("reload 4", 30), ("nested 3 2", 10),
    ("answers 5", 25), ("runtime12 20", 150), ("runtime13 20", 150), ("static 20", 150), ("gpucopies 2", 50), ("gpugraphs 3 2", 20),
    ("gpustreams 3", 40), ("gpudevices 1", 5), ("gpulast 5", 8), ("ptsz 4", 10), ("places 3 4 5", 25), ("getters 2 2", 8),
    ("nvtx 3", 15), ("live leave", 8), ("leak 5 1", 15), ("seccomp", 40), ("unloads 2 3", 1),
    ("dlopen libcuda.so.1 libcudart.so.13", 1), ("exec 2", 1), ("fork before", 5), ("fork after", 3), ("churn 4", 1), ("crowd 3", 1))


def essence(event):
    """What an event tells that is the same in each run, as text."""
    left_out = RUN
    if event.get("nested"):
        left_out += RETURN if event.get("op") in ("copy", "set") else (*RETURN, "size")
    return ADDRESS.sub("ADDRESS", json.dumps({key: event[key] for key in sorted(event.keys() - left_out)}))


def threads(result):
    """How many threads told the same events in the same order."""
    told = collections.defaultdict(list)
    for event in sorted(result.events[1:-1], key=lambda event: event["ts"]):
        told[event["tid"]].append(essence(event))
    return collections.Counter(map(tuple, told.values()))


def same_order(probes, inside):
    for row in inside - probes:
        nearest = max(probes, key=lambda other: sum(a == b for a, b in zip(row, other)))
        place = next((n for n, (a, b) in enumerate(zip(row, nearest)) if a != b), min(len(row), len(nearest)))
        raise Failure(f"a thread's events from number {place} on: {row[place:place + 3]}, should be {nearest[place:place + 3]}")


def without_peaks(memory):
    """Those of processes side by side are those of a moment."""
    if not isinstance(memory, dict):
        return memory
    return {key: without_peaks(value) for key, value in memory.items() if key != "peak_bytes"}


def missed(result):
    """But for launches that the runtime refuses, which are counted inside and nobody looks at by probes."""
    told = result.summary["missed"]
    return {**told, "hooks": [hook for hook in told["hooks"] if hook["kind"] != "not_looked_at"]}


def sums(summary):
    told = {key: summary[key] for key in ("calls", "launches", "transfers", "sets", "errors")}
    told["memory"] = without_peaks(summary["memory"])
    told["kernels"] = {row["name"]: row["launches"] for row in summary["kernels"]}
    told["functions"] = {row["name"]: (row["layer"], row["calls"], row["nested"], row["unfinished"]) for row in summary["functions"]}
    return told


def comparison(program, *arguments, least):
    def test(case):
        probes = case.trace(program, *arguments, name="probes")
        case.env["SIMCUDA_WAIT"] = case.path("go")
        process = case.start_trace(["--in-process"], ["--", Places.program(program), *arguments], "inside")
        wait_until(lambda: SETTLED.search(process.err()) or process.process.poll() is not None, "the driver to be diverted")
        open(case.path("go"), "w").close()
        inside = case.result(process, "inside")
        checks.equal("status", probes.status, inside.status)
        for result in (probes, inside):
            checks.valid(result)
        checks.equal("missed", missed(probes), missed(inside))
        checks.differences("events", map(essence, probes.events[1:-1]), map(essence, inside.events[1:-1]))
        same_order(threads(probes), threads(inside))
        wanted, told = sums(probes.summary), sums(inside.summary)
        for key, value in wanted.items():
            checks.equal(key, value, told[key])
        calls, _, _ = told_inside(inside.err)
        if calls < least:
            raise Failure(f"{calls} calls were recorded inside, at least {least} should be")

    test.__name__ = "test_in_process_as_probes_" + "_".join((program, *arguments)).replace(".", "_")
    return test


for words, number in PROGRAMS:
    made = comparison(*words.split(), least=number)
    globals()[made.__name__] = made
