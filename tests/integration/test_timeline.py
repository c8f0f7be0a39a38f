# SPDX-License-Identifier: MIT
"""Our own reports and the timeline, of recorded files: what the programs counted."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import checks
from harness import Counts, Failure, Places
from test_report import record, report


def tables(case, path, name):
    return json.loads(report(case, path, name, "--format", "json").out())


def timeline(case, *arguments, status=0):
    process = case.cuscope("timeline", *arguments)
    checks.equal(f"status of timeline {arguments[1:]}", status, process.wait())
    return process


def test_memory_kept_is_what_the_program_did_not_free(case):
    path = record(case, "memory")
    counts = Counts(case.path("counts"))
    live = counts.of("live")
    parts = tables(case, path, "memory")
    checks.equal("count", live["count"], len(parts["kept"]))
    checks.equal("bytes", live["bytes"], sum(row["Size (bytes)"] for row in parts["kept"]))
    everything = next(row for row in parts["kinds"] if row["Kind"] == "all")
    checks.equal("allocations", sum(counts.of("allocs").values()), everything["Count"])
    checks.equal("by exit", live["bytes"], everything["By Exit (bytes)"])


def test_launches_are_those_of_the_program(case):
    path = record(case, "threads", "3", "20")
    launched = Counts(case.path("counts")).of("calls")["cuLaunchKernel"]
    parts = tables(case, path, "launches")
    checks.equal("launches of kernels", launched, sum(row["Launches"] for row in parts["kernels"]))
    checks.equal("shapes of a kernel", [3, 3], [row["Shapes"] for row in parts["kernels"]])


def test_streams_and_threads_share_the_work(case):
    path = record(case, "threads", "3", "20")
    counts = Counts(case.path("counts")).of("calls")
    streams, threads = tables(case, path, "streams"), tables(case, path, "threads")
    checks.equal("launches by stream", counts["cuLaunchKernel"], sum(row["Launches"] for row in streams))
    if not any(row["Stream"] not in ("default", "legacy") and row["Launches"] for row in streams):
        raise Failure(f"no stream has launches: {streams}")
    checks.equal("waits", counts["cuStreamSynchronize"], sum(row["Syncs"] for row in streams))
    checks.equal("launches by thread", counts["cuLaunchKernel"], sum(row["Launches"] for row in threads))


def test_errors_have_their_first_and_last_time(case):
    path = record(case, "errors")
    rows = tables(case, path, "errors")
    summary = tables(case, path, "summary")
    checks.equal("errors", summary["calls"]["failed"], sum(row["Count"] for row in rows))
    for row in rows:
        if row["First (ns)"] > row["Last (ns)"]:
            raise Failure(f"the first is later than the last: {row}")


def test_the_overview_is_what_is_shown_without_a_name(case):
    path = record(case, "threads", "1", "5")
    process = report(case, path)
    checks.contains("overview", r"overview: one page[\s\S]*Kernel Launches +10\n[\s\S]*What to look at next\n", process.out())
    hints = tables(case, path, "overview")["next"]
    if not 3 <= len(hints) <= 6:
        raise Failure(f"{len(hints)} hints")


def test_a_timeline_has_every_thread_and_counts_every_launch(case):
    path = record(case, "threads", "3", "20")
    launched = Counts(case.path("counts")).of("calls")["cuLaunchKernel"]
    text = timeline(case, path).out()
    checks.contains("stage", rf"\n  kernel +{launched} ", text)
    checks.equal("lanes", 4, len(re.findall(r"^  \d+ threads +[A-Za-z.]+ +[\d.]+ %$", text, re.M)))


def test_a_timeline_lists_calls_where_they_are_few(case):
    path = record(case, "threads", "3", "20")
    text = timeline(case, path, "--top", "0").out()
    narrower = re.search(r"too many to list \(200 at most\).*(--from=\S+) (--to=\S+)", text, re.S)
    if not narrower:
        raise Failure(f"nothing is said of a narrower window: {text[-300:]}")
    few = timeline(case, path, "--top", "0", *narrower.groups()).out()
    checks.contains("list", r"\nCALLS\n.*\n +[\d.]+ .* cu\w+", few)


def on_terminal(columns, command, variables):
    """What a command prints on a terminal of so many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(command, stdout=follower, env={**environment, **variables})
    os.close(follower)
    written = b""
    try:
        while piece := os.read(leader, 4096):
            written += piece
    except OSError:  # the other end was closed
        pass
    os.close(leader)
    checks.equal("status", 0, process.wait())
    return written.decode().replace("\r\n", "\n")


def test_a_timeline_fits_into_the_terminal(case):
    command = [Places.cuscope(), "timeline", record(case, "memory")]
    for variables, colored in (({}, True), ({"NO_COLOR": "1"}, False)):
        text = on_terminal(83, command, {"LC_ALL": "C", **variables})
        checks.equal("colours", colored, "\x1b[" in text)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n")
        if max(map(len, lines)) > 83:
            raise Failure(f"a line is wider than the terminal: {max(lines, key=len)}")
        checks.contains("the chart", r"\n  \d+ memory +[A-Za-z.]{55} +[\d.]+ %\n", "\n".join(lines))


def test_timeline_says_what_is_wrong(case):
    path = record(case, "memory")
    for arguments, status, sentence in (
            ([], 2, "which trace file\\? 'cuscope record' makes one"),
            ([path, "other"], 2, "one file at a time, not also 'other'"),
            ([path, "--width", "20"], 2, "--width: '20' is no number of columns from 40 to 2000"),
            ([path, "--tid", "0"], 2, "--tid: '0' is no thread id"),
            ([path, "--top", "-1"], 2, "--top: '-1' is no number up to 10000"),
            ([path, "--from", "2s", "--to", "1s"], 2, "--to is not later than --from"),
            ([path, "--colour", "always"], 2, "there is no option '--colour'"),
            ([case.path("nothing.cuscope")], 1, "nothing.cuscope.*No such file")):
        process = timeline(case, *arguments, status=status)
        checks.contains(str(arguments), sentence, process.err())
        checks.equal(f"lines of {arguments}", 1, len(process.err().splitlines()))


def test_a_timeline_of_a_file_that_was_cut_short(case):
    path = record(case, "threads", "3", "20")
    with open(path, "rb") as file:
        whole = file.read()
    cut = case.path("cut.cuscope")
    with open(cut, "wb") as file:
        file.write(whole[:len(whole) * 2 // 3])
    process = case.cuscope("timeline", cut)
    status = process.wait()
    if status not in (0, 1) or not process.err().startswith("cuscope: "):
        raise Failure(f"status {status}: {process.err()}")
