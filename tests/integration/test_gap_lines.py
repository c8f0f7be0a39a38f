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
    first = parts["places"][0]
    last = rf"loader\.py:({line_at('work') - 1}|{line_at('work')}) (Loader\.)?decode"
    if not re.search(rf"{last}( > |$)", first["Place"]):
        raise Failure(f"the first line is {first}")
    checks.equal("the cause", "computing", first["Cause"])
    of_decode = sum(row["Time (ns)"] for row in parts["places"] if row["Place"] and "decode" in row["Place"])
    if of_decode < 0.5 * parts["gpus"][0]["Idle (ns)"]:  # others have the CPUs, too
        raise Failure(f"decode has {of_decode} ns of {parts['gpus']}: {parts['places']}")
    checks.contains("its stack", r"train > .*next_batch > .*decode", first["Place"])


def test_gap_lines_name_the_line_that_waits(case):
    """The loader waits for a queue that another thread fills."""
    path = record(case, "wait", "--stacks", "-F", "499")
    parts = json.loads(report(case, path, "gaps", "--format", "json").out())
    first = parts["places"][0]
    checks.contains("the first line: that it waits for", rf"loader\.py:{line_at('late')} (Loader\.)?fill$", first["Place"])
    checks.contains("in which it waits", rf"waited for in .*loader\.py:{line_at('wait')} Loader\.next_batch$", first["Through"])
    if first["Share (%)"] < 50:
        raise Failure(f"the loop waits for nearly all of the time: {first}")
    change = json.loads(report(case, path, "--format", "json").out())["why"]["first"]
    checks.equal("what to change: the line that it waits for", ("Loader.fill", line_at("late")),
                 (change["place"][-1]["function"], change["place"][-1]["line"]))
    checks.equal("in which it waits", line_at("wait"), change["through"][-1]["place"][-1]["line"])
    checks.contains("the same in words", rf"Change first: blocked in loader\.py:{line_at('late')} Loader\.fill of thread \S+ \(\d+\): \d+ % of the "
                    rf"time[^\n]*\.\n  it is waited for in [^\n]*loader\.py:{line_at('wait')} Loader\.next_batch\.\n", report(case, path).out())


def test_gap_lines_without_samples(case):
    path = record(case, "fast", "--no-stacks", steps=20)
    process = report(case, path, "gaps")
    checks.contains("what is said", r"has no samples of stacks: 'cuscope record --stacks' takes them", process.err())
    if "loader.py" in process.out():
        raise Failure("lines of nothing")
