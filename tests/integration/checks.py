# SPDX-License-Identifier: MIT
"""Compares a trace with what the program counted. Each check raises Failure with the differences."""

import collections
import functools
import json
import os
import re
import subprocess

import check as schema_check
from harness import Failure, Places, environment


def differences(what, expected, seen):
    expected, seen = collections.Counter(expected), collections.Counter(seen)
    lines = [f"{what}: {key}: {seen[key]}, should be {expected[key]}"
             for key in sorted(expected.keys() | seen.keys(), key=str) if expected[key] != seen[key]]
    if lines:
        raise Failure("; ".join(lines[:6]) + (f" and {len(lines) - 6} more" if len(lines) > 6 else ""))


def equal(what, expected, seen):
    if expected != seen:
        raise Failure(f"{what}: {seen!r}, should be {expected!r}")


def contains(what, wanted, text):
    if not re.search(wanted, text):
        raise Failure(f"{what}: no {wanted!r} in: {text.strip()[-700:]!r}")


def contains_not(what, unwanted, text):
    if re.search(unwanted, text):
        raise Failure(f"{what}: {unwanted!r} in: {text.strip()[-700:]!r}")


@functools.lru_cache(maxsize=None)
def hooked(options=(), files=("push/libcuda.so.1", "libcudart.so.13")):
    """The functions that are hooked with these options, as `cuscope probes` says."""
    names = set()
    for file in files:
        path = file if file.startswith("/") else Places.simcuda(file)
        text = subprocess.run([Places.cuscope(), "probes", *options, path], env=environment(),
                              capture_output=True, text=True, timeout=20, check=True).stdout
        names |= {line.split()[0] for line in text.splitlines()
                  if len(line.split()) > 2 and line.split()[2] == "on"}
    if not names:
        raise Failure(f"cuscope probes lists nothing that is on: {text[-400:]}")
    return names


# In CUDA 13 the first jumps to the second: one call.
ALIASES = {"__cudaLaunchKernel": "cudaLaunchKernel"}


# What a runtime calls in the driver for a launch. By default launches are not hooked in the runtime,
# so that these are nested in nothing.
FOR_LAUNCHES = ("cuLaunchKernel", "cuLibraryLoadData", "cuLibraryGetKernel")


def calls(result, options=(), without=()):
    """Each call that the program made of a hooked function, once; no others but `without`."""
    on = hooked(tuple(options))
    expected = collections.Counter()
    for name, n in result.counts.of("calls").items():
        name = ALIASES.get(name, name)
        if name in on:
            expected[name] += n
    seen = result.names(nested=None)
    differences("calls", expected, {name: n for name, n in seen.items()
                                    if name in expected or name not in without})
    summary = collections.Counter()
    for row in result.summary["functions"]:
        if row["calls"] - row["nested"]:
            summary[row["name"]] += row["calls"] - row["nested"]
    differences("calls in the summary", seen, summary)
    equal("total calls", sum(seen.values()), result.summary["calls"]["total"])


def launch_key(call):
    return (f"{call['kernel']} {','.join(map(str, call['grid']))} "
            f"{','.join(map(str, call['block']))} {call['shmem']} {call['stream']} {call['tid']}")


def launches(result):
    """Name, grid, block, shared memory, stream and thread of each launch; run or captured."""
    work = [c for c in result.calls(op="launch", nested=None) if "error" not in c]
    differences("launches", result.counts.of("launches"),
                collections.Counter(launch_key(c) for c in work if "captured" not in c))
    differences("captured launches", result.counts.of("captured_launches"),
                collections.Counter(launch_key(c) for c in work if "captured" in c))
    run = collections.Counter()
    for key, n in result.counts.of("launches").items():
        run[key.rsplit(" ", 5)[0]] += n
    differences("kernels in the summary", run,
                {k["name"]: k["launches"] for k in result.summary["kernels"]})
    totals = result.summary["launches"]
    equal("launches in all", sum(run.values()), totals["kernels"])
    equal("captured in all", sum(result.counts.of("captured_launches").values()),
          totals["captured_kernels"])
    equal("graph launches", result.counts.of("graph_launches")["count"], totals["graphs"])
    equal("unresolved kernels", 0, result.summary["missed"]["unresolved_kernels"])


def copies(result):
    def seen(op, captured, key):
        return collections.Counter(key(c) for c in result.calls(op=op, nested=None)
                                   if "error" not in c and ("captured" in c) == captured)

    def copy_key(c):
        return f"{c['direction']} {c['size']} {'async' if c.get('async') else 'sync'}"

    def set_key(c):
        return f"{c['size']}"

    differences("copies", result.counts.of("copies"), seen("copy", False, copy_key))
    differences("captured copies", result.counts.of("captured_copies"), seen("copy", True, copy_key))
    differences("sets", result.counts.of("sets"), seen("set", False, set_key))
    differences("captured sets", result.counts.of("captured_sets"), seen("set", True, set_key))
    by_direction = collections.Counter()
    for key, n in result.counts.of("copies").items():
        direction, size, _ = key.split()
        by_direction[direction] += int(size) * n
    differences("bytes by direction", by_direction,
                {d: v["bytes"] for d, v in result.summary["transfers"]["directions"].items()})


def by_kind(counter):
    """(count, bytes) for each kind, of counts by "kind size"."""
    kinds = {}
    for key, n in counter.items():
        kind, size = key.split()
        count, total = kinds.get(kind, (0, 0))
        kinds[kind] = count + n, total + n * int(size)
    return kinds


def memory(result):
    """Each allocation and free, the sums by kind, and what was never freed."""
    def seen(op, key):
        return collections.Counter(key(c) for c in result.calls(op=op, nested=None)
                                   if "error" not in c and c["memory"] != "vmm-va" and "size" in c)

    allocs, frees = result.counts.of("allocs"), result.counts.of("frees")
    differences("allocations", allocs, seen("alloc", lambda c: f"{c['memory']} {c['size']}"))
    sizes = collections.Counter()
    for key, n in frees.items():
        sizes[key.split()[1]] += n
    # cuMemFree frees several kinds; which one, the summary knows
    unmapped = collections.Counter(str(c["freed"]) for c in result.calls(op="unmap") if "freed" in c)
    differences("frees", sizes, seen("free", lambda c: str(c["size"])) + unmapped)
    sums = result.summary["memory"]
    for column, counted in (("allocated", allocs), ("freed", frees)):
        in_summary = {kind: (row[column]["count"], row[column]["bytes"])
                      for kind, row in sums["kinds"].items()
                      if row[column]["count"] and kind != "vmm-va"}
        equal(f"{column} by kind", by_kind(counted), in_summary)
    live = result.counts.of("live")
    for unit in ("count", "bytes"):
        equal(f"{unit} never freed", live[unit], sums["live_" + unit] +
              sums["released_by_exit"][unit] + sums["released_with_context"][unit])
    equal("frees of memory that is not known", 0, sums["unknown_frees"])


def errors(result, options=()):
    on = hooked(tuple(options))
    expected = {key: n for key, n in result.counts.of("errors").items() if key.split()[0] in on}
    seen = collections.Counter(f"{c['name']} {c['retval']} {c['error']}"
                               for c in result.calls(nested=None) if "error" in c)
    differences("errors", expected, seen)
    differences("errors in the summary", expected,
                {f"{e['function']} {e['code']} {e['error']}": e["count"]
                 for e in result.summary["errors"]})


@functools.lru_cache(maxsize=None)
def schema():
    with open(os.path.join(Places.root, "docs", "jsonl.schema.json"), encoding="utf-8") as file:
        return schema_check.Schema(json.load(file))


LIKE_EACH_OTHER = 200  # lines of one shape that are compared with the schema, which takes up to a millisecond


def valid(result, cut=False):
    """The lines are as docs/jsonl.md says, from the first to the closing one (unless cut off)."""
    if not result.events:
        raise Failure("no events at all")
    seen = collections.Counter()
    for number, event in enumerate(result.events, 1):
        shape = (event.get("type"), event.get("name"), *event)
        seen[shape] += 1
        problems = seen[shape] <= LIKE_EACH_OTHER and schema().problems(event, schema().root)
        if problems:
            raise Failure(f"line {number}: {'; '.join(problems)}: {result.lines[number - 1]}")
        equal("event_id", number, event["event_id"])
    equal("first line", "trace", result.events[0]["type"])
    if not cut:
        equal("last line", "summary", result.events[-1]["type"])


# An emulated machine can stand still between the time that a record takes and its leaving, for longer
# than the order waits: it comes late then, which is counted, and loses nothing. tests/vm/smoke sets it.
late_may_happen = False


def nothing_missed(result):
    missed = result.summary["missed"]
    lost = [n for reason, n in missed["lost"].items() if reason != "late" or not late_may_happen]
    whole = missed["complete"] or (late_may_happen and missed["lost"]["late"])
    # of a program that fails in nothing no launch was refused, and it is said that nobody looked
    hooks = [hook for hook in missed["hooks"] if hook["kind"] != "not_looked_at"]
    if not whole or hooks or any(lost):
        raise Failure(f"missed: {missed}")


def everything(result, options=(), without=()):
    """What holds for a program that was traced from its start, however."""
    valid(result)
    nothing_missed(result)
    calls(result, options, without)
    launches(result)
    copies(result)
    memory(result)
    errors(result, options)
