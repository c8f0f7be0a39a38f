# SPDX-License-Identifier: MIT
"""Traces the programs of this folder and PyTorch, and tells where cuscope and they disagree.

    check.py CUSCOPE BIN CASES [PART...]     BIN: the built programs, CASES: where traces go; see run
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import time

import programs
from file_cases import files
from gpu_cases import Gpu
from inside_cases import INSIDE_PARTS, Inside
from kernel_cases import Kernel
from live_cases import live
from metrics_cases import Metrics
from stalls_cases import Stalls
from top_cases import top
from torch_cases import Torch
from tracing import Recorded, Report, Trace

PARTS = ("calls", "gpu", "torch", "inside", "metrics", "kernel", "stalls")
ALL = (programs.launches, programs.launch_totals, programs.copies, programs.sets, programs.memory,
       programs.errors, programs.calls, programs.durations)
LAUNCHES = (programs.launches, programs.launch_totals)


def calls_but_polls(counts, trace):
    """cudaStreamQuery is left alone by default."""
    return programs.calls(counts, trace, without=["cudaStreamQuery"])


calls_but_polls.__name__ = "calls"


def polls_are_no_failures(counts, trace):
    yield from programs.calls(counts, trace)
    if trace.summary["errors"]:
        yield f"counted as failed: {trace.summary['errors'][0]}"


# Name, program and arguments ({bin} is where they are), options, what is compared.
CASES = [
    *((f"{name}-{linked}", [f"{{bin}}/{name}-{linked}"], [], ALL)
      for linked in ("shared", "static")
      for name in ("launches", "threads", "graphs", "copies", "memory")),
    ("threads-ptds", ["{bin}/threads-ptds"], [], ALL),
    ("launches-stripped", ["{bin}/launches-stripped"], [], LAUNCHES),
    *((f"launches-{linked}-layer-{layer}", [f"{{bin}}/launches-{linked}"], ["--layer", layer],
       LAUNCHES) for linked in ("shared", "static") for layer in ("both", "runtime", "driver")),
    *((f"errors-{linked}", ["{bin}/errors-" + linked], ["--layer", "both"],
       (*LAUNCHES, programs.memory, programs.errors, calls_but_polls, programs.durations))
      for linked in ("shared", "static")),
    ("polls", ["{bin}/errors-shared"], ["--only", "cudaStreamQuery*"], (polls_are_no_failures,)),
    ("graphs-layer-both", ["{bin}/graphs-shared"], ["--layer", "both"], ALL),
    ("no-returns", ["{bin}/launches-shared"], ["--no-returns"], (*LAUNCHES, programs.no_durations)),
    ("all-calls", ["{bin}/launches-shared"], ["--all-calls"], LAUNCHES),
    ("driver", ["{bin}/driver"], [], ALL),
    ("driver-no-returns", ["{bin}/driver", "no-failures"], ["--no-returns"],
     (*LAUNCHES, programs.copies, programs.sets, programs.no_durations)),
    ("driver-by-dlopen", ["{bin}/late", "{bin}/driver.so"], [], ALL),
    ("children", ["/bin/sh", "-c", "{bin}/launches-shared & {bin}/launches-static && wait $!"], [],
     (*LAUNCHES, programs.memory)),
]


def run_case(report, way, cuscope, folder, name, command, options, checks):
    path = os.path.join(folder, name + ".counts")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # programs append to it
    trace = way(cuscope, folder, name, options, ["--", *command], {"SAMPLE_COUNTS": path}).finish()
    problems = list(trace.problems())
    if not os.path.exists(path):
        problems.append("the program counted nothing")
    report.test(f"{name}: runs", problems)
    if problems:
        return
    counts = programs.Counts(path)
    report.test(f"{name}: nothing lost", trace.lost())
    for check in checks:
        report.test(f"{name}: {check.__name__.replace('_', ' ')}", check(counts, trace))


def table(report, cuscope, folder, program):
    """What people read: the kernel's name and its shape on one line, and the summary."""
    path = os.path.join(folder, "table.txt")
    done = subprocess.run([cuscope, "trace", "-o", path, "--", program], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env=dict(os.environ, SAMPLE_COUNTS="/dev/null"))
    text = done.stdout
    if os.path.exists(path):
        with open(path) as lines:
            text += lines.read()
    for what, wanted in (("a launch in words", "shapes::scale<float, 4>(float*, int) "
                                               "grid=(65535,1,1) block=(256,1,1)"),
                         ("the summary", "=== TRACE SUMMARY ===")):
        report.test(f"table: {what}", [] if wanted in text else [f"nowhere: {wanted}"])


def calls(report, cuscope, folder, binaries):
    for name, command, options, checks in CASES:
        command = [word.format(bin=binaries) for word in command]
        run_case(report, Trace, cuscope, folder, name, command, options, checks)
        run_case(report, Recorded, cuscope, folder, name + "-recorded", command, options, checks)
    table(report, cuscope, folder, os.path.join(binaries, "launches-shared"))
    top(report, cuscope, folder, os.path.join(binaries, "launches-shared"))
    live(report, cuscope, folder, binaries)


def main():
    cuscope, binaries, folder = map(os.path.abspath, sys.argv[1:4])
    parts = sys.argv[4:] or PARTS
    unknown = set(parts) - {*PARTS, *INSIDE_PARTS}
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join((*PARTS, *INSIDE_PARTS))}")
    report = Report()
    begin = time.monotonic()
    has_torch = importlib.util.find_spec("torch")
    torch = Torch(cuscope, folder, report) if has_torch and {"gpu", "torch"} & set(parts) else None
    if "calls" in parts:
        calls(report, cuscope, folder, binaries)
    if "gpu" in parts:
        Gpu(cuscope, folder, report, binaries).run(torch)
    if "torch" in parts and torch:
        files(report, cuscope, folder)
        torch.run()
    inside = INSIDE_PARTS if "inside" in parts else [part for part in INSIDE_PARTS if part in parts]
    if inside:
        Inside(cuscope, folder, report, binaries).run(inside, has_torch)
    if "metrics" in parts and has_torch:
        Metrics(cuscope, folder, report).run()
    if "kernel" in parts:
        Kernel(cuscope, folder, report, binaries).run(has_torch)
    if "stalls" in parts:
        Stalls(cuscope, folder, report, binaries).run()
    if not has_torch:
        report.test("torch", ["not installed: nothing of it was tested"])
    print(f"{time.monotonic() - begin:.0f} s")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
