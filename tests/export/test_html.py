# SPDX-License-Identifier: MIT
"""The html page: what is in it is what other exports and reports have."""

import collections
import csv
import glob
import json
import os
import re

from case import GOLDEN, Failure, equal
from page_file import Page

US = 1e-3


def page(case, trace, *options):
    found = Page(case.export(trace, trace.replace(" ", "_") + ".html", "--force", *options))
    found.check()
    return found


def test_html_of_every_golden_trace_is_whole(case):
    names = sorted(os.path.basename(path)[:-len(".cuscope")] for path in glob.glob(os.path.join(GOLDEN, "*.cuscope")))
    for name in names:
        path = case.path(name + ".html")
        result = case.cuscope("export", case.trace(name), "-o", path)
        if result.returncode and "cut short" not in result.stderr:
            raise Failure(f"{name}: {result.stderr}")
        Page(path).check()


def test_html_has_the_calls_of_csv(case):
    found = page(case, "plain")
    with open(case.export("plain", "plain.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    seen = collections.Counter((track["tid"], row["name"], row["begin"]) for track, row in found.rows("call"))
    names = [name for name in rows[0] if name.lower().startswith(("function", "name"))]
    functions = collections.Counter(row[names[0]] for row in rows)
    equal("calls", functions, collections.Counter(name for (_, name, _), n in seen.items() for _ in range(n)))


def test_html_has_work_with_its_calls(case):
    found = page(case, "gpu")
    calls = {(track["process"], row["correlation"]): row for track, row in found.rows("call")}
    work = [(track, row) for track, row in found.rows("work") if row["correlation"]]
    if not work:
        raise Failure("no work")
    for track, row in work:
        if (track["process"], row["correlation"]) not in calls:
            raise Failure(f"nobody asked for {row}")
    if not any(row["asked"] for _, row in work):
        raise Failure("no work names the thread that asked")


def test_html_has_arguments(case):
    found = page(case, "plain")
    details = [row["detail"] for _, row in found.rows("call") if row["detail"]]
    if not any(re.search(r"^size = .*B$", detail, re.M) for detail in details):
        raise Failure(f"no size in {details[:5]}")
    if not any("result = " in detail for detail in details):
        raise Failure("no result of a call that failed")


def test_html_has_stacks_and_states(case):
    found = page(case, "host_line")
    stacks = found.stacks()
    states = [row for _, row in found.rows("state")]
    functions = {words[0] for row in states for words in stacks.get(row["stack"] - 1, [])}
    if not any("collate" in function for function in functions):
        raise Failure(f"no collate in {sorted(functions)}")
    equal("on a CPU", True, any(row["name"] == "on a CPU" for row in states))


def test_html_has_the_account_of_why(case):
    found = page(case, "host_line")
    why = json.loads(case.cuscope("report", case.trace("host_line"), "why", "--format", "json").stdout)
    equal("why", why, found.index["tables"]["why"])
    spent = collections.Counter()
    for _, row in found.rows("account"):
        spent[row["name"]] += row["dur"]
    account = why["gpus"][0]
    if abs(sum(spent.values()) - account["ns"]) > account["ns"] / 100:
        raise Failure(f"{sum(spent.values())} ns in the account's parts, of {account['ns']}")
    if spent.most_common(1)[0][0] != "computing" or \
            not any("train.py:88" in (row["detail"] or "") for _, row in found.rows("account")):
        raise Failure(f"not what why says: {spent}")


def test_html_has_memory_and_metrics(case):
    units = {track["unit"] for track, _ in page(case, "gpu").rows("counter")}
    equal("units", {"B"}, units)
    equal("of metrics", True, "%" in {track["unit"] for track, _ in page(case, "metrics").rows("counter")})


def test_html_has_the_tables_of_reports(case):
    found = page(case, "plain")
    table = found.index["tables"]["cuda_api_sum"][0]
    rows = json.loads(case.cuscope("report", case.trace("plain"), "cuda_api_sum", "--format", "json").stdout)
    equal("rows", [list(row.values()) for row in rows], table["rows"])
    equal("columns", list(rows[0]), [column["name"] for column in table["columns"]])
    for about in found.index["reports"]:
        if about["name"] not in found.index["tables"]:
            raise Failure(f"no tables of {about['name']}")


def test_html_on_one_processor_is_the_same(case):
    """With two, others make the reports (src/page/tables.c)."""
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        raise Failure("this machine has one processor, so that the reports are made by the same process in any case")
    pages = []
    for some in processors, {min(processors)}:
        os.sched_setaffinity(0, some)
        try:
            with open(case.export("gpu", "page.html", "--force"), encoding="utf-8") as file:
                pages.append(file.read())
        finally:
            os.sched_setaffinity(0, processors)
    equal("page", *pages)


def test_html_of_a_part_is_the_part(case):
    whole, part = page(case, "plain"), page(case, "plain", "--from", "4ms", "--to", "7ms")
    few, all_of_it = (sum(1 for _ in found.rows("call")) for found in (part, whole))
    if not 0 < few < all_of_it:
        raise Failure(f"{few} calls of {all_of_it}")


def test_html_of_hard_names_holds_none_of_them_as_markup(case):
    for trace in ("edges", "events", "hard stacks"):
        found = page(case, trace)
        if re.search(r"<(img|b|i|svg|a)\b", found.text):
            raise Failure(f"markup of {trace}'s in the page")


def test_html_says_what_was_missed(case):
    equal("nothing", [], page(case, "plain").index["missed"])
    if not page(case, "lost").index["missed"]:
        raise Failure("nothing is said of what was lost")


def test_html_is_written_by_why_too(case):
    path = case.path("why.html")
    result = case.cuscope("why", case.trace("host_line"), "-o", path)
    equal("status", 0, result.returncode)
    Page(path).check()
    result = case.cuscope("why", case.trace("host_line"), "-o", path)
    equal("status of the second", 1, result.returncode)
    if "exists" not in result.stderr:
        raise Failure(result.stderr)
    result = case.cuscope("why", case.trace("host_line"), case.trace("gpu"), "-o", path)
    equal("status of two", 2, result.returncode)


def test_html_numbers_no_process_that_is_none(case):
    for process in page(case, "gpu").index["processes"]:
        if not process["pid"]:
            raise Failure(f"a process without a number: {process}")


def test_html_tells_calls_of_cuda_from_those_of_the_driver(case):
    """As cuda_api_sum does."""
    found = page(case, "driver")
    table = json.loads(case.cuscope("report", case.trace("driver"), "cuda_api_sum", "--format", "json").stdout)
    seen = collections.Counter(row["name"] for _, row in found.rows("call") if not row["depth"])
    equal("calls", {row["Name"]: row["Num Calls"] for row in table}, dict(seen))
    if not list(found.rows("other")):
        raise Failure("no calls of the driver")
