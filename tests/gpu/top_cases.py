# SPDX-License-Identifier: MIT
"""cuscope top on a GPU: one page against what the program counted, and against nvidia-smi."""

import collections
import json
import os
import subprocess

import programs
from tracing import difference, equal


def page_of(cuscope, folder, program):
    """The page, what the program counted, and what went wrong."""
    counts = os.path.join(folder, "top.counts")
    done = subprocess.run([cuscope, "top", "--once", "--format", "json", "--interval", "10m", "--", program],
                          capture_output=True, text=True, check=False,
                          env=dict(os.environ, SAMPLE_COUNTS=counts))
    with open(os.path.join(folder, "top.json"), "w") as file:
        file.write(done.stdout)
    if done.returncode:
        return None, None, [f"status {done.returncode}: {done.stderr[-300:]}"]
    return json.loads(done.stdout), programs.Counts(counts), []


def kernels(page, counts):
    launched = counts.counter("launch", lambda line: (line["kernel"], line["captured"]))
    expected = collections.Counter({k: n for (k, captured), n in launched.items() if not captured})
    seen = collections.Counter()
    for process in page["processes"]:
        for kernel in process["kernels"]:
            seen[kernel["name"]] += kernel["launches"]
    yield from difference("kernels", expected, seen)
    yield from equal("launches", sum(expected.values()), page["total"]["launches"])


def smi(fields):
    """What nvidia-smi says of the first GPU; it counts memory in MiB."""
    out = subprocess.run(["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"],
                         capture_output=True, text=True, check=True).stdout
    return [word.strip() for word in out.splitlines()[0].split(",")]


def gpus(page):
    """A static program has names only, and says so."""
    if not page["gpus"]:
        yield f"no GPU: {page.get('gpus_note')}"
        return
    gpu = page["gpus"][0]
    name, total, limit = smi("name,memory.total,enforced.power.limit")
    yield from equal("name", name, gpu["name"])
    if "static" in page.get("gpus_note", ""):
        return
    yield from equal("MiB of memory", int(total), gpu["memory_total_bytes"] >> 20)
    yield from equal("power limit in W", float(limit), gpu["power_limit_mw"] / 1000)
    if not (0 <= gpu["busy_percent"] <= 100 and 0 < gpu["temperature_c"] < 120 and gpu["power_mw"] > 0):
        yield f"figures that cannot be: {gpu}"


def top(report, cuscope, folder, program):
    page, counts, problems = page_of(cuscope, folder, program)
    report.test("top: one page", problems)
    if problems:
        return
    report.test("top: kernels", kernels(page, counts))
    report.test("top: nothing lost", [
        f"lost: {n}: {reason}" for reason, n in page["missed"]["lost"].items() if n and reason != "late"])
    report.test("top: GPUs", gpus(page))
