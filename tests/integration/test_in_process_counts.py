# SPDX-License-Identifier: MIT
"""Getters that are called all the time, with --all-calls --in-process: those that are counted and
those that are recorded are together the calls that the program made, and every output says which."""

import json
import subprocess

import checks
from harness import Counts, Failure, Places
from test_in_process import is_inside, started

GETTER = "cuDeviceGet"
OPTIONS = ("--all-calls",)


def counted(summary, name=GETTER):
    """Calls that were counted and not recorded, as what was missed says, and the sentence to it."""
    hooks = [hook for hook in summary["missed"]["hooks"] if hook["kind"] == "counted" and hook["name"] == name]
    if len(hooks) > 1:
        raise Failure(f"it is told twice: {hooks}")
    return (hooks[0]["calls"], hooks[0]["why"]) if hooks else (0, None)


def row_of(result, name=GETTER):
    return next(row for row in result.summary["functions"] if row["name"] == name)


def all_are_there(result):
    """How many were counted."""
    made = result.counts.of("calls")[GETTER]
    recorded = result.names()[GETTER]
    n, why = counted(result.summary)
    checks.equal("recorded and counted", made, recorded + n)
    checks.equal("nothing was lost", 0, sum(result.summary["missed"]["lost"].values()))
    if n:
        checks.contains("the sentence", f"^{n} calls inside of 1 process, and not recorded one by one$", why)
        checks.equal("counted, by the summary's row", n, row_of(result)["counted"])
        checks.equal("the row is of a part", True, row_of(result)["partial"])
        checks.equal("complete", False, result.summary["missed"]["complete"])
    return n


def test_in_process_counts_getters_that_are_called_all_the_time(case):
    result = started(case, "getters", "2", "400", options=OPTIONS)
    checks.valid(result)
    made = result.counts.of("calls")
    n = all_are_there(result)
    if n < made[GETTER] // 2:
        raise Failure(f"{n} of {made[GETTER]} calls were counted")
    for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuCtxSetCurrent"):
        checks.equal(f"calls of {name}", made[name], result.names()[name])
    failed = [call for call in result.calls(name=GETTER) if "error" in call]
    checks.equal("calls that fail are recorded", 800, len(failed))
    checks.contains("it is said", "1 getter that process .* is counted from .* --all-calls=each", result.err)
    checks.contains("and at the end", f"{n} more calls of functions", result.err)


def test_in_process_records_each_call_where_that_is_asked_for(case):
    result = started(case, "getters", "1", "25", options=("--all-calls=each", "--ring-size", "64M"))
    checks.valid(result)
    checks.equal("counted", 0, all_are_there(result))
    checks.equal("complete", True, result.summary["missed"]["complete"])


def test_in_process_records_each_call_of_what_only_names(case):
    result = started(case, "getters", "1", "25", options=("--all-calls", "--only", "cuDeviceGet", "--ring-size", "64M"))
    checks.equal("counted", 0, all_are_there(result))


def command(case, *words):
    return subprocess.run([Places.cuscope(), *words], capture_output=True, text=True, timeout=60, check=True).stdout


def test_in_process_counts_are_in_the_file_and_in_what_reads_it(case):
    case.env["SAMPLE_WAIT"] = case.path("go")
    path = case.path("file.cuscope")
    process = case.start(Places.cuscope(), "record", "--in-process", "--all-calls", "-o", path, "--",
                         Places.program("getters"), "2", "400")
    is_inside(process)
    open(case.path("go"), "w").close()
    checks.equal("status", 0, process.wait(60))
    info = json.loads(command(case, "info", "--json", path))
    n, _ = counted(info)
    if n < 800 * 1000:
        raise Failure(f"{n} calls were counted")
    checks.contains("info", f"counted: {GETTER} \\(libcuda.so.1\\): {n} calls inside", command(case, "info", path))
    for report in ("cuda_api_sum", "cuda_api_trace"):
        checks.contains(report, f"counted inside .*{GETTER} \\({n}\\)", command(case, "report", path, report))
    last = command(case, "export", "--format", "jsonl", path).splitlines()[-1]
    checks.equal("jsonl", n, counted({"missed": json.loads(last)})[0])


def test_in_process_counts_have_rows_in_top(case):
    case.env["SAMPLE_WAIT"] = case.path("go")
    process = case.start(Places.cuscope(), "top", "--once", "--format", "json", "--interval", "30s", "--in-process",
                         "--all-calls", "--", Places.program("getters"), "2", "100")
    is_inside(process)
    open(case.path("go"), "w").close()
    checks.equal("status", 0, process.wait(60))
    top = json.loads(process.out())["processes"][0]
    row = next(row for row in top["functions"] if row["name"] == GETTER)
    made = Counts(case.path("counts")).of("calls")[GETTER]
    checks.equal("calls, counted ones too", made, row["calls"])
    if not 0 < row["counted"] < made:
        raise Failure(f"{row['counted']} of {made} calls were counted")
