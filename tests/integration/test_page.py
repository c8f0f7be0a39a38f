# SPDX-License-Identifier: MIT
"""Pages for a browser, of what runs: record --html, why -o FILE.html."""

import json
import os
import re
import subprocess

import checks
from harness import Failure, Places


def index_of(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(r'<script type="application/json" id="index">(.*?)</script>', file.read(), re.S).group(1))


def run(case, *words):
    return subprocess.run([Places.cuscope(), *words], capture_output=True, text=True, env=case.environment(), timeout=120)


def test_record_writes_a_page_beside_the_recording(case):
    page, recording = case.path("page.html"), case.path("run.cuscope")
    result = run(case, "record", "--html", page, "-o", recording, "--", Places.program("threads"), "2", "50")
    checks.equal("status", 0, result.returncode)
    checks.contains("it is told", f"page: {page}", result.stderr)
    index = index_of(page)
    calls = sum(track["rows"] for track in index["tracks"] if track["kind"] == "call")
    told = json.loads(run(case, "report", recording, "cuda_api_sum", "--nested", "--format", "json").stdout)
    checks.equal("calls of the page", sum(row["Num Calls"] for row in told), calls)


def test_record_looks_where_the_page_goes_before_it_records(case):
    recording, ran = case.path("run.cuscope"), case.path("ran")
    for page, why in ((case.path("none/page.html"), "No such file"), (recording, "cannot be one file")):
        result = run(case, "record", "--html", page, "-o", recording, "--", "touch", ran)
        if not result.returncode or os.path.exists(ran):
            raise Failure(f"{page}: status {result.returncode}, and the command ran: {os.path.exists(ran)}")
        checks.contains("why", why, result.stderr)
    result = run(case, "record", "--html", case.path("x.html"), "--last", "1s", "-o", recording, "--", "true")
    checks.contains("of --last", "--html is of a whole recording", result.stderr)


def test_why_writes_a_page_in_place_of_the_recording(case):
    page = case.path("why.html")
    result = run(case, "why", "-o", page, "--", Places.program("threads"), "2", "2000")
    checks.equal("status", 0, result.returncode)
    why = index_of(page)["tables"]["why"]
    checks.equal("its answer", True, bool(why["gpus"]))
    checks.equal("no recording", ["why.html"], [name for name in os.listdir(case.folder) if "why" in name])
    ran = case.path("ran")
    result = run(case, "why", "-o", page, "--", "touch", ran)
    checks.equal("a file that exists", (1, False), (result.returncode, os.path.exists(ran)))
    checks.contains("is told", "exists already", result.stderr)
