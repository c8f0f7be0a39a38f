# SPDX-License-Identifier: MIT
"""The tools that add up in the kernel, against what the programs counted: launches, bandwidth,
memleak, and the three of them at once."""

import collections
import json
import os
import subprocess

import programs
from tracing import difference, equal

GROW = "model::Cache::grow()"


def last_page(cuscope, folder, name, tools, program, *arguments):
    """The page at the end, what the program counted, and what went wrong."""
    counts = os.path.join(folder, name + ".counts")
    done = subprocess.run(
        [cuscope, *tools, "--format", "json", "--interval", "10m", "--", program, *arguments],
        capture_output=True, text=True, check=False, env=dict(os.environ, SAMPLE_COUNTS=counts))
    with open(os.path.join(folder, name + ".json"), "w") as file:
        file.write(done.stdout)
    if done.returncode or not done.stdout:
        return None, None, [f"status {done.returncode}: {done.stderr[-300:]}"]
    return json.loads(done.stdout.splitlines()[-1]), programs.Counts(counts), []


def launches(page, counts):
    counted = counts.counter("launch", lambda line: (line["kernel"], line["captured"]))
    expected = collections.Counter({k: n for (k, captured), n in counted.items() if not captured})
    seen = collections.Counter()
    for row in page["launches"]["kernels"]:
        if "kernel" in row:  # else of a graph
            seen[row["kernel"]] += row["launches"]
    yield from difference("kernels", expected, +seen)
    yield from equal("graph launches", sum(counts.counter("graph_launch", str).values()),
                     page["launches"]["graph_launches"])


def copies(page, counts):
    expected, seen = collections.Counter(), collections.Counter()
    for (direction, size, captured), n in counts.counter(
            "copy", lambda c: (c["direction"], c["bytes"], c["captured"])).items():
        if not captured:
            expected[direction] += size * n
    for (size, captured), n in counts.counter("set", lambda c: (c["bytes"], c["captured"])).items():
        if not captured:
            expected["set"] += size * n
    for row in page["bandwidth"]["rows"]:
        seen[row["direction"]] += row["bytes"]
    yield from difference("bytes", expected, +seen)


def memory(page, counts):
    expected, seen = collections.Counter(), collections.Counter()
    for line in counts.of("alloc"):
        expected[line["kind"], "allocated"] += line["bytes"] * line.get("times", 1)
    for row in page["memory"]["kinds"]:
        if row["kind"] != "vmm-va":
            seen[row["kind"], "allocated"] += row["allocated"]["bytes"]
    yield from difference("bytes allocated", expected, +seen)
    _, _, leaked = counts.allocated()
    left = sum(row[what]["bytes"] for row in page["memory"]["kinds"] if row["kind"] != "vmm-va"
               for what in ("live", "released_by_exit", "released_with_context"))
    yield from equal("bytes never freed", leaked, left)


def nothing_lost(page):
    for reason, n in page["missed"]["lost"].items():
        if n and reason != "late":
            yield f"lost: {n}: {reason}"
    yield from equal("no room", 0, page["missed"]["no_room"])


def leak(page, counts):
    """The one place that keeps what it allocates, by its name, and no other."""
    kept = sum(1 for line in counts.of("alloc")) - sum(1 for line in counts.of("free"))
    places = {p["place"]["function"]: (p["count"], p["bytes"]) for p in page["memory"]["places"]}
    yield from equal("places", {GROW: (kept, kept * (256 << 10))}, places)


WHOLE = (("launches", launches), ("copies", copies), ("memory", memory))


def live(report, cuscope, folder, binaries):
    for name in ("launches", "threads", "graphs", "copies", "memory", "errors"):
        for linked in ("shared", "static"):
            program = os.path.join(binaries, f"{name}-{linked}")
            title = f"watch {name}-{linked}"
            page, counts, problems = last_page(cuscope, folder, f"watch-{name}-{linked}",
                                               ["watch", "memleak,launches,bandwidth"], program)
            report.test(f"{title}: runs", problems)
            if problems:
                continue
            report.test(f"{title}: nothing lost", nothing_lost(page))
            for what, check in WHOLE:
                report.test(f"{title}: {what}", check(page, counts))
    page, counts, problems = last_page(cuscope, folder, "leak", ["memleak", "--older", "0s"],
                                       os.path.join(binaries, "leak-shared"), "1")
    report.test("memleak names the function that leaks", problems or leak(page, counts))
