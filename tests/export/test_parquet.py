# SPDX-License-Identifier: MIT
"""Folders of Parquet files, read by DuckDB, hyparquet and parquet-wasm, against the database of the same trace."""

import csv
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time

from case import GOLDEN, Failure, Skip, equal

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERED = {"CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API"}
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"


def read(case, engine, *arguments):
    modules = os.path.join(case.build, "readers", "node_modules")
    if not shutil.which("node"):
        raise Skip("no node")
    if not os.path.isdir(modules):
        raise Skip("no readers of Parquet (make parquet-readers)")
    result = subprocess.run(["node", os.path.join(HERE, "parquet_read.mjs"), modules, engine, *arguments],
                            capture_output=True, text=True, timeout=600, cwd=case.folder)
    if result.returncode:
        raise Failure(f"{engine} fails: {result.stderr[-600:]}")
    return json.loads(result.stdout)


def answers(case, *queries):
    """Names of columns, and rows; in the folder of the case."""
    return read(case, "duckdb", *queries)


def ask(case, *queries):
    return [[tuple(row) for row in rows] for _, rows in answers(case, *queries)]


def export(case, trace, name="tables", *options):
    return case.export(trace, name, "--format", "parquet", *options)


def only_folder(tree):
    folders = glob.glob(os.path.join(tree, "*", "*"))
    equal("folders", 1, len(folders))
    return folders[0]


def tables_of(folder):
    return {os.path.basename(path).removesuffix(".parquet"): path
            for path in sorted(glob.glob(os.path.join(folder, "*.parquet")))}


def order(rows):
    return sorted((tuple(row) for row in rows), key=repr)


def database_tables(path):
    """Columns and rows by table. What is made of other tables in SQL alone is not there."""
    with sqlite3.connect(path) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            if name != "SAMPLING_CALLCHAINS":
                rows = db.execute(f"SELECT {'rowid, ' * (name in NUMBERED)}* FROM {name}")
                yield name, [column[0] for column in rows.description], order(rows)


TRACES = [*(os.path.basename(path).removesuffix(".cuscope")
            for path in sorted(glob.glob(os.path.join(GOLDEN, "*.cuscope")))), "edges", "events", "hard stacks"]


def compare(case, read_tables):
    """read_tables(paths): columns and rows of each, or no columns where names are not of interest."""
    folders = {trace: tables_of(only_folder(export(case, trace, f"{trace} tables"))) for trace in TRACES}
    tables = iter(read_tables([path for paths in folders.values() for path in paths.values()]))
    for trace, paths in folders.items():
        read_back = {name: next(tables) for name in paths}
        expected = {name: (columns, rows)
                    for name, columns, rows in database_tables(case.export(trace, f"{trace}.sqlite"))}
        equal(f"tables of {trace}", sorted(expected), sorted(read_back))
        for name, (columns, rows) in expected.items():
            equal(f"columns of {name}", columns, read_back[name][0] or columns)
            if rows != order(read_back[name][1]):
                raise Failure(f"{trace} has other rows of {name}")


def test_parquet_hyparquet_reads_all_tables_of_all_traces(case):
    compare(case, lambda paths: read(case, "hyparquet", *paths))


def test_parquet_wasm_reads_all_tables_of_all_traces(case):
    compare(case, lambda paths: read(case, "parquet-wasm", *paths))


def test_parquet_duckdb_reads_all_tables_of_all_traces(case):
    compare(case, lambda paths: answers(case, *(
        f"SELECT * FROM read_parquet('{path}', hive_partitioning = false)" for path in paths)))


def test_parquet_has_the_calls_of_csv(case):
    with open(case.export("plain", "plain.csv")) as file:
        calls = [row for row in csv.DictReader(file) if row["layer"] in ("runtime", "driver")]
    folder = only_folder(export(case, "plain"))
    [rows] = ask(case, f"""
        SELECT r.start, r."end" - r.start, (r.globalTid >> 24) & 16777215, r.globalTid & 16777215, n.value, r.returnValue
        FROM '{folder}/CUPTI_ACTIVITY_KIND_RUNTIME.parquet' r JOIN '{folder}/StringIds.parquet' n ON n.id = r.nameId""")
    equal("calls are alike", True, order((int(row["time_ns"]), int(row["duration_ns"] or 0), int(row["pid"]), int(row["tid"]),
                          row["function"], int(row["result"] or 0)) for row in calls) == order(rows))


def test_parquet_takes_two_files_as_one_table(case):
    tree = export(case, "gpu", "fleet", "--rank", "0")
    export(case, "ranges", "fleet", "--rank", "11")
    equal("folders", ["rank=0", "rank=11"], sorted(os.listdir(os.path.join(tree, "host=gpu-box"))))
    [rows] = ask(case, f"""SELECT host, rank, count(*) FROM read_parquet('{tree}/*/*/CUPTI_ACTIVITY_KIND_KERNEL.parquet',
                           hive_partitioning = true) GROUP BY ALL ORDER BY rank""")
    with sqlite3.connect(case.export("gpu", "gpu.db")) as one, sqlite3.connect(case.export("ranges", "ranges.db")) as other:
        count = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"
        equal("kernels", [("gpu-box", 0, one.execute(count).fetchone()[0]),
                          ("gpu-box", 11, other.execute(count).fetchone()[0])], rows)


def said(case, status, sentence, *arguments):
    result = case.cuscope("export", "--format", "parquet", *arguments)
    equal(f"status of {arguments}", status, result.returncode)
    if sentence not in result.stderr:
        raise Failure(f"it said {result.stderr!r}, should have {sentence!r}")


def files_below(folder):
    return sorted(os.path.relpath(path, folder) for path in glob.glob(os.path.join(folder, "**"), recursive=True, include_hidden=True))


def test_parquet_is_a_folder_of_its_own(case):
    tree = case.path("tree")
    said(case, 2, "to a folder only: -o DIR", case.trace("gpu"))
    said(case, 1, "cannot write", case.trace("gpu"), "-o", case.path("nowhere/tree"))
    export(case, "gpu", "tree")
    before = files_below(tree)
    said(case, 1, "exists already: --force replaces it", case.trace("ranges"), "-o", tree)
    equal("files", before, files_below(tree))
    said(case, 0, "", case.trace("ranges"), "-o", tree, "--force")
    [rows] = ask(case, f"SELECT count(*) FROM '{tree}/*/*/NVTX_EVENTS.parquet'")
    equal("it has ranges now", True, rows[0][0] > 10)
    equal("only it is there", ["host=gpu-box"], os.listdir(tree))
    equal("only it is there", ["rank=" + UNKNOWN], os.listdir(os.path.join(tree, "host=gpu-box")))


def test_parquet_of_several_files_tells_what_is_wrong_with_one(case):
    with open(case.path("none.cuscope"), "w") as file:
        file.write("no trace")
    tree = case.path("tree")
    said(case, 1, "none.cuscope", case.path("none.cuscope"), case.trace("gpu"), "-o", tree)
    equal("the other one", True, os.path.exists(os.path.join(only_folder(tree), "StringIds.parquet")))
    said(case, 1, "two of these files would be", case.trace("gpu"), case.trace("plain"), "-o", case.path("two"), "--force")
    equal("the first one", True, os.path.exists(os.path.join(only_folder(case.path("two")), "StringIds.parquet")))
    said(case, 2, "--rank is that of one file", case.trace("gpu"), case.trace("plain"), "-o", tree, "--rank", "1")


def test_parquet_has_modes_as_files_have(case):
    folder = only_folder(export(case, "gpu", "tree"))
    equal("mode", 0o600, os.stat(os.path.join(folder, "StringIds.parquet")).st_mode & 0o777)
    equal("mode", 0o700, os.stat(folder).st_mode & 0o777)
    folder = only_folder(export(case, "gpu", "other", "--output-mode", "0640"))
    equal("mode", 0o640, os.stat(os.path.join(folder, "StringIds.parquet")).st_mode & 0o777)
    equal("mode", 0o750, os.stat(folder).st_mode & 0o777)


def test_parquet_of_a_part_is_the_part(case):
    for options in (["--pid", "5151"], ["--from", "10ms", "--to", "13ms"], ["--failed"], ["--max-events", "7"],
                    ["--function", "cudaM*"], ["--min-duration", "20us"]):
        folder = only_folder(export(case, "plain", "tree" + options[0], *options))
        path = os.path.join(folder, "CUPTI_ACTIVITY_KIND_RUNTIME.parquet")
        [[_, rows]] = read(case, "hyparquet", path)
        with sqlite3.connect(case.export("plain", "part.db", "--force", *options)) as db:
            expected = db.execute("SELECT rowid, * FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchall()
        equal(f"calls with {options}", order(expected), order(rows))
        equal("any", True, len(rows) > 0)


def hard(case, calls):
    path = case.path(f"hard{calls}.cuscope")
    subprocess.run([os.path.join(case.build, "tests", "export", "hard"), path, str(calls)], check=True)
    return path


def export_of(case, path, name, *options):
    result = case.cuscope("export", path, "-o", case.path(name), *options)
    equal("export", (0, ""), (result.returncode, result.stderr))
    return case.path(name)


def test_parquet_has_hard_values(case):
    """10,000 bytes, no UTF-8, NULLs, numbers at both ends, times beyond 2^53; and of no event at all."""
    for calls in (0, 1, 4097):
        paths = tables_of(only_folder(export_of(case, hard(case, calls), f"t{calls}", "--format", "parquet")))
        for engine in ("hyparquet", "parquet-wasm"):
            read_back = dict(zip(paths, read(case, engine, *paths.values())))
            for name, columns, rows in database_tables(export_of(case, case.path(f"hard{calls}.cuscope"), f"{engine}{calls}.db")):
                equal(f"columns of {name}", columns, read_back[name][0])
                equal(f"{engine} reads {name} of {calls} calls alike", True, rows == order(read_back[name][1]))
    equal("the longest name", 8192, max(len(row[1]) for row in read_back["StringIds"][1]))
    equal("the process", ["\\xff\\x01train\\xe2\\x82"], [row[2] for row in read_back["PROCESSES"][1]])
    equal("the latest", 2**53 + 1, max(row[2] for row in read_back["CUPTI_ACTIVITY_KIND_RUNTIME"][1]))


def test_parquet_has_several_row_groups(case):
    """More rows than one has, in the tables with a row for each call."""
    calls = 2_200_000
    trace = hard(case, calls)
    folder = only_folder(export_of(case, trace, "many", "--format", "parquet"))
    wanted = """count(*), sum(start)::TEXT, sum("end" - start)::TEXT, sum(nameId)::TEXT, sum(correlationId)::TEXT, count(DISTINCT returnValue),
                min(returnValue), max("end")"""
    arguments = "count(*), count(bytes), count(gridX), sum(gridX)::TEXT, count(DISTINCT callId), min(bytes), max(bytes), count(DISTINCT memory)"
    [groups], [rows], [argument_rows] = ask(
        case, f"""SELECT count(DISTINCT row_group_id), max(row_group_num_rows)
                  FROM parquet_metadata('{folder}/CUPTI_ACTIVITY_KIND_RUNTIME.parquet')""",
        f"SELECT {wanted}, max(rowid) FROM '{folder}/CUPTI_ACTIVITY_KIND_RUNTIME.parquet'",
        f"SELECT {arguments} FROM '{folder}/cuscope_argument.parquet'")
    equal("row groups, rows of the largest", (3, 1 << 20), groups)
    with sqlite3.connect(export_of(case, trace, "many.db")) as db:
        def of_database(columns, table):
            return db.execute(f"SELECT {columns} FROM {table}".replace("::TEXT", " || ''")).fetchone()
        equal("calls", (*of_database(wanted, "CUPTI_ACTIVITY_KIND_RUNTIME"), calls), rows)
        equal("arguments", of_database(arguments, "cuscope_argument"), argument_rows)


def test_parquet_is_bounded_as_other_exports_are(case):
    """Several tables at once: their sum counts."""
    trace = hard(case, 400_000)
    for size in (100_000, 400_000):
        result = case.cuscope("export", trace, "-o", case.path(f"small{size}"), "--format", "parquet", "--max-size", str(size))
        equal("status", 1, result.returncode)
        folder = only_folder(case.path(f"small{size}"))
        bytes_of_all = sum(os.path.getsize(path) for path in tables_of(folder).values())
        equal(f"{bytes_of_all} bytes", True, bytes_of_all < 2 * size + 200_000)
        [rows] = ask(case, f"SELECT count(*) FROM '{folder}/DIAGNOSTIC_EVENT.parquet' WHERE severity = 3")
        equal("it says so", [(1,)], rows)


def test_parquet_that_is_interrupted_leaves_nothing(case):
    trace, tree = hard(case, 3_000_000), case.path("tree")
    process = subprocess.Popen([os.path.join(case.build, "cuscope"), "export", trace, "-o", tree, "--format", "parquet"],
                               stderr=subprocess.PIPE, text=True)
    for _ in range(2000):
        if os.path.exists(tree):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    equal("it says so", True, "interrupted" in process.communicate()[1])
    equal("status", 1, process.returncode)
    equal("the folder", False, os.path.exists(tree))
