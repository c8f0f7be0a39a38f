# SPDX-License-Identifier: MIT
"""Reports that name lines of code: of a loop in Python that waits for its data. See tests/programs/loader.py."""

import json
import os
import re

import checks
from harness import Failure, Places

SLOW = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "2000"}


def script():
    return os.path.join(Places.root, "tests/programs/loader.py")


def line_at(name):
    with open(script()) as file:
        for number, text in enumerate(file, 1):
            if text.rstrip().endswith("# at " + name):
                return number
    raise Failure(f"no line is marked with {name}")


def record(case, mode, *options, steps=60):
    path = case.path(f"{mode}.cuscope")
    case.env = SLOW
    process = case.cuscope("record", "-o", path, "--gpu", "--cupti", Places.simcuda("libcupti.so.13"), *options, "--",
                           "/usr/bin/python3", script(), str(steps), mode)
    checks.equal("status of record", 0, process.wait())
    return path


def report(case, path, *arguments):
    process = case.cuscope("report", path, *arguments)
    checks.equal(f"status of report {arguments}", 0, process.wait())
    return process


def test_gap_lines_name_the_line_that_works(case):
    path = record(case, "work", "--stacks", "-F", "499")
    parts = json.loads(report(case, path, "gaps", "--stacks", "--format", "json").out())
    first, known = parts["host"][0], parts["host_samples"][0]
    if not re.fullmatch(rf"(Loader\.)?decode \(loader\.py:({line_at('work') - 1}|{line_at('work')})\)", first["Line"]):
        raise Failure(f"the first line is {first}")
    checks.equal("the cause", "host", first["Cause"])
    if known["Trust"] not in ("sure", "likely", "partly") or known["Samples"] < 100:  # where others have the CPUs
        raise Failure(f"known is {known}")
    of_decode = sum(row["On CPU (ns)"] for row in parts["host"] if "decode" in row["Line"])
    if of_decode < 0.8 * known["On CPU (ns)"]:
        raise Failure(f"decode has {of_decode} ns of {known}: {parts['host']}")
    checks.contains("its stack", r"decode.* < .*next_batch.* < train", parts["host_stacks"][0]["Stack"])
    checks.contains("the text", r"where: \d+ % in (Loader\.)?decode \(loader\.py:\d+\), on a CPU", report(case, path, "gaps").out())


def test_gap_lines_name_the_line_that_waits(case):
    """The loader waits for a queue that another thread fills."""
    path = record(case, "wait", "--stacks", "-F", "499")
    parts = json.loads(report(case, path, "gaps", "--format", "json").out())
    first, known = parts["host"][0], parts["host_samples"][0]
    checks.equal("the first line", f"Loader.next_batch (loader.py:{line_at('wait')})", first["Line"])
    if first["Share (%)"] < 60 or first["Blocked (ns)"] < 0.9 * (first["Blocked (ns)"] + first["On CPU (ns)"]):
        raise Failure(f"the loop waits for nearly all of the time: {first} of {known}")
    change = json.loads(report(case, path, "--format", "json").out())["why"]["first"]
    checks.equal("what to change: the line that it waits for", ("Loader.fill", line_at("late")),
                 (change["place"][-1]["function"], change["place"][-1]["line"]))
    checks.equal("in which it waits", line_at("wait"), change["through"][-1]["place"][-1]["line"])
    checks.contains("the same in words", rf"Change first: blocked in loader\.py:{line_at('late')} Loader\.fill of thread \S+ \(\d+\): \d+ % of the "
                    rf"time[^\n]*\.\n  it is waited for in [^\n]*loader\.py:{line_at('wait')} Loader\.next_batch\.\n", report(case, path).out())

def test_gap_lines_without_samples(case):
    path = record(case, "fast", steps=20)
    process = report(case, path, "gaps")
    checks.contains("what is said", r"has no samples of stacks: 'cuscope record --stacks' takes them", process.err())
    if "Where the host was" in process.out():
        raise Failure("lines of nothing")
