# SPDX-License-Identifier: MIT
"""JSON lines: every line of every golden trace obeys the schema, and the keys join."""

import json
import os
import subprocess
import sys

from case import Failure, equal

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "..", "docs", "jsonl.schema.json")


def lines_of(case, trace, *options):
    with open(case.export(trace, trace + ".jsonl", "--force", *options)) as file:
        return [json.loads(line) for line in file]


def test_jsonl_obeys_the_schema(case):
    for trace in ("plain", "gpu", "lost", "ranges", "stacks", "hard stacks"):
        path = case.export(trace, trace + ".jsonl")
        result = subprocess.run([sys.executable, os.path.join(HERE, "..", "schema", "check.py"), SCHEMA, path],
                                capture_output=True, text=True)
        if result.returncode:
            raise Failure(f"{trace}: {result.stdout}{result.stderr}")


def test_jsonl_stacks_are_told_before_what_refers_to_them(case):
    lines, told, samples, calls = lines_of(case, "stacks"), {}, [], []
    for line in lines:
        if line["type"] == "stack":
            equal("told before", False, line["stack"] in told)
            told[line["stack"]] = line
        elif "stack" in line:
            (samples if line["type"] == "sample" else calls).append(told[line["stack"]])
    equal("stacks", 7, len(told))
    equal("inner frames of samples", ["Net.forward", "worker", "nvidia_ioctl", "Net.forward", "triton_\x1b[31mfused", "futex_wait"],
          [stack["frames"][0]["function"] for stack in samples])
    equal("frames of launches", [6, 3], [len(stack["frames"]) for stack in calls])
    equal("time", 9370.125, sum(line["weight_us"] for line in lines if line["type"] == "sample"))


def test_jsonl_frames_have_their_build_ids(case):
    ids = {frame.get("build_id") for line in lines_of(case, "hard stacks") for frame in line.get("frames", ())}
    equal("build ids", {None, "", "0123abcd", "0123abce", "xyz", "0123a", "\x1b[2J\ufffd\"", "a" * 4096}, ids)


def test_jsonl_work_is_joined_to_its_call(case):
    lines = lines_of(case, "ranges")
    calls = {(line["pid"], line["correlation"]): line for line in lines if "retval" in line and "correlation" in line}
    joined = [(line["op"], calls[line["pid"], line["correlation"]]["name"], line["tid"]) for line in lines
              if line["type"] == "gpu"]
    equal("work", [("kernel", "cudaLaunchKernel", 5151), ("kernel", "cudaLaunchKernel", 5151),
                   ("graph", "cudaGraphLaunch", 5151)] * 2, joined)


def test_jsonl_delay_is_from_the_end_of_the_call(case):
    lines = lines_of(case, "ranges")
    first = next(line for line in lines if line["type"] == "gpu")
    call = next(line for line in lines if line.get("correlation") == first["correlation"] and "retval" in line)
    equal("delay", round(first["ts"] * 1000 - call["ts"] * 1000 - call["duration_us"], 3), first["queue_us"])


def test_jsonl_failed_calls_only(case):
    types = {line["type"] for line in lines_of(case, "ranges", "--failed")}
    equal("types", {"trace", "process", "summary"}, types)
