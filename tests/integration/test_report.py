# SPDX-License-Identifier: MIT
"""Reports of recorded files: what a trace of the same program says."""

import csv
import io
import json
import os
import re
import subprocess

import checks
from harness import Counts, Failure, Places

# Other programs than these count by the clock, or end when they like.
PROGRAMS = (("memory",), ("copies",), ("errors",), ("capture",), ("threads", "2", "5"), ("runtime13",))


def record(case, program, *arguments, name="run"):
    path = case.path(name + ".cuscope")
    process = case.cuscope("record", "-o", path, "--", Places.program(program), *arguments)
    if process.wait() not in (0, 1):
        raise Failure(f"record: {process.err()[-500:]}")
    return path


def report(case, *arguments, status=0):
    process = case.cuscope("report", *arguments)
    checks.equal(f"status of report {arguments[1:]}", status, process.wait())
    return process


def timeless(value):
    """Without what differs from one run of a program to the next: times, what tracing cost, and waits for the hooks."""
    if isinstance(value, list):
        return sorted((timeless(item) for item in value), key=json.dumps)
    if not isinstance(value, dict):
        return value
    return {key: timeless(item) for key, item in value.items()
            if not re.search(r"(_ns|_seconds|_percent)$", key) and key not in ("holds", "hooks")}


def test_a_recorded_file_gives_the_summary_of_a_trace(case):
    for program, *arguments in PROGRAMS:
        case.trace(program, *arguments, options=["--summary-only"], status=None,
                   name=program, lines=False)
        with open(case.path(program + ".json"), encoding="utf-8") as file:
            traced = json.load(file)
        path = record(case, program, *arguments, name=program)
        recorded = json.loads(report(case, path, "summary", "--format", "json").out())
        checks.equal(f"keys of {program}", list(traced), list(recorded))
        traced, recorded = timeless(traced), timeless(recorded)
        if program == "threads":  # how much is live at a time is a matter of which thread was faster
            for summary in (traced, recorded):
                for memory in (summary["memory"], *summary["memory"]["kinds"].values()):
                    del memory["peak_bytes"]
        for key in traced:
            checks.equal(f"{program}: {key}", traced[key], recorded[key])


def numbers(text):
    """The summary's lines without what is measured."""
    return [line for line in re.sub(r"FUNCTIONS BY CALL COUNT.*?\n\n|FUNCTIONS BY .*?%\)\n", "", text,
                                    flags=re.S).splitlines()
            if not re.match(r"Total trace duration|Held while hooking|Synchronisations", line)]


def test_the_summary_of_a_file_reads_as_that_of_a_trace(case):
    traced = case.cuscope("trace", "--summary-only", "--", Places.program("memory"))
    checks.equal("status", 0, traced.wait())
    recorded = report(case, record(case, "memory"), "summary")
    checks.equal("summary", numbers(traced.out()), numbers(recorded.out()))
    checks.contains("summary", "MEMORY BY KIND", recorded.out())


def test_cuda_api_sum_counts_what_the_program_counted(case):
    path = record(case, "threads", "2", "20")
    counts = Counts(case.path("counts")).of("calls")
    rows = csv.DictReader(io.StringIO(report(case, path, "cuda_api_sum", "--format", "csv").out()))
    seen = {row["Name"]: int(row["Num Calls"]) for row in rows}
    for name, n in counts.items():
        if name in seen:
            checks.equal(name, n, seen[name])
    checks.equal("launches", counts["cuLaunchKernel"], seen.get("cuLaunchKernel"))


def test_every_call_is_a_row_of_cuda_api_trace(case):
    path = record(case, "threads", "2", "20")
    summary = json.loads(report(case, path, "summary", "--format", "json").out())
    rows = json.loads(report(case, path, "cuda_api_trace", "--format", "json").out())
    checks.equal("rows", summary["calls"]["total"], len(rows))
    starts = [row["Start (ns)"] for row in rows]
    checks.equal("order", sorted(starts), starts)


def test_reports_go_to_files_of_a_folder(case):
    path, folder = record(case, "memory"), case.path("tables")
    report(case, path, "cuda_api_sum", "cuda_gpu_kern_sum:base", "--format", "csv", "--output-dir", folder)
    checks.equal("files", ["cuda_api_sum.csv", "cuda_gpu_kern_sum_base.csv"], sorted(os.listdir(folder)))
    again = report(case, path, "cuda_api_sum", "--format", "csv", "--output-dir", folder, status=1)
    checks.contains("an existing file", r"cuda_api_sum\.csv exists already: --force overwrites it", again.err())
    report(case, path, "cuda_api_sum", "--format", "csv", "--output", folder, "--force")


def test_a_page_without_room_for_its_reports_says_so(case):
    """They are made in temporary files, by processes of their own where there is more than one processor."""
    path, small, page = record(case, "memory"), case.path("small"), case.path("page.html")
    os.mkdir(small)
    for processors in ("taskset -c 0 ", ""):
        command = f"mount -t tmpfs -o size=20k none {small} && TMPDIR={small} {processors}{Places.cuscope()} export {path} -o {page} --force"
        done = case.start("unshare", "--mount", "sh", "-c", command, name="page")
        checks.equal("status", 1, done.wait())
        checks.contains("what it says", r"No space left on device", done.err())
        if "{" in done.err():
            raise Failure(f"it says {done.err()}")


def test_several_reports_come_in_the_order_named(case):
    path = record(case, "memory")
    for names in (["cuda_api_trace", "cuda_api_sum"], ["cuda_api_sum", "cuda_api_trace"]):
        both = json.loads(report(case, path, *names, "--format", "json").out())
        checks.equal("order", names, list(both))
        for name in names:
            alone = json.loads(report(case, path, name, "--format", "json").out())
            checks.equal(name, alone, both[name])


def test_a_part_of_the_time_and_of_the_processes(case):
    path = record(case, "fork")
    rows = json.loads(report(case, path, "cuda_api_trace", "--format", "json").out())
    pids = sorted({row["Pid"] for row in rows})
    for pid in pids:
        of_pid = json.loads(report(case, path, "cuda_api_trace", "--format", "json", "--pid", str(pid)).out())
        checks.equal(f"rows of {pid}", [row for row in rows if row["Pid"] == pid], of_pid)
    middle = rows[len(rows) // 2]
    end = middle["Start (ns)"] + middle["Duration (ns)"]
    before = json.loads(report(case, path, "cuda_api_trace", "--format", "json", "--to", f"{end}ns").out())
    after = json.loads(report(case, path, "cuda_api_trace", "--format", "json", "--from", f"{end + 1}ns").out())
    # in the order of their begins: a call of another process can be in both halves' time
    both = sorted(before + after, key=lambda row: row["Start (ns)"])
    checks.equal("rows before and after a moment", rows, both)


def test_report_says_what_is_wrong(case):
    path = record(case, "memory")
    empty, foreign = case.path("empty.cuscope"), case.path("foreign.cuscope")
    open(empty, "w").close()
    with open(foreign, "w") as file:
        file.write("Process,Time\n" * 100)
    for arguments, status, sentence in (
            ([], 2, "which trace file\\? 'cuscope record' makes one"),
            ([path, "cuda_api_sums"], 2, "there is no report 'cuda_api_sums'; did you mean 'cuda_api_sum'\\?"),
            ([path, "--format", "xml"], 2, "--format: 'xml' is no format \\(table, csv or json\\)"),
            ([path, "--top", "0"], 2, "--top: '0' is no number from 1 on"),
            ([path, "--from", "soon"], 2, "--from: 'soon' is no time since the trace's begin"),
            ([path, "--from", "2s", "--to", "1s"], 2, "--to is not later than --from"),
            ([path, "--pid", "x"], 2, "--pid: 'x' is no list of process ids"),
            ([path, "summary", "--format", "csv"], 2, "summary is a page, not a table"),
            ([path, "findings", "--stacks"], 2, "--stacks is of the report gaps"),
            ([path, "findings", "--gap", "1ms"], 2, "--gap is of the report gaps"),
            ([path, "--gap", "1ms"], 2, "--gap is of the report gaps"),
            ([case.path("nothing.cuscope")], 1, "nothing.cuscope.*No such file"),
            ([empty], 1, "empty.cuscope.*empty"),
            ([foreign], 1, "foreign.cuscope"),
            ([path, "--output-dir", "/proc/nowhere"], 1, "cannot make the folder /proc/nowhere")):
        process = case.cuscope("report", *arguments)
        checks.equal(f"status of {arguments}", status, process.wait())
        checks.contains(str(arguments), sentence, process.err())
        checks.equal(f"lines of {arguments}", 1, len(process.err().splitlines()))


def test_a_full_disk_is_told(case):
    path = record(case, "memory")
    with open("/dev/full", "w") as full:
        for names in (["cuda_api_trace"], ["cuda_api_trace", "cuda_api_sum"]):
            done = subprocess.run([Places.cuscope(), "report", path, *names], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=20)
            checks.equal("status", 1, done.returncode)
            checks.contains("said", "cannot write the report: No space left on device", done.stderr)


def test_a_reader_who_has_seen_enough_is_told_nothing(case):
    path = record(case, "memory")
    for command in (["report", path], ["timeline", path], ["diff", path, path]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([Places.cuscope(), *command], stdout=write, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=20)
        os.close(write)
        checks.equal(f"status and words of {command[0]}", (1, ""), (done.returncode, done.stderr))


def test_a_file_that_was_cut_short_is_told(case):
    path, short = record(case, "threads", "2", "50"), case.path("short.cuscope")
    with open(path, "rb") as file, open(short, "wb") as out:
        out.write(file.read()[:os.path.getsize(path) // 2])
    for command in (["report", short], ["timeline", short], ["diff", path, short]):
        process = case.cuscope(*command)
        checks.equal(f"status of {command[0]}", 1, process.wait())
        checks.contains(command[0], "short.cuscope has no end, the recording was cut short", process.err())


def test_diff_of_two_runs(case):
    before, after = record(case, "threads", "1", "20", name="a"), record(case, "threads", "1", "40", name="b")
    process = case.cuscope("diff", before, after, "--format", "json")
    checks.equal("status", 0, process.wait())
    tables = json.loads(process.out())
    checks.equal("tables", ["verdict", "why", "totals", "cuda_api_sum"], list(tables))
    launches = next(row for row in tables["totals"] if row["What"] == "Kernel launches")
    row = next(row for row in tables["cuda_api_sum"] if row["Name"] == "cuLaunchKernel")
    checks.equal("counts of launches", (launches["A"], launches["B"]), (row["Count A"], row["Count B"]))
    checks.equal("change", launches["B"] - launches["A"], launches["Change"])
    if launches["Change"] <= 0:
        raise Failure(f"twice as much was not more: {launches}")


def test_diff_says_what_is_wrong(case):
    path = record(case, "memory")
    for arguments, status, sentence in (
            ([path], 2, "which two trace files\\? 'cuscope record' makes them"),
            ([path, case.path("nothing")], 1, "nothing.*No such file"),
            ([path, path, "cuda_api_trace"], 2, "'cuda_api_trace' is nothing that can be compared")):
        process = case.cuscope("diff", *arguments)
        checks.equal(f"status of {arguments}", status, process.wait())
        checks.contains(str(arguments), sentence, process.err())
