#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the reports of the golden traces to what is in tests/golden/expected.

    tests/golden/check.py build/cuscope             says what differs
    tests/golden/check.py build/cuscope --update    takes what comes out as right

The csv and json of a report are read and compared with each other, too.
"""

import contextlib
import csv
import difflib
import glob
import io
import json
import os
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
# name of the outputs, A, B, arguments
DIFFS = (
    ("diff", "plain", "gpu", []),
    ("diff_lost", "gpu", "lost", []),
    ("diff_why", "host_line", "host_waits", ["why"]),
    ("diff_busy", "gpu", "ranges", ["totals"]),
    ("diff_place", "stacks", "plain", ["cuda_api_sum:place"]),
    ("diff_kern_sum", "gpu", "gpu", ["cuda_gpu_kern_gb_sum:base"]),
)
ENDINGS = {"table": "txt", "csv": "csv", "json": "json"}

PAGES = ("summary", "why")  # have no csv

# trainings that are slow for one reason each, or for none
HOSTS = ("host_line", "host_blocked", "host_busy", "host_sync", "host_small", "host_no_stacks", "host_no_gpu", "host_empty",
         "host_lost", "host_waits")

# beside every report by itself: name of the outputs, trace, arguments
MORE = (
    ("kern_sum_base", "gpu", ["cuda_gpu_kern_sum:base"]),
    ("kern_sum_mangled", "gpu", ["cuda_gpu_kern_sum:mangled"]),
    ("kern_exec_sum_base", "gpu", ["cuda_kern_exec_sum:base"]),
    ("nested", "gpu", ["cuda_api_sum", "--nested"]),
    ("top", "gpu", ["cuda_api_trace", "--top", "3"]),
    ("from_to", "gpu", ["cuda_api_trace", "--from", "4ms", "--to", "6ms"]),
    ("pid", "gpu", ["cuda_api_sum", "--pid", "4242"]),
    ("part", "gpu", ["overview", "--from", "5ms", "--to", "6ms"]),
    ("part_without_gpu_work", "host_line", ["overview", "--to", "11.5ms"]),
    ("chosen", "idle", ["overview", "--kernel", "gemm*"]),
    ("chosen_failed", "gpu", ["overview", "--failed"]),
    ("part_without_work", "gpu", ["cuda_gpu_trace", "--from", "14.9ms"]),
    ("api_sum_place", "stacks", ["cuda_api_sum:place"]),
    ("launches_place", "stacks", ["launches:place"]),
    ("api_sum_place", "lines", ["cuda_api_sum:place"]),
    ("launches_place", "lines", ["launches:place"]),
    ("gaps", "lines", ["gaps", "--stacks"]),
    ("findings", "lines", ["findings"]),
    ("overview", "lines", ["overview"]),
    ("memory", "lines", ["memory"]),
    ("gaps", "idle", ["gaps"]),
    ("gaps_of_some_processes", "idle", ["gaps", "--pid", "7100"]),
    ("gaps_of_some_kernels", "idle", ["gaps", "--kernel", "gemm*"]),
    ("gaps_of_some_recorded", "some", ["gaps"]),
    ("gaps_chosen", "idle", ["gaps:base", "--gap", "5us", "--top", "3"]),
    ("several", "gpu", ["cuda_gpu_mem_size_sum", "cuda_gpu_mem_time_sum"]),
    *((name, trace, [name, *more]) for trace in HOSTS for name, *more in (("gaps", "--stacks"), ("overview",), ("findings",))),
    ("findings", "steady", ["findings"]),
    ("overlap", "steady", ["overlap"]),
    ("overlap_steps", "ranges", ["overlap"]),
    ("overlap_windows", "idle", ["overlap"]),
    ("gpu_metrics", "metrics", ["gpu_metrics"]),
    *((name, "stalls", [name]) for name in ("stalls", "why")),
    *((name, "ranks", [name]) for name in ("ranks", "why", "overview")),
    ("findings", "metrics", ["findings"]),
    ("overview", "metrics", ["overview"]),
    ("overview", "kernel", ["overview"]),
    ("kernel", "kernel", ["kernel"]),
    ("cuda_api_sum", "kernel", ["cuda_api_sum"]),
    *((name, "driver", [name]) for name in ("kernel", "uvm", "xids", "channels", "findings", "errors", "overview")),
    ("expert", "steady", ["cuda_memcpy_async", "cuda_api_sync", "--top", "5"]),
)

# what is told of the trace with ranges, beside the formats
REPORTS_OF_RANGES = ("summary", "overview", "cuda_gpu_trace", "cuda_gpu_sum", "cuda_gpu_kern_sum", "cuda_kern_exec_sum", "streams",
                     "processes", "nvtx_sum", "nvtx_pushpop_sum", "nvtx_startend_sum", "nvtx_pushpop_trace",
                     "nvtx_kern_sum", "nvtx_gpu_proj_sum", "nvtx_gpu_proj_trace")

# name of the output, trace, character set, arguments
TIMELINES = (
    ("timeline_80", "gpu", "UTF-8", ["--width", "80"]),
    ("timeline_100", "gpu", "UTF-8", ["--width", "100"]),
    ("timeline_200", "gpu", "UTF-8", ["--width", "200"]),
    ("timeline_ascii", "gpu", "ASCII", []),
    ("timeline_color", "gpu", "UTF-8", ["--color", "always", "--top", "2"]),
    ("timeline_window", "gpu", "UTF-8", ["--from", "5ms", "--to", "6ms"]),
    ("timeline_thread", "gpu", "UTF-8", ["--tid", "5153", "--top", "0"]),
    ("timeline_process", "gpu", "ASCII", ["--pid", "5151", "--width", "40"]),
    ("timeline_nothing", "gpu", "ASCII", ["--from", "1h"]),
    ("timeline", "plain", "UTF-8", []),
    ("timeline", "lost", "ASCII", []),
    ("timeline", "ranges", "UTF-8", []),
)
# Every format: those that are text as they are, the others as their own tools print them. tests/export asks what they mean.
TEXTS = ("table", "jsonl", "log", "csv", "svg", "chrome")
SCHEMA = os.path.join(HERE, "..", "schema")
LOCALES = {"UTF-8": "C.UTF-8", "ASCII": "C"}


def reports(cuscope):
    text = subprocess.run([cuscope, "report", "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\w+) ", text.split("Reports:")[1].split("(*) needs")[0], re.M)


def outputs(cuscope):
    """(folder, name, form, command): all forms with GPU times, the text without and with losses."""
    for name, trace, arguments, form in outputs_of_reports(cuscope):
        yield trace, name, form, ["report", trace + ".cuscope", "--format", form, *arguments]
    for name, left, right, arguments in DIFFS:
        for form in ENDINGS:
            yield "gpu", name, form, ["diff", left + ".cuscope", right + ".cuscope", "--format", form, *arguments]


def outputs_of_reports(cuscope):
    for name in reports(cuscope):
        for form in ENDINGS if name not in PAGES else ("table", "json"):
            yield name, "gpu", [name], form
        yield name, "plain", [name], "table"
        yield name, "lost", [name], "table"
        if name in REPORTS_OF_RANGES:
            yield name, "ranges", [name], "table"
    for name, trace, arguments in MORE:
        for form in ENDINGS:
            yield name, trace, arguments, form


def outputs_of_formats():
    """(folder, name of the output, command)"""
    for trace in ("plain", "gpu", "lost", "ranges", "stacks", "lines", "metrics", "stalls", "kernel", "driver", "host_waits"):
        yield trace, "info.txt", ["info", trace + ".cuscope"]
        for form in TEXTS:
            yield trace, "export." + form, ["export", trace + ".cuscope", "--format", form]
    for mode in ("merge", "cpu", "gpu", "off-cpu"):
        yield "stacks", f"profile_{mode}.txt", ["profile", "stacks.cuscope", "--mode", mode]
    yield "lines", "profile_merge.txt", ["profile", "lines.cuscope"]
    yield "stacks", "profile_merge_and_blocked.txt", ["profile", "stacks.cuscope", "--off-cpu"]


def exported(cuscope, trace, form, path):
    subprocess.run([cuscope, "export", trace + ".cuscope", "--format", form, "-o", path, "--force"], check=True, cwd=HERE,
                   stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"})


def perfetto_text(cuscope, trace, path):
    exported(cuscope, trace, "perfetto", path)
    with open(path, "rb") as made:
        return subprocess.run(["protoc", "--proto_path=" + SCHEMA, "--decode=perfetto.protos.Trace", "perfetto_subset.proto"],
                              stdin=made, capture_output=True, check=True).stdout.decode()


def sqlite_text(cuscope, trace, path):
    exported(cuscope, trace, "sqlite", path)
    lines = []
    with contextlib.closing(sqlite3.connect(path)) as base:
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
            rows = base.execute(f"SELECT * FROM {table} ORDER BY rowid")
            lines.append(f"{table}: {', '.join(column[0] for column in rows.description)}")
            lines += ["    " + json.dumps(row) for row in rows]
        indexes = base.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
        lines += [sql for (sql,) in indexes]
    return "\n".join(lines) + "\n"


def check_binary_formats(cuscope, update):
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "made")
        for trace in ("gpu", "ranges", "lines", "kernel", "driver", "host_waits"):
            for name, text in (("export.perfetto", perfetto_text), ("export.sqlite", sqlite_text)):
                good = check(os.path.join(HERE, "expected", trace, name), text(cuscope, trace, path), update)
                passed, failed = passed + good, failed + (not good)
    return passed, failed


def run(cuscope, arguments, charset="UTF-8"):
    done = subprocess.run([cuscope, *arguments], capture_output=True, check=False, cwd=HERE,
                          env={**os.environ, "LC_ALL": LOCALES[charset], "TZ": "UTC"})
    if done.returncode:
        return f"status {done.returncode}: {done.stderr.decode()}"
    return done.stdout.decode()


def run_all(cuscope, commands):
    """What they print, in order; as many at once as there are CPUs."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda command: run(cuscope, command), commands)


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key is there twice: {keys}")
    return dict(pairs)


def refuse(constant):
    raise ValueError(f"{constant} is no JSON")


def read_json(text):
    return json.loads(text, object_pairs_hook=no_duplicates, parse_constant=refuse)


def plain(value):
    """A value of json as csv has it."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def same(field, value):
    """A field of csv and a value of json; csv has numbers with all their decimals."""
    if isinstance(value, float) and field:
        return float(field) == value
    return plain(value) == field


def tables_of_json(value):
    """The tables in a report, or in several: arrays of rows. What has a schema of its own is none."""
    if isinstance(value, list):
        return [value]
    if "schema" in value:
        return []
    return [table for member in value.values() for table in tables_of_json(member)]


def tables_of_csv(text):
    tables, rows = [], None
    for fields in csv.reader(io.StringIO(text), strict=True):
        if not fields:
            rows = None
        elif rows is None:
            rows = []
            tables.append((fields, rows))
        elif len(fields) != len(tables[-1][0]):
            raise ValueError(f"{len(fields)} fields below {len(tables[-1][0])} headings: {fields}")
        else:
            rows.append(fields)
    return tables


def compare_forms(csv_text, json_text):
    """What csv and json say differently."""
    left, right = tables_of_csv(csv_text), tables_of_json(read_json(json_text))
    left = [table for table in left if table[0] != ["Why"]]  # the lines of a text
    if len(left) != len(right):
        return f"{len(left)} tables in csv, {len(right)} in json"
    for (headings, rows), objects in zip(left, right):
        if len(rows) != len(objects):
            return f"{len(rows)} rows in csv, {len(objects)} in json"
        for fields, row in zip(rows, objects):
            if list(row) != headings:
                return f"keys {list(row)} are not the headings {headings}"
            for heading, field, value in zip(headings, fields, row.values()):
                if not same(field, value) and "\\x" not in field:
                    return f"{heading}: {field!r} in csv, {value!r} in json"
    return None


def check(path, text, update):
    """Whether the output is as expected; prints what differs."""
    if update:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return True
    if not os.path.exists(path):
        print(f"FAIL: {path} does not exist: make golden-update")
        return False
    with open(path, encoding="utf-8", newline="") as file:
        expected = file.read()
    if expected == text:
        return True
    print(f"FAIL: {path}")
    sys.stdout.writelines(line if line.endswith("\n") else line + "\n" for line in difflib.unified_diff(
        expected.splitlines(True), text.splitlines(True), "expected", "printed"))
    return False


def check_late(cuscope):
    """What ran on the GPU may come long after its calls: no report and no picture is another for it."""
    passed = failed = 0
    commands = [["report", "%s.cuscope", "--format", form, name] for name in reports(cuscope)
                for form in ENDINGS if name not in PAGES or form != "csv"]
    commands += [["timeline", "%s.cuscope", *arguments] for _, trace, _, arguments in TIMELINES if trace == "gpu"]
    printed = [run_all(cuscope, [[word.replace("%s", trace) for word in command] for command in commands]) for trace in ("gpu", "late")]
    for command, right, late in zip(commands, *printed):
        right, late = right.replace("gpu.cuscope", "FILE"), late.replace("late.cuscope", "FILE")
        good = right == late
        if not good:
            print(f"FAIL: late activities: {' '.join(command)}")
            sys.stdout.writelines(difflib.unified_diff(right.splitlines(True), late.splitlines(True), "in order", "late"))
        passed, failed = passed + good, failed + (not good)
    return passed, failed


def check_older(cuscope):
    """The traces in older/VERSION are of that version, and tell the same as today's of the same name."""
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "older", "*", "*.cuscope"))):
        version, name = path.split(os.sep)[-2:]
        with open(path, "rb") as file:
            found = "%d.%d" % struct.unpack_from("<HH", file.read(12), 8)
        wrong = [f"the file is of version {found}"] if found != version else []
        for form in ("csv", "log"):
            old, new = (run(cuscope, ["export", trace, "--format", form]) for trace in (path, name))
            wrong += list(difflib.unified_diff(new.splitlines(), old.splitlines(), "today's", "its", lineterm=""))
        if wrong:
            print(f"FAIL: {path}", *wrong, sep="\n")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    return passed, failed


BUSY = ("kernels", "copies", "communication", "gpu_wait")


def gaps_unlike_why(cuscope, trace):
    """What the report gaps has otherwise than why: of each GPU its time, and how long it was idle, by cause."""
    gaps = read_json(run(cuscope, ["report", trace, "gaps", "--format", "json"]))
    gpus = [gpu for gpu in read_json(run(cuscope, ["why", trace, "--format", "json"]))["gpus"] if "gpu" in gpu]
    if sorted((gpu["gpu"], gpu["pid"]) for gpu in gpus) != [(gpu["GPU"], gpu["PID"]) for gpu in gaps["gpus"]]:
        yield "other GPUs"
        return
    for gpu in gpus:
        def mine(rows):
            return [row for row in rows if (row["GPU"], row["PID"]) == (gpu["gpu"], gpu["pid"])]
        told, = mine(gaps["gpus"])
        rest = gpu["ns"] - sum(line["ns"] for line in gpu["account"] if line["cause"] != "rest") # of any causes
        idle = sum(line["ns"] for line in gpu["account"] if line["cause"] not in (*BUSY, "rest"))
        if told["Time (ns)"] != gpu["ns"] or not idle - 9 <= told["Idle (ns)"] <= idle + rest + 9:
            yield f"idle for {idle} to {idle + rest} of {gpu['ns']} ns: {told}"
        for cause in {line["cause"] for line in gpu["account"]} - {*BUSY, "rest"}:
            why = sum(line["ns"] for line in gpu["account"] if line["cause"] == cause)
            sums = [sum(row["Time (ns)"] for row in mine(gaps[part]) if row["Cause"] == cause) for part in ("causes", "places")]
            if not all(why - 9 <= one <= why + rest + 9 for one in sums) or abs(sums[0] - sums[1]) > 9:
                yield f"{cause}: {why} to {why + rest} ns, gaps has {sums}"
        if abs(sum(row["Time (ns)"] for row in mine(gaps["causes"])) - told["Idle (ns)"]) > 9:
            yield f"causes do not add up: {told}"


def check_gaps(cuscope):
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "*.cuscope"))):
        wrong = list(gaps_unlike_why(cuscope, os.path.basename(path)))
        if wrong:
            print(f"FAIL: gaps and why of {path}", *wrong, sep="\n")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    return passed, failed


def check_timelines(cuscope, update):
    """Counts of good and bad ones. No line may be wider than what was asked for."""
    passed = failed = 0
    for name, trace, charset, arguments in TIMELINES:
        text = run(cuscope, ["timeline", trace + ".cuscope", *arguments], charset)
        good = check(os.path.join(HERE, "expected", trace, name + ".txt"), text, update)
        width = int(arguments[arguments.index("--width") + 1]) if "--width" in arguments else 100
        widest = max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n")))
        if widest > width and width >= 80:
            print(f"FAIL: {name}: a line of {widest} columns")
            good = False
        if charset == "ASCII" and not text.isascii():
            print(f"FAIL: {name}: more than ASCII")
            good = False
        passed, failed = passed + good, failed + (not good)
    return passed, failed


def main():
    cuscope, update = os.path.abspath(sys.argv[1]), "--update" in sys.argv
    passed, failed = check_timelines(cuscope, update)
    for good, bad in (check_late(cuscope), check_older(cuscope), check_gaps(cuscope)):
        passed, failed = passed + good, failed + bad
    good, bad = check_binary_formats(cuscope, update)
    passed, failed = passed + good, failed + bad
    made = list(outputs_of_formats())
    for (folder, name, _), text in zip(made, run_all(cuscope, [command for _, _, command in made])):
        good = check(os.path.join(HERE, "expected", folder, name), text, update)
        passed, failed = passed + good, failed + (not good)
    forms = {}
    made = list(outputs(cuscope))
    for (folder, name, form, _), text in zip(made, run_all(cuscope, [command for _, _, _, command in made])):
        path = os.path.join(HERE, "expected", folder, f"{name}.{ENDINGS[form]}")
        good = check(path, text, update)
        passed, failed = passed + good, failed + (not good)
        if folder in ("gpu", "steady", *HOSTS):
            forms.setdefault((folder, name), {})[form] = text
    for (_, name), texts in forms.items():
        if name in PAGES:
            read_json(texts["json"])
            continue
        difference = compare_forms(texts["csv"], texts["json"])
        if difference:
            print(f"FAIL: {name}: {difference}")
        passed, failed = passed + (not difference), failed + bool(difference)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
