# SPDX-License-Identifier: MIT
"""A trace that was cut short or is damaged: what is left is written, and every format says so."""

import contextlib
import csv
import gzip
import json
import os
import re
import sqlite3
import struct
import subprocess
import sys

from case import Failure, equal

HEADER, HEAD = 16, 64
DEFINITIONS, EVENTS, END, NAMES = 2, 3, 4, 6
CUT = "the trace file was cut short: nobody knows what came after its last whole part, and how much was lost"
FORMATS = ("perfetto", "chrome", "sqlite", "csv", "jsonl", "log", "svg", "table", "html")


def chunks(data):
    """Type, begin and end of each."""
    at = HEADER
    while data[at:at + 4] == b"CHNK":
        kind, stored = struct.unpack_from("<II", data, at + 4)
        yield kind, at, at + HEAD + stored
        at += HEAD + stored


def read(path):
    with open(path, "rb") as file:
        return file.read()


def written(case, name, data):
    with open(case.path(name), "wb") as file:
        file.write(data)
    return case.path(name)


def cut(case, trace="gpu"):
    """Without END and index, but with all events."""
    data = read(case.trace(trace))
    end = next(begin for kind, begin, _ in chunks(data) if kind == END)
    return written(case, "cut.cuscope", data[:end])


def damaged(case, wanted=EVENTS, trace="gpu"):
    """One byte of one chunk of this kind is wrong."""
    data = bytearray(read(case.trace(trace)))
    begin, end = next((begin, end) for kind, begin, end in chunks(data) if kind == wanted)
    data[(begin + HEAD + end) // 2] ^= 0x10
    return written(case, "damaged.cuscope", data)


def exported(case, trace, name):
    """The path of the export, which ends with status 1 and a sentence."""
    out = case.path(f"{os.path.basename(trace)}.{name}")
    result = case.cuscope("export", trace, "--format", name, "-o", out)
    equal(f"status of {name}", 1, result.returncode)
    expected = "is damaged at byte" if "damaged" in trace else "has no end, the recording was cut short"
    if expected not in result.stderr:
        raise Failure(f"{name}: it said {result.stderr!r}")
    return out


def text(case, trace, name):
    return read(exported(case, trace, name)).decode(errors="replace")


def test_incomplete_perfetto(case):
    schema = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")
    for trace, mark in ((cut(case), "the trace file was cut short"), (damaged(case), "the trace file is damaged")):
        with open(exported(case, trace, "perfetto"), "rb") as file:
            told = subprocess.run(["protoc", f"--proto_path={schema}", "--decode=perfetto.protos.Trace",
                                   "perfetto_subset.proto"], stdin=file, capture_output=True, text=True,
                                  check=True).stdout
        equal(mark, True, mark in told)


def test_incomplete_chrome(case):
    equal("of a cut one", CUT, json.loads(text(case, cut(case), "chrome"))["cuscope"]["incomplete"])
    mark = json.loads(text(case, damaged(case), "chrome"))["cuscope"]["incomplete"]
    equal("of a damaged one", True, mark.startswith("1 part of the trace file is damaged and left out"))


def test_incomplete_sqlite(case):
    for trace, key in ((cut(case), "CUT_SHORT"), (damaged(case), "DAMAGED")):
        with contextlib.closing(sqlite3.connect(exported(case, trace, "sqlite"))) as db:
            told = dict(db.execute("SELECT name, value FROM META_DATA_CAPTURE"))
            equal("marks", [key], [name for name in ("CUT_SHORT", "DAMAGED") if told[name] == "1"])
            said = " ".join(row[0] for row in db.execute("SELECT text FROM DIAGNOSTIC_EVENT"))
            equal("in words", True, ("cut short" if key == "CUT_SHORT" else "is damaged") in said)


def test_incomplete_csv(case):
    for trace, mark in ((cut(case), CUT), (damaged(case), "is damaged and left out")):
        with open(exported(case, trace, "csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        last = rows[-1]
        equal("the last row", ["cuscope", "missed", "incomplete", True],
              [last["layer"], last["class"], last["function"], mark in last["name"]])
        equal("columns", {36}, {len([value for value in row.values() if value is not None]) for row in rows})
        equal("other rows", [], [row for row in rows[:-1] if row["layer"] == "cuscope"])


def test_incomplete_jsonl(case):
    last = json.loads(text(case, cut(case), "jsonl").splitlines()[-1])
    equal("of a cut one", (False, True), (last["complete"], last["cut_short"]))
    last = json.loads(text(case, damaged(case), "jsonl").splitlines()[-1])
    equal("of a damaged one", (False, 1), (last["complete"], last["damaged_chunks"]))
    equal("events", True, last["damaged_events"] > 100)
    schema = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "jsonl.schema.json")
    check = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema", "check.py")
    for trace in (cut(case), damaged(case)):
        out = case.path(os.path.basename(trace) + ".jsonl")
        equal("valid", 0, subprocess.run([sys.executable, check, schema, out], stdout=subprocess.DEVNULL).returncode)


def test_incomplete_log(case):
    for trace, mark in ((cut(case), CUT), (damaged(case), "is damaged and left out")):
        last = text(case, trace, "log").splitlines()[-1]
        equal("the last line", True, bool(re.search(r" - \[incomplete\] pid: 0, tid: 0, .*why: .*" + mark, last)))


def test_incomplete_svg(case):
    equal("of a cut one", True, "The trace was cut short." in text(case, cut(case), "svg"))
    equal("of a damaged one", True, "The file is damaged" in text(case, damaged(case), "svg"))


def test_incomplete_table(case):
    equal("of a cut one", f"not all: {CUT}", text(case, cut(case), "table").splitlines()[-1])
    equal("of a damaged one", True, text(case, damaged(case), "table").splitlines()[-1].startswith("not all: 1 part"))


def test_incomplete_profiles(case):
    """All forms but folded stacks, which have no place for it."""
    for trace, mark in ((cut(case, "stacks"), "Not all: the trace file was cut short"),
                        (damaged(case, trace="stacks"), "is damaged and left out")):
        for ending in ("svg", "html", "pb.gz", "speedscope.json"):
            out = case.path("profile." + ending)
            equal(f"status of {ending}", 1, case.cuscope("profile", trace, "-o", out, "--force").returncode)
            data = read(out)
            equal(f"{ending} says it", True, mark.encode() in (gzip.decompress(data) if ending == "pb.gz" else data))
        equal("the text says it", True, mark in case.cuscope("profile", trace).stdout.replace("\n", " "))


def test_incomplete_standard_output_has_the_same_status(case):
    for trace in (cut(case), damaged(case)):
        equal("status", 1, case.cuscope("export", trace, "--format", "csv").returncode)


def test_incomplete_reports_timelines_and_differences(case):
    for trace, mark in ((cut(case), "cut short"), (damaged(case), "damaged")):
        for form in ("table", "csv", "json"):
            result = case.cuscope("report", trace, "cuda_api_sum", "--format", form)
            equal(f"{form}: status", 1, result.returncode)
            equal(f"{form}: said", True, mark in result.stderr)
            equal(f"{form}: in the text", form == "table", mark in result.stdout)
        summary = json.loads(case.cuscope("report", trace, "summary", "--format", "json").stdout)
        equal("the summary", False, summary["missed"]["complete"])
        equal("overview", True, mark in case.cuscope("report", trace, "overview").stdout)
        result = case.cuscope("timeline", trace)
        equal("timeline", (1, True, True), (result.returncode, mark in result.stdout, mark in result.stderr))
        result = case.cuscope("diff", trace, case.trace("gpu"))
        equal("diff", (1, True, True), (result.returncode, mark in result.stdout, mark in result.stderr))
        equal("diff prints", True, "B: " in result.stdout)


def test_incomplete_info(case):
    result = case.cuscope("info", cut(case))
    equal("of a cut one", (0, True), (result.returncode, CUT in result.stdout))
    result = case.cuscope("info", damaged(case))
    equal("of a damaged one", (1, True), (result.returncode, "in damaged parts" in result.stdout))
    told = json.loads(case.cuscope("info", "--json", damaged(case)).stdout)
    equal("counts", (0, True), (told["calls"], told["missed"]["damaged_events"] > 100))


def test_incomplete_what_refers_to_lost_definitions_is_counted(case):
    """In a chunk of definitions are functions, kernels and processes; in one of names, those of ranges."""
    for wanted, trace in ((DEFINITIONS, "ranges"), (NAMES, "ranges"), (DEFINITIONS, "gpu")):
        whole = json.loads(case.cuscope("info", "--json", case.trace(trace)).stdout)
        result = case.cuscope("info", "--json", damaged(case, wanted, trace))
        equal("status", 1, result.returncode)
        told = json.loads(result.stdout)
        left = told["calls"] + sum(told["activities"].values()) + sum(told["ranges"].values())
        equal("events", True, 0 < told["missed"]["damaged_events"] <= whole["events"])
        if wanted == NAMES:
            equal("calls", whole["calls"], told["calls"])
            equal("all but ranges", left + told["missed"]["damaged_events"],
                  sum(whole["activities"].values()) + sum(whole["ranges"].values()) + whole["calls"])
        for name in FORMATS:
            exported(case, case.path("damaged.cuscope"), name)
            os.unlink(case.path(f"damaged.cuscope.{name}"))
