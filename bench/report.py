# SPDX-License-Identifier: MIT
"""What the benchmarks share: the machine in words, medians, tables."""

import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import time


# two-sided 95 % of Student's t, by degrees of freedom
STUDENT = {1: 12.7, 2: 4.3, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04,
           60: 2.0}


def first_line(*command):
    """The first line a command prints, or None where it is not there."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return next((line.strip() for line in done.stdout.splitlines() if line.strip()), None)


def cpu_model():
    with open("/proc/cpuinfo") as info:
        found = re.search(r"model name\s*:\s*(.*)", info.read())
    return found.group(1) if found else platform.machine()


def machine(versions):
    """The rows of the machine's table; `versions` maps a program to its own words, or None."""
    rows = [
        ("date", time.strftime("%Y-%m-%d")),
        ("processor", f"{cpu_model()}, {os.cpu_count()} cores"),
        ("kernel", platform.release()),
    ]
    gpu = first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    if gpu:
        rows.append(("GPU, driver", gpu))
    return rows + [(name, words or "not installed") for name, words in versions.items()]


def median(values):
    """The median, None for an empty list."""
    return statistics.median(values) if values else None


def interval(values):
    """The mean, and how far it may be off in 95 of 100 cases; None for fewer than two values."""
    if len(values) < 2:
        return None
    degrees = len(values) - 1
    t = STUDENT[max(d for d in STUDENT if d <= degrees)]
    return statistics.mean(values), t * statistics.stdev(values) / math.sqrt(len(values))


def markdown(header, rows):
    """A table. Cells are strings or numbers; None shows as a dash."""
    def cell(value):
        if value is None:
            return "–"
        return f"{value:.2f}" if isinstance(value, float) else str(value)

    lines = [header, ["---"] * len(header)] + [[cell(v) for v in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class Targets:
    """The targets of a benchmark and whether they were met."""

    def __init__(self):
        self.rows = []

    def at_most(self, what, value, limit, unit=""):
        """`value` is None where it could not be measured."""
        verdict = "not measured" if value is None else "met" if value <= limit else "MISSED"
        words = value if value is None else f"{round(value, 3):g}{unit}"
        self.rows.append((what, f"at most {limit:g}{unit}", words, verdict))

    def missed(self):
        return sum(row[3] == "MISSED" for row in self.rows)

    def markdown(self):
        return markdown(["target", "limit", "measured", ""], self.rows)
