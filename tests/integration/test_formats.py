# SPDX-License-Identifier: MIT
"""Formats that a trace can be written to as it goes, against what the program counted."""

import csv
import os
import sqlite3

from checks import differences, equal
from harness import Counts, Failure, Places


def trace_to(case, name, program, *arguments):
    """Traces a program into a file of that name; returns its path and what the program counted."""
    process = case.cuscope("trace", "-o", case.path(name), "--", Places.program(program), *arguments)
    equal("status", 0, process.wait())
    return case.path(name), Counts(case.path("counts"))


def test_database_as_it_goes(case):
    path, counts = trace_to(case, "trace.sqlite", "memory")
    equal("files", [], [name for name in os.listdir(case.folder) if name.endswith(".tmp")])
    with sqlite3.connect(path) as db:
        seen = dict(db.execute("""SELECT function, COUNT(*) FROM cuscope_call
                                  WHERE NOT nested GROUP BY 1"""))
        for operation, section in (("alloc", "allocs"), ("free", "frees")):
            rows = db.execute("""SELECT memory || ' ' || bytes, COUNT(*) FROM cuscope_memory
                                 WHERE operation = ? AND memory <> 'vmm-va' GROUP BY 1""",
                              (operation,))
            differences(section, counts.of(section), dict(rows))
    differences("calls", seen, {name: n for name, n in counts.of("calls").items() if name in seen})


def test_csv_as_it_goes(case):
    path, counts = trace_to(case, "trace.csv", "threads", "3", "5")
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    copies = {}
    for row in rows:
        if row["direction"]:
            key = f"{row['direction']} {row['bytes']}"
            copies[key] = copies.get(key, 0) + 1
    differences("copies", {key.rsplit(" ", 1)[0]: n for key, n in counts.of("copies").items()},
                copies)


def test_picture_as_it_goes(case):
    path, _ = trace_to(case, "trace.svg", "memory")
    with open(path) as file:
        text = file.read()
    if "peak" not in text or not text.endswith("</svg>\n"):
        raise Failure(f"the picture is {text[:300]!r}")
