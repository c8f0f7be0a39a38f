# SPDX-License-Identifier: MIT
"""The comparison of a trace with what a program of this folder wrote to SAMPLE_COUNTS."""

import collections
import json

from tracing import base_name, difference, equal


class Counts:
    """What a program says that it did: see counts.h."""

    def __init__(self, path):
        with open(path) as lines:
            self.lines = [json.loads(line) for line in lines]

    def of(self, what):
        return [line for line in self.lines if line["what"] == what]

    def counter(self, what, key):
        counter = collections.Counter()
        for line in self.of(what):
            counter[key(line)] += line.get("times", 1)
        return counter

    def allocated(self):
        """Bytes in all, bytes at the most, bytes never freed."""
        live, total, now, peak = {}, 0, 0, 0
        for line in self.lines:
            if line["what"] == "alloc":
                live.setdefault(line["address"], []).append(line["bytes"])
                total += line["bytes"]
                now += line["bytes"]
                peak = max(peak, now)
            elif line["what"] == "free":
                now -= live[line["address"]].pop()
        return total, peak, now


def number(text):
    return int(text, 16) if text else 0


def work(trace, op, captured=False):
    return [c for c in trace.did_work() if c.get("op") == op and
            c.get("captured", False) == captured]


def launches(counts, trace):
    """Name, shape, shared memory, stream and thread of each launch, and whether it ran."""
    streams = {line["stream"] for line in counts.of("launch")}
    expected = counts.counter("launch", lambda line: (
        line["kernel"], tuple(line["grid"]), tuple(line["block"]), line["shmem"], line["stream"],
        line["tid"], line["captured"]))
    seen = collections.Counter()
    for call in trace.did_work():
        if call.get("op") != "launch":
            continue
        stream = number(call.get("stream"))
        seen[call.get("kernel"), tuple(call["grid"]), tuple(call["block"]), call["shmem"],
             stream if stream in streams else 0, call["tid"], call.get("captured", False)] += 1
    yield from difference("launches", expected, seen)


def launch_totals(counts, trace):
    """The summary counts the same, and each launch once, whatever layers were hooked."""
    by_name = counts.counter("launch", lambda line: (line["kernel"], line["captured"]))
    expected = collections.Counter({k: n for (k, captured), n in by_name.items() if not captured})
    captured = sum(n for (_, was_captured), n in by_name.items() if was_captured)
    totals = trace.summary["launches"]
    yield from difference("kernels", expected, trace.launches())
    yield from equal("kernels launched", sum(expected.values()), totals["kernels"])
    yield from equal("kernels captured", captured, totals["captured_kernels"])
    yield from equal("graph launches", sum(counts.counter("graph_launch", str).values()),
                     totals["graphs"])
    yield from equal("host functions", sum(counts.counter("host_launch", str).values()),
                     totals["host_functions"])
    yield from trace.unresolved()


def copies(counts, trace):
    expected = counts.counter("copy", lambda c: (c["direction"], c["bytes"], c["captured"]))
    seen = collections.Counter((c.get("direction"), c["size"], c.get("captured", False))
                               for c in trace.did_work() if c.get("op") == "copy")
    yield from difference("copies", expected, seen)
    bytes_by_direction = collections.Counter()
    for (direction, size, captured), n in expected.items():
        if not captured:
            bytes_by_direction[direction] += size * n
    directions = trace.summary["transfers"]["directions"]
    yield from equal("bytes by direction", dict(bytes_by_direction),
                     {d: v["bytes"] for d, v in directions.items()})


def sets(counts, trace):
    expected = counts.counter("set", lambda c: (c["bytes"], c["captured"]))
    seen = collections.Counter((c["size"], c.get("captured", False))
                               for c in trace.did_work() if c.get("op") == "set")
    yield from difference("sets", expected, seen)


def memory(counts, trace):
    """Each allocation and each free, and the sums: in all, at the most, never freed."""
    yield from difference(
        "allocations", counts.counter("alloc", lambda a: (a["kind"], hex(a["address"]), a["bytes"])),
        collections.Counter((c["memory"], hex(number(c.get("ptr"))), c["size"])
                            for c in work(trace, "alloc") if c["memory"] != "vmm-va"))
    yield from difference(
        "frees", counts.counter("free", lambda f: hex(f["address"])),
        collections.Counter(hex(number(c["ptr"])) for c in work(trace, "free")
                            if "ptr" in c and c["memory"] != "vmm-va"))
    total, peak, leaked = counts.allocated()
    sums = trace.summary["memory"]
    yield from equal("bytes allocated", total, sums["allocated"]["bytes"])
    yield from equal("bytes never freed", leaked, sums["live_bytes"] +
                     sums["released_by_exit"]["bytes"] + sums["released_with_context"]["bytes"])
    if len({c["tid"] for c in work(trace, "alloc")}) == 1:
        yield from equal("bytes at the most", peak, sums["peak_bytes"])


def errors(counts, trace):
    """Function, code and name. A driver call inside a runtime call that is not hooked by default
    may fail in the course of things, so the driver's are compared where the program uses it."""
    expected = counts.counter("error", lambda e: (base_name(e["function"]), e["code"], e["error"]))
    on_runtime = not counts.counter("calls", lambda c: c["function"])["cuInit"]
    seen = collections.Counter()
    for row in trace.summary["errors"]:
        if row["function"].startswith("cuda") or not on_runtime:
            seen[base_name(row["function"]), row["code"], row["error"]] += row["count"]
    yield from difference("errors", expected, seen)


def calls(counts, trace, without=()):
    """The calls of functions that the program counted."""
    expected = counts.counter("calls", lambda c: c["function"])
    for function in without:
        del expected[function]
    made = collections.Counter(base_name(c["name"]) for c in trace.calls if not c.get("nested"))
    yield from difference("calls", expected,
                          collections.Counter({f: made[f] for f in expected}))


def durations(counts, trace):
    """Every call of the program's own has one; nested ones are spared the return."""
    bad = [c["name"] for c in trace.calls if not c.get("nested") and "duration_us" not in c]
    if bad:
        yield f"{len(bad)} calls without a duration: {bad[0]}"


def no_durations(counts, trace):
    bad = [c["name"] for c in trace.calls if "duration_us" in c or "retval" in c]
    if bad:
        yield f"{len(bad)} calls with a duration or result: {bad[0]}"
