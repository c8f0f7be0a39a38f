# SPDX-License-Identifier: MIT
"""Recording into a file: what is in it, and what is left of it when something goes wrong."""

import json
import os
import re
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Result, Skip, wait_until


def record(case, program, *arguments, options=(), status=0, name="trace"):
    """Records a program to its end, and reads the file as a trace would have shown it."""
    process = start_record(case, ["--", Places.program(program), *map(str, arguments)], options, name)
    checks.equal("status", status, process.wait())
    return read(case, process, status, name)


def start_record(case, target, options=(), name="trace", **more):
    return case.cuscope("record", "-o", case.path(name + ".cuscope"), *options, *target, **more)


def read(case, process, status=0, name="trace"):
    trace = case.path(name + ".cuscope")
    case.cuscope("export", trace, "-o", case.path(name + ".jsonl")).wait()
    summary = case.cuscope("report", trace, "summary", "--format", "json")
    checks.equal("status of the report", 0, summary.wait())
    with open(case.path(name + ".json"), "w") as out:
        out.write(summary.out())
    return Result(process, status, case.path(name), case.path("counts"))


def info(case, name="trace", status=0):
    process = case.cuscope("info", "--json", case.path(name + ".cuscope"))
    checks.equal("status of info", status, process.wait())
    return json.loads(process.out())


def start_loop(case, options=(), rate=2000, name="trace"):
    """Records a program that makes calls until its input ends; waits until it has begun."""
    process = start_record(case, ["--", Places.program("loop"), "60", str(rate)], options, name,
                           stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program to begin")
    return process


# ---- what is recorded --------------------------------------------------------------------------


def test_record_failed_and_max_events(case):
    path = case.path("failed.cuscope")
    process = case.cuscope("record", "--failed", "-o", path, "--", Places.program("errors"))
    checks.equal("status", 0, process.wait())
    failed = case.trace("errors", lines=False).summary["calls"]["failed"]
    listed = case.cuscope("export", path, "-o", case.path("failed.jsonl"))
    checks.equal("status of export", 0, listed.wait())
    with open(case.path("failed.jsonl")) as file:
        calls = [e for e in map(json.loads, file) if e.get("phase") == "X" and not e.get("nested")]
    checks.equal("calls that did not fail", [], [c for c in calls if "error" not in c])
    checks.equal("failed calls", failed, len(calls))
    path = case.path("few.cuscope")
    process = case.cuscope("record", "--max-events", "5", "-o", path, "--", Places.program("errors"))
    checks.equal("status", 0, process.wait())
    report = case.cuscope("report", path, "cuda_api_trace", "--format", "csv")
    checks.equal("status of report", 0, report.wait())
    checks.equal("calls", 5, len(report.out().strip().splitlines()) - 1)
    refused = case.cuscope("record", "--failed", "--no-returns", "-o", path, "--", "true")
    checks.equal("status", 2, refused.wait())
    checks.contains("error", "--failed needs returns", refused.err())


def test_recorded_calls_are_those_that_the_program_made(case):
    for program in ("runtime13", "capture", "copies", "memory", "threads"):
        case.env = {"SAMPLE_COUNTS": case.path("counts-" + program)}
        process = start_record(case, ["--", Places.program(program)], name=program)
        checks.equal("status of " + program, 0, process.wait())
        result = read(case, process, name=program)
        result.counts.__init__(case.path("counts-" + program))
        checks.everything(result, without=checks.FOR_LAUNCHES)


def test_recorded_processes_are_followed_through_fork_and_exec(case):
    result = record(case, "exec", 2)
    checks.everything(result)
    told = info(case)
    checks.equal("pids", result.counts.pids(), {p["pid"] for p in told["processes"] if p["calls"]})
    checks.equal("calls", len(result.calls()), told["calls"])


def test_record_begins_when_others_do(case):
    """Calls are made all the time; only those of the time that was agreed on are there."""
    process = start_loop(case, ("--begin-at", "/2s", "--duration", "300ms"))
    wait_until(lambda: "trace is over" in process.err() or "waiting for" in process.err(), "the recording's end")
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())
    checks.contains("it says when", "the recording begins at ", process.err())
    told = info(case)
    beside = told["begin_realtime_ns"] % 2_000_000_000
    checks.equal("begins at a whole multiple", True, min(beside, 2_000_000_000 - beside) < 20_000_000)
    checks.equal("lasts as long as asked for", True, 300e6 <= told["duration_ns"] < 1900e6)
    calls = [event for event in read(case, process).events if event.get("phase") == "X"]
    checks.equal("calls", True, len(calls) > 10)
    checks.equal("before the begin", [], [call for call in calls if call["ts"] * 1000 + call.get("duration_us", 0) < 0])
    for wrong in ("10s", "/1s", "/", "/0s"):
        refused = case.cuscope("record", "--begin-at", wrong, "-o", case.path("x.cuscope"), "--", "true")
        checks.equal("status", 2, refused.wait())
        checks.contains("error", "multiple to begin at", refused.err())
    refused = case.cuscope("record", "--begin-at", "/2s", "--last", "1s", "-o", case.path("x.cuscope"), "--", "true")
    checks.equal("status", 2, refused.wait())


def test_record_says_which_options_left_calls_out(case):
    """All of them, in info and in its JSON; and nothing where none did."""
    program = ["--", Places.program("threads"), "1", "3"]
    for name, options, said in (("some", ["--only", "cuMem*", "--only", "cu\x1b*", "--class", "memory", "--skip", "cuMemFree*", "--min-duration", "1us"],
                                 "--min-duration 1.00 us --class memory --only cuMem* --only cu\x1b* --skip cuMemFree*"),
                                ("failed", ["--failed"], "--failed"), ("all", ["--all-calls"], None)):
        checks.equal("status", 0, start_record(case, program, options, name).wait())
        checks.equal("JSON", said, info(case, name).get("chosen_by"))
        told = case.cuscope("info", case.path(name + ".cuscope"))
        checks.equal("status of info", 0, told.wait())
        if ("chosen by" in told.out()) != (said is not None) or "\x1b" in told.out():
            raise Failure(told.out())


def test_processes_without_a_call_are_a_number(case):
    process = start_record(case, ["--", "/bin/sh", "-c", Places.program("memory") + "; exit 0"])
    checks.equal("status", 0, process.wait())
    calling = [p for p in info(case)["processes"] if p["calls"]]
    checks.equal("processes with calls", 1, len(calling))
    told = case.cuscope("info", case.path("trace.cuscope"))
    checks.equal("status of info", 0, told.wait())
    checks.contains("info", r"\n +%d  \S+ .*\n  and \d process(es)? without a CUDA call\n" % calling[0]["pid"], told.out())
    if re.search(r"^ +\d+  sh ", told.out(), re.M):
        raise Failure("the shell has a row:\n" + told.out())
    summary = case.cuscope("report", case.path("trace.cuscope"), "summary")
    checks.equal("status of the summary", 0, summary.wait())
    checks.contains("summary", r"\nProcesses with CUDA calls: 1, \d without\n", summary.out())


def test_who_processes_are_is_kept_and_shown(case):
    case.env = {"SLURM_JOB_ID": "77", "RANK": "3", "LOCAL_RANK": "1\x1b[31m"}
    # who is gone at once is not read, and it ends with its input
    process = start_record(case, ["--", "/bin/sh", "-c", f"sleep 1 | {Places.program('loop')} 1"])
    checks.equal("status", 0, process.wait())
    loop = next(p for p in info(case)["processes"] if p["calls"])
    checks.equal("who it is", {"user": "root", "slurm_job": "77", "rank": "3"},
                 {word: loop.get(word) for word in ("user", "slurm_job", "rank")})
    if "\x1b" in loop.get("local_rank", ""):
        raise Failure(f"what a process says of itself is not made harmless: {loop}")
    told = case.cuscope("report", case.path("trace.cuscope"), "processes")
    checks.equal("status of the report", 0, told.wait())
    checks.contains("heading", r"  User +Job +Rank +Name\n", told.out())
    checks.contains("row", r"  root +77 +3 +loop\n", told.out())


def test_record_says_what_it_did_and_what_is_next(case):
    result = record(case, "memory")
    checks.contains("the closing line", r"trace\.cuscope: \d+ events in [\d.]+ KiB, none lost; "
                    r"next: cuscope report .*trace\.cuscope", result.err)
    told = info(case)
    checks.equal("complete", (False, None), (told["cut_short"], told["damage"]))
    checks.contains("the command", "programs/memory$", told["command"])
    checks.equal("hostname", os.uname().nodename, told["hostname"])
    checks.equal("kernel", os.uname().release, told["kernel_release"])


def test_what_the_closing_line_says_was_lost_is_what_info_and_reports_say(case):
    """A sum of its own said "none lost" of all reasons but four."""
    for options in ((), ("--last", "1h")):
        result = record(case, "nested", 10, 5, options=("-v", "--force", *options))
        lost = sum(info(case)["missed"]["lost"].values())
        checks.equal("something was lost", True, lost > 0)
        checks.contains("the closing line", rf", {lost} lost \('cuscope info .*trace\.cuscope' says why\); next: ", result.err)
        report = case.cuscope("report", case.path("trace.cuscope"), "cuda_api_sum")
        checks.equal("status of the report", 0, report.wait())
        checks.contains("what the report says", rf"trace\.cuscope: {lost} lost while it was recorded", report.err())


def test_status_of_record_is_that_of_the_command(case):
    process = start_record(case, ["--", "/bin/sh", "-c", "exit 7"])
    checks.equal("status", 7, process.wait())


# ---- files -------------------------------------------------------------------------------------


def test_record_overwrites_nothing_unless_told_to(case):
    path = case.path("trace.cuscope")
    with open(path, "w") as file:
        file.write("precious")
    process = start_record(case, ["--", "/bin/true"])
    checks.equal("status", 1, process.wait())
    checks.contains("the reason", "exists already: --force overwrites it", process.err())
    with open(path) as file:
        checks.equal("the file", "precious", file.read())
    process = start_record(case, ["--force", "--", "./nonexistent"])
    checks.equal("status of a command that is not there", 127, process.wait())
    with open(path) as file:
        checks.equal("the file after a recording that never began", "precious", file.read())
    checks.equal("with --force", 0, start_record(case, ["--force", "--", Places.program("memory")]).wait())
    checks.equal("what is there then", None, info(case)["damage"])


def test_record_without_a_name_takes_the_commands(case):
    process = case.cuscope("record", "--", Places.program("memory"), cwd=case.folder)
    checks.equal("status", 0, process.wait())
    checks.equal("the file", True, os.path.exists(case.path("cuscope-memory.cuscope")))


def test_a_second_recording_without_a_name_has_the_next(case):
    """What was recorded before is never overwritten, be it a file or a link, unless that is asked for."""
    first = case.path("cuscope-memory.cuscope")
    with open(first, "w") as file:
        file.write("precious")
    os.symlink("nowhere", case.path("cuscope-memory-2.cuscope"))
    for options, number in (([], 3), (["--last", "10s"], 4)):
        process = case.cuscope("record", *options, "--", Places.program("memory"), cwd=case.folder)
        name = f"cuscope-memory-{number}.cuscope"
        checks.equal("status", 0, process.wait())
        checks.contains("said at its begin", r"cuscope: cuscope-memory\.cuscope exists already: this recording goes to "
                        + re.escape(name) + "\n", process.err())
        checks.contains("said at its end", re.escape(name) + r": \d+ events .*next: cuscope report " + re.escape(name),
                        process.err())
        checks.contains_not("said", "--force", process.err())
        checks.equal("damage", None, info(case, name.removesuffix(".cuscope"))["damage"])
    with open(first) as file:
        checks.equal("the first", "precious", file.read())
    checks.equal("a link leads nowhere", False, os.path.exists(case.path("nowhere")))
    process = case.cuscope("record", "--force", "--", Places.program("memory"), cwd=case.folder)
    checks.equal("status with --force", 0, process.wait())
    checks.equal("the first then", None, info(case, "cuscope-memory")["damage"])


def test_what_is_no_file_is_refused(case):
    for path, reason in (("-", "standard output"), ("/dev/null", "not a regular file"),
                         ("/nonexistent/a.cuscope", "No such file or directory")):
        process = case.cuscope("record", "-o", path, "--", "/bin/true", cwd=case.folder)
        checks.equal(f"status for {path}", 1, process.wait())
        checks.contains("the reason", reason, process.err())


def test_a_recording_that_could_not_begin_leaves_no_file(case):
    process = start_record(case, ["--", "./nonexistent"])
    checks.equal("status", 1 if process.wait() == 1 else 127, process.wait())
    checks.equal("files", False, os.path.exists(case.path("trace.cuscope")))


# ---- ends that nobody wanted -------------------------------------------------------------------


def written_calls(case, more_than, what):
    """Waits until the file that is being written has more calls than that; how many it has."""
    path, told = case.path("trace.cuscope"), {"bytes": 0, "calls": 0}

    def more():
        nonlocal told
        if os.path.exists(path) and os.path.getsize(path) > told["bytes"]:
            told = info(case)
        return told["calls"] > more_than
    wait_until(more, what, 30)
    return told["calls"]


def test_killed_recording_is_read_up_to_a_second_before(case):
    """So few calls fill no piece of the file while this test waits: seconds end the pieces."""
    process = start_loop(case, rate=100)
    first = written_calls(case, 0, "a first piece")
    second = written_calls(case, first, "a second piece")
    process.signal(signal.SIGKILL)
    process.wait()
    told = info(case)
    checks.equal("cut short", True, told["cut_short"])
    if told["calls"] < second:
        raise Failure(f"{told['calls']} calls are left, {second} were in the file")
    report = case.cuscope("report", case.path("trace.cuscope"), "cuda_api_sum")
    checks.equal("status of report", 1, report.wait())
    checks.contains("the report", "cuLaunchKernel", report.out())


def test_a_file_that_is_still_written_can_be_read(case):
    process = start_loop(case)
    wait_until(lambda: os.path.getsize(case.path("trace.cuscope")) > 5000, "a first chunk")
    checks.equal("cut short", True, info(case)["cut_short"])
    process.process.stdin.close()
    process.process.stdin = None
    checks.equal("status", 0, process.wait())
    checks.equal("cut short at the end", False, info(case)["cut_short"])


def test_a_disk_that_fills_loses_only_the_tail(case):
    disk = case.path("disk")
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=False).returncode:
        raise Skip("mounting a tmpfs is refused")
    try:
        process = case.cuscope("record", "-o", disk + "/trace.cuscope", "--",
                               Places.program("loop"), "60", "4000", stdin=subprocess.PIPE)
        wait_until(lambda: "No space left on device" in process.err(), "the disk to be full", 30)
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGTERM)
        if process.wait() == 0:
            raise Failure("a full disk is no success")
        checks.contains("the reason", r"cannot write .*disk/trace\.cuscope: No space left on device; "
                        r"free some space", process.err())
        checks.equal("how often it is said", 1, len(re.findall("No space left", process.err())))
        os.rename(disk + "/trace.cuscope", disk + "/x.cuscope")
        told = info(case, "disk/x")
        checks.equal("cut short", True, told["cut_short"])
        if told["calls"] < 100:
            raise Failure(f"only {told['calls']} calls are left")
    finally:
        subprocess.run(["umount", "-l", disk], check=False)  # whoever still writes there


# ---- the last part -----------------------------------------------------------------------------


def test_only_the_last_seconds_are_kept(case):
    process = start_loop(case, ["--last", "1s"])
    time.sleep(3.5)
    checks.equal("a file before the end", False, os.path.exists(case.path("trace.cuscope")))
    process.process.stdin.close()
    process.process.stdin = None
    checks.equal("status", 0, process.wait())
    told = info(case)
    checks.equal("complete", False, told["cut_short"])
    if not 0.9e9 < told["duration_ns"] < 2.6e9:
        raise Failure(f"{told['duration_ns']} ns are left of 1 s")
    checks.equal("pids", 1, len(told["processes"]))


def test_a_window_in_bytes_is_no_larger(case):
    """Whatever the machine makes of the rate: the chunks are an eighth of the window each. Stacks stand beside them."""
    process = start_loop(case, ["--last", "8k", "--no-stacks"], rate=4000)
    time.sleep(3)
    process.process.stdin.close()
    process.process.stdin = None
    checks.equal("status", 0, process.wait())
    told = info(case)
    if not 0 < told["bytes"] < 20000 or not told["calls"]:
        raise Failure(f"{told['bytes']} bytes, {told['calls']} calls")


def test_sigusr2_writes_the_window_and_goes_on(case):
    process = start_loop(case, ["--last", "1GB"])
    time.sleep(0.5)
    process.signal(signal.SIGUSR2)
    wait_until(lambda: "trace.cuscope: " in process.err(), "the first file")
    time.sleep(0.5)
    process.signal(signal.SIGUSR2)
    wait_until(lambda: "trace-2.cuscope: " in process.err(), "the second file")
    process.process.stdin.close()
    process.process.stdin = None
    checks.equal("status", 0, process.wait())
    events = [info(case, name)["events"] for name in ("trace", "trace-2", "trace-3")]
    if not 0 < events[0] < events[1] < events[2]:
        raise Failure(f"events in the three files: {events}")


def test_sigusr2_without_a_window_does_not_end_the_recording(case):
    process = start_loop(case)
    process.signal(signal.SIGUSR2)
    wait_until(lambda: "SIGUSR2 writes what --last keeps" in process.err(), "what it says to that")
    process.process.stdin.close()
    process.process.stdin = None
    checks.equal("status", 0, process.wait())
    checks.equal("cut short", False, info(case)["cut_short"])


def test_a_last_part_that_is_nothing_is_refused(case):
    for value in ("0s", "tomorrow", "-3s"):
        process = case.cuscope("record", "--last=" + value, "--", "/bin/true")
        checks.equal("status", 2, process.wait())
        checks.contains("the reason", "--last: ", process.err())


# ---- info --------------------------------------------------------------------------------------


def test_info_tells_a_damaged_file_from_one_without_its_end(case):
    golden = os.path.join(Places.root, "tests", "golden", "plain.cuscope")
    with open(golden, "rb") as file:
        whole = file.read()
    middle, end = len(whole) // 2, "it has no end"
    kinds = {"hole": (whole[:middle - 500] + whole[-700:], "is damaged at byte", end),
             "cut": (whole[:middle], end, "is damaged"),
             "both": (whole[:300] + b"?" * 20 + whole[320:-700], "; and " + end, "among")}
    for name, (content, said, unsaid) in kinds.items():
        with open(case.path(name + ".cuscope"), "wb") as file:
            file.write(content)
        process = case.cuscope("info", case.path(name + ".cuscope"))
        process.wait()
        line = " ".join(process.out().split("recorded  ")[0].split())
        checks.contains(f"what is told of {name}", said, line)
        checks.equal(f"what is not told of {name}", False, unsaid in line)


def test_files_that_are_no_traces_are_told_apart(case):
    golden = os.path.join(Places.root, "tests", "golden", "plain.cuscope")
    with open(golden, "rb") as file:
        whole = file.read()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    files = {"empty": (b"", "is empty"), "foreign": (b"#!/bin/sh\n", "is no trace"),
             "newer": (whole[:8] + b"\x09\x00" + whole[10:], "newer cuscope"),
             "damaged": (bytes(damaged), "is damaged at byte")}
    for name, (content, reason) in files.items():
        with open(case.path(name + ".cuscope"), "wb") as file:
            file.write(content)
        process = case.cuscope("info", case.path(name + ".cuscope"))
        checks.equal(f"status for {name}", 1, process.wait())
        checks.contains("the reason", reason, process.err())
