# SPDX-License-Identifier: MIT
"""A PyTorch program recorded into a file, and that file in every format of other tools."""

import collections
import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree

from torch_cases import LOOP, Torch
from tracing import Recorded, equal

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")
LAUNCHED = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON r.nameId = s.id " \
           "WHERE s.value LIKE 'cuLaunchKernel%'"


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = (done.stdout + done.stderr).strip()
    return [text] if done.returncode else []


def chrome(path, launches):
    yield from said(sys.executable, os.path.join(SCHEMA, "hta_rules.py"), path)
    with open(path) as text:
        names = collections.Counter(e["name"] for e in json.load(text)["traceEvents"] if e["ph"] == "X")
    yield from equal("launches", launches, names["cudaLaunchKernel"] + names["cudaLaunchKernelExC"] +
                     names["cuLaunchKernelEx"])


def perfetto(path, _launches):
    if not shutil.which("protoc"):
        print(f"     not decoded here, there is no protoc: {os.path.basename(path)} is with the cases")
        return
    yield from said(sys.executable, os.path.join(SCHEMA, "perfetto.py"), path, "--open-flows")


def sqlite(path, launches):
    base = sqlite3.connect(path)
    yield from equal("launches", launches, base.execute(LAUNCHED).fetchone()[0])
    yield from equal("integrity", "ok", base.execute("PRAGMA integrity_check").fetchone()[0])
    base.close()


def csv_rows(path, launches):
    with open(path, newline="") as text:
        rows = list(csv.DictReader(text))
    yield from equal("launches", launches, sum(row["class"] == "launch" and not row["result_name"].startswith("CUDA_ERROR")
                                               for row in rows))


def svg(path, _launches):
    root = xml.etree.ElementTree.parse(path).getroot()
    if not root.tag.endswith("svg"):
        yield f"its outermost element is {root.tag}"


FORMATS = (("torch.json", chrome), ("torch.pftrace", perfetto), ("torch.sqlite", sqlite),
           ("torch.csv", csv_rows), ("memory.svg", svg))


def files(report, cuscope, folder):
    counts_path = os.path.join(folder, "torch-file.counts")
    trace = Recorded(cuscope, folder, "torch-file", [], ["--", sys.executable, LOOP, "known"],
                     {"SAMPLE_COUNTS": counts_path}).finish()
    problems = list(trace.problems())
    report.test("torch file: runs", problems)
    if problems:
        return
    with open(counts_path) as text:
        counts = json.load(text)
    launches = sum(counts["kernels"].values())
    report.test("torch file: launches by kernel", Torch.by_part(counts["kernels"], trace))
    table = json.loads(trace.ask("report", trace.path + ".cuscope", "launches", "--format", "json"))
    report.test("torch file: the report's launches",
                equal("launches", launches, sum(k["Launches"] for k in table["kernels"])))
    for name, check in FORMATS:
        path = os.path.join(folder, name)
        trace.ask("export", trace.path + ".cuscope", "-o", path, "--force")
        report.test(f"torch file: {name}", trace.broken or check(path, launches))
