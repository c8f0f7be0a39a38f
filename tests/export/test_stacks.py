# SPDX-License-Identifier: MIT
"""Recordings with stacks: profiles of a part of them, and their stacks in every format."""

import csv
import io
import json
import re
import shutil
import sqlite3
import subprocess

from case import Failure, Skip, equal
from test_chrome import hta_rules
from test_perfetto import decoded, packets


def heaviest(case, *options):
    """What `cuscope profile` prints of the golden trace with stacks: its title, and (share's time, function)."""
    result = case.cuscope("profile", case.trace("stacks"), *options)
    said = "cuscope: TRACE: not all was seen while it was recorded: 'cuscope report TRACE summary' says why\n"
    equal(f"what is said of {options}", (0, said), (result.returncode, result.stderr.replace(case.trace("stacks"), "TRACE")))
    lines = result.stdout.splitlines()
    return lines[0].split(": ")[-1], [" ".join(line.split()[2:]) for line in lines if " % " in line[:10]]


def test_stacks_profile_of_a_part(case):
    equal("up to 1 ms", ("2.000 ms on CPUs", ["1.000 ms worker", '1.000 ms Net.forward (ä "1".py:12)']),
          heaviest(case, "--to", "1ms"))
    equal("from 3.6 ms on", "1.000 ms on CPUs", heaviest(case, "--from", "3600us")[0])
    equal("blocked", "3.150 ms blocked", heaviest(case, "--to", "3900us", "--mode", "off-cpu")[0])
    equal("blocked", "220.00 us blocked", heaviest(case, "--from", "3900us", "--mode", "off-cpu")[0])
    equal("between", "1.000 ms on CPUs", heaviest(case, "--from", "2450us", "--to", "3000us", "--mode", "cpu")[0])
    equal("beyond its end", "no samples", heaviest(case, "--from", "1h")[0])


def test_stacks_profile_of_some_processes(case):
    whole = heaviest(case)
    equal("its process", whole, heaviest(case, "--pid", "4242,5151"))
    equal("another one", "no samples", heaviest(case, "-p", "1")[0])


def test_stacks_profile_lasts_as_long_as_the_part(case):
    for options, said in (((), "5.000 ms"), (("--from", "1ms", "--to", "3ms"), "2.000 ms"), (("--to", "1h"), "5.000 ms"),
                          (("--from", "4ms"), "1.000 ms")):
        lines = case.cuscope("profile", case.trace("stacks"), *options).stdout.splitlines()
        equal(f"duration with {options}", True, said + " at 1000 samples a second" in lines[1])


def test_stacks_profile_says_why_there_is_nothing(case):
    for said, options in (("  The trace ends 0.005 s after its begin, before --from\n", ("--from", "10s")),
                          ("  Of these processes there is nothing: 'cuscope info FILE' lists those of the file\n", ("-p", "1"))):
        shown = case.cuscope("profile", case.trace("stacks"), *options).stdout
        equal(f"said of {options}: {shown}", True, "no samples" in shown and said in shown)
    shown = case.cuscope("profile", case.trace("stacks")).stdout
    equal(f"said of one that has something: {shown}", False, "The trace ends" in shown or "there is nothing" in shown)


def test_stacks_profile_names_threads(case):
    case.cuscope("profile", case.trace("stacks"), "--per-thread", "--off-cpu", "-o", case.path("threads.folded"))
    with open(case.path("threads.folded")) as file:
        threads = {tuple(line.split(";")[:2]) for line in file}
    equal("threads", {("python3 (5151)", "python3 (5151)"), ("python3 (5151)", "worker (5152)")}, threads)
    for option, said in (("--per-thread", "  in worker (5152) of python3 (5151)\n"), ("--per-process", "  in python3 (5151)\n")):
        shown = case.cuscope("profile", case.trace("stacks"), option).stdout
        equal(f"what is shown with {option}: {shown}", True, said in shown)
    equal("without", False, "  in python3" in case.cuscope("profile", case.trace("stacks")).stdout)


def test_stacks_profile_options_that_do_not_go_together(case):
    trace = case.trace("stacks")
    for said, options in (("--to is not later than --from", (trace, "--from", "2ms", "--to", "1ms")),
                          ("'soon' is no time since the trace's begin", (trace, "--from", "soon")),
                          ("'x' is no list of process ids", (trace, "--pid", "x")),
                          ("--from is for a trace file, which is none of the arguments", ("--from", "1ms", "--all")),
                          ("--to is for a trace file, which is none of the arguments", ("--to", "1ms", "--all")),
                          ("--launch-stacks goes with --gpu", ("--launch-stacks", "all", "--all")),
                          ("(there are .folded, .svg, .html, .pb.gz, .speedscope.json)", (trace, "-o", "x.png")),
                          ("of its processes --pid chooses some", (trace, "--all"))):
        result = case.cuscope("profile", *options)
        equal(f"status of {options}", 2, result.returncode)
        equal(f"what is said of {options}: {result.stderr}", True, said in result.stderr)


# ---- SQLite

HEAVIEST = """
    SELECT s.kind, sum(s.weight) / 1e6 AS ms,
     (SELECT group_concat(name, ' < ') FROM
       (SELECT v.value AS name FROM CUDA_CALLCHAINS c JOIN StringIds v ON v.id = c.symbol
        WHERE c.id = s.callchainId ORDER BY c.stackDepth)) AS stack
    FROM cuscope_sample s GROUP BY s.kind, s.callchainId ORDER BY ms DESC, stack"""

FORWARD = "Net.forward < train < _start"


def ask(case, trace, sql):
    with sqlite3.connect(case.export(trace, trace.replace(" ", "_") + ".sqlite", "--force")) as db:
        return db.execute(sql).fetchall()


def test_stacks_sqlite_heaviest(case):
    equal("stacks", [("off_cpu", 3.250125, "futex_wait < worker"), ("cpu", 2.0, FORWARD), ("cpu", 1.0, None),
                     ("cpu", 1.0, "nvidia_ioctl < __x64_sys_ioctl < [libcuda.so.1] < cudaLaunchKernel < "
                                  "at::addmm(at::Tensor const&, at::Tensor const&) < " + FORWARD),
                     ("cpu", 1.0, r"triton_\x1b[31mfused < Net.forward < [Broken backtraces]"), ("cpu", 1.0, "worker"),
                     ("off_cpu", 0.12, None)],
          ask(case, "stacks", HEAVIEST))


def test_stacks_sqlite_who_woke(case):
    blocked = """SELECT how, weight, value, wakerTid, stretches FROM cuscope_sample LEFT JOIN StringIds i ON i.id = waker
        WHERE kind = 'off_cpu' ORDER BY 1"""
    equal("blocked", [("brief", 120000, None, None, 4), ("woken", 3250125, "lo;ader", 77, None)], ask(case, "stacks", blocked))


def test_stacks_sqlite_samples_as_nsight_systems_has_them(case):
    leaves = """SELECT e.start, t.label, s.value, m.value, c.kernelMode
        FROM COMPOSITE_EVENTS e JOIN SAMPLING_CALLCHAINS c ON c.id = e.id AND c.stackDepth = 0
        JOIN ENUM_SAMPLING_THREAD_STATE t ON t.id = e.threadState
        JOIN StringIds s ON s.id = c.symbol JOIN StringIds m ON m.id = c.module WHERE e.cpuCycles = 1 ORDER BY e.start"""
    forward = ("Running", "Net.forward", '/app/\xe4 "1".py', 0)
    equal("leaves, with the one that has no stack",
          [(500000, *forward), (700000, "Running", "worker", "libtorch_cpu.so", 0),
           (1500000, "Running", "nvidia_ioctl", "nvidia", 1), (2500000, *forward),
           (3500000, "Running", r"triton_\x1b[31mfused", "[anon]", 0),
           (4500000, "Running", "[Broken backtraces]", "[Broken backtraces]", 0)], ask(case, "stacks", leaves))
    equal("frames without a name", [("[libcuda.so.1]", 0x9000)],
          ask(case, "stacks", "SELECT s.value, c.originalIP & 0xffffffffff FROM SAMPLING_CALLCHAINS c "
                              "JOIN StringIds s ON s.id = c.symbol WHERE c.unresolved"))
    equal("where it is cut", [("[Broken backtraces]", 0, 1), ("[Broken backtraces]", 2, 1)],
          ask(case, "stacks", "SELECT s.value, c.stackDepth, c.specialEntry FROM SAMPLING_CALLCHAINS c "
                              "JOIN StringIds s ON s.id = c.symbol WHERE c.specialEntry ORDER BY 2"))


def test_stacks_sqlite_as_extra_p_asks(case):
    """It takes frames whose `unresolved` is NULL, the outermost first."""
    paths = """WITH resolved AS (
            SELECT c.id, stackDepth, value AS name FROM CUDA_CALLCHAINS c LEFT JOIN StringIds s ON symbol = s.id
            WHERE unresolved IS NULL ORDER BY c.id, stackDepth DESC),
          paths AS (SELECT id, group_concat(name, '->') AS path FROM resolved GROUP BY id)
        SELECT r.rowid, path FROM paths JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.callchainId = id ORDER BY 1"""
    equal("call paths", [(1, "_start->train->Net.forward->at::addmm(at::Tensor const&, at::Tensor const&)->check->cudaLaunchKernel"),
                         (2, "_start->train->cudaLaunchKernel")], ask(case, "stacks", paths))


def test_stacks_sqlite_places_have_addresses_of_their_own(case):
    """Who groups sites by the addresses of their frames takes those of one address for one place."""
    equal("addresses of more than one place", [], ask(case, "hard stacks", """
        SELECT c.originalIP, count(DISTINCT c.symbol) FROM CUDA_CALLCHAINS c JOIN cuscope_frame f ON f.id = c.frameId
        GROUP BY 1 HAVING count(DISTINCT f.symbol || ' ' || f.module) > 1"""))


def test_stacks_sqlite_blocked_time_as_nsight_systems_has_it(case):
    blocked = """WITH sched AS (
            SELECT globalTid % 0x1000000 AS tid, start, isSchedIn, threadState,
             LEAD(start) OVER (PARTITION BY globalTid ORDER BY start) AS next_start,
             LEAD(isSchedIn) OVER (PARTITION BY globalTid ORDER BY start) AS next_sched FROM SCHED_EVENTS)
        SELECT tid, start, next_start - start, t.label FROM sched JOIN ENUM_SAMPLING_THREAD_STATE t ON t.id = threadState
        WHERE isSchedIn = 0 AND next_sched = 1"""
    equal("blocked", [(5152, 749875, 3250125, "Waiting")], ask(case, "stacks", blocked))
    equal("switches", [(0, 1), (1, 1)], ask(case, "stacks", "SELECT isSchedIn, count(*) FROM SCHED_EVENTS GROUP BY 1"))
    equal("who comes back at the end or later", [(0,)], ask(case, "hard stacks", """
        SELECT count(*) FROM SCHED_EVENTS WHERE isSchedIn AND start >= (SELECT duration FROM ANALYSIS_DETAILS)"""))


def test_stacks_sqlite_of_calls(case):
    calls = """SELECT r.correlationId, count(c.id), group_concat(c.stackDepth)
        FROM CUPTI_ACTIVITY_KIND_RUNTIME r LEFT JOIN CUDA_CALLCHAINS c ON c.id = r.callchainId
        GROUP BY r.rowid ORDER BY 1"""
    equal("frames of launches", [(1, 6, "0,1,2,3,4,5"), (2, 3, "0,1,2"), (3, 0, None)], ask(case, "stacks", calls))
    equal("how stacks end", [("a file without unwind tables", 0, 1), (None, 0, 5), (None, 1, 1)],
          ask(case, "stacks", "SELECT endsAt, pythonCut, count(*) FROM cuscope_stack GROUP BY 1, 2 "
                              "ORDER BY endsAt IS NULL, 2"))


def test_stacks_sqlite_frames_know_their_lines(case):
    frames = """SELECT f.kind, s.value, v.value, f.line, f.firstLine, f.inlined FROM cuscope_frame f
        JOIN StringIds s ON s.id = f.symbol JOIN StringIds v ON v.id = f.file ORDER BY f.line"""
    equal("frames with lines", [("native", "check", "Check.h", 7, 5, 1),
                                ("python", "Net.forward", '/app/\xe4 "1".py', 12, 10, 0),
                                ("python", "train", "/app/train.py", 88, 80, 0),
                                ("native", "at::addmm(at::Tensor const&, at::Tensor const&)", "Addmm.cpp", 301, 290, 0)],
          ask(case, "stacks", frames))


def test_stacks_sqlite_of_hard_ones(case):
    equal("the database is sound", [("ok",)], ask(case, "hard stacks", "PRAGMA integrity_check"))
    deepest = "SELECT max(stackDepth) FROM CUDA_CALLCHAINS c JOIN StringIds s ON s.id = c.symbol WHERE specialEntry IS NULL AND s.value "
    equal("the deepest", [(1023,)], ask(case, "hard stacks", deepest + "= 'recursive'"))
    equal("the deepest of parts", [(1031,)], ask(case, "hard stacks", deepest + "!= 'recursive'"))
    equal("and what says that it is deeper", [("[Max depth]", 1024)], ask(case, "hard stacks", """
        SELECT DISTINCT s.value, c.stackDepth FROM CUDA_CALLCHAINS c JOIN StringIds s ON s.id = c.symbol
        WHERE c.specialEntry AND s.value LIKE '%depth%'"""))
    equal("build ids of one file", [("libsame.so", 5)], ask(case, "hard stacks", """
        SELECT m.value, count(DISTINCT f.buildId) FROM cuscope_frame f JOIN StringIds m ON m.id = f.module
        GROUP BY 1 HAVING count(DISTINCT f.buildId) > 1"""))
    equal("frames that refer to nothing", [(0,)], ask(case, "hard stacks", """
        SELECT count(*) FROM CUDA_CALLCHAINS c LEFT JOIN cuscope_frame f ON f.id = c.frameId
        LEFT JOIN StringIds s ON s.id = c.symbol WHERE s.id IS NULL OR f.id IS NULL AND c.specialEntry IS NULL"""))
    hostile = [text for text, in ask(case, "hard stacks", "SELECT value FROM StringIds") if re.search("[\x00-\x1f]", text)]
    equal("texts with controls", [], hostile)


def test_stacks_sqlite_without_stacks_has_no_tables_of_them(case):
    """Who asks whether samples were recorded looks for the table."""
    tables = "SELECT name FROM sqlite_master WHERE name IN ('CUDA_CALLCHAINS', 'COMPOSITE_EVENTS', 'SAMPLING_CALLCHAINS', " \
             "'SCHED_EVENTS') ORDER BY 1"
    equal("without", [], ask(case, "gpu", tables))
    equal("with", [("COMPOSITE_EVENTS",), ("CUDA_CALLCHAINS",), ("SAMPLING_CALLCHAINS",), ("SCHED_EVENTS",)],
          ask(case, "stacks", tables))


# ---- how many are whole

def test_stacks_each_format_says_how_many_are_whole(case):
    text = "6 of 9 stacks are whole; 1 ends in a file without unwind tables; 1 lacks frames of Python; 1 is not known"
    counts = {"whole": 6, "cut": {"a file without unwind tables": 1}, "python_cut": 1, "without": 1}
    with open(case.export("stacks", "counts.jsonl")) as file:
        last = json.loads(file.readlines()[-1])
    equal("jsonl, with what is missing in them", {**counts, "lost": 1, "python_frames_without_name": 2}, last["stacks"])
    trace = hta_rules.parse(hta_rules.text_of(case.export("stacks", "counts.json")))
    equal("chrome", {**counts, "lost": 1, "python_frames_without_name": 2}, trace["cuscope"]["stacks"])
    equal("csv", [text], [row["name"] for row in rows_of(case, "stacks") if row["function"] == "stacks"])
    equal("sqlite", [("whole", "whole", 6), ("cut", "a file without unwind tables", 1),
                     ("python_cut", "lack frames of Python", 1), ("without", "are not known", 1),
                     ("lost", "sample or call is without its stack, which was lost", 1),
                     ("python_frames_without_name", "frames of Python have no name", 2)],
          ask(case, "stacks", "SELECT * FROM cuscope_stack_count"))
    equal("sqlite's diagnostics", [(text,)],
          ask(case, "stacks", "SELECT text FROM DIAGNOSTIC_EVENT WHERE severity = 2 AND text LIKE '%whole%'"))
    said = [line for line in packets(decoded(case.export("stacks", "counts.pftrace"))) if f'string_value: "{text}"' in line]
    equal("perfetto", 1, len(said))
    info = case.cuscope("info", case.trace("stacks")).stdout
    equal("info", True, "not whole   1 ends in a file without unwind tables; 1 lacks frames of Python; 1 is not known (of 9)" in info)
    info = json.loads(case.cuscope("info", "--json", case.trace("stacks")).stdout)["stacks"]
    equal("info as JSON", counts, {key: info[key] for key in counts})


# ---- lines that a file has at its end

LINES = ["std::vector<float>::push_back /usr/include/c++/12/bits/stl_vector.h:1280 inlined",
         "Loader::decode /home/ann/trainer/loader.cpp:55 inlined", "Loader::next /home/ann/trainer/loader.cpp:70",
         "main /home/ann/trainer/main.cu:41", "_start"]


def test_stacks_lines_are_in_jsonl(case):
    with open(case.export("lines", "lines.jsonl")) as file:
        stacks = [line for line in map(json.loads, file) if line["type"] == "stack"]
    equal("the first stack", LINES, [f"{frame['function']}" + (f" {frame['file']}:{frame['line']}" if "file" in frame else "") +
                                     (" inlined" if frame.get("inlined") else "") for frame in stacks[0]["frames"]])
    equal("stacks", 5, len(stacks))


def test_stacks_lines_are_in_sqlite(case):
    equal("the first stack", [(line,) for line in LINES], ask(case, "lines", """
        SELECT s.value || coalesce(' ' || v.value || ':' || f.line, '') || iif(f.inlined, ' inlined', '')
        FROM CUDA_CALLCHAINS c JOIN cuscope_frame f ON f.id = c.frameId JOIN StringIds s ON s.id = f.symbol
        LEFT JOIN StringIds v ON v.id = f.file WHERE c.id = 1 ORDER BY c.stackDepth"""))


def test_stacks_lines_are_in_chrome(case):
    trace = hta_rules.parse(hta_rules.text_of(case.export("lines", "lines.json")))
    first = next(event for event in trace["traceEvents"] if event["ph"] == "P")
    names, at = [], first["sf"]
    while at is not None:
        names.append(trace["stackFrames"][str(at)]["name"])
        at = trace["stackFrames"][str(at)].get("parent")
    equal("the first stack", [re.sub(r" (/\S+)( inlined)?", r" (\1)", line) for line in LINES], names)


def test_stacks_lines_are_in_perfetto(case):
    lines = packets(decoded(case.export("lines", "lines.pftrace")))
    found = sorted(int(value) for line in lines for value in re.findall(r" frames \{.*?line_number: (\d+)", line))
    equal("lines", [17, 23, 41, 55, 70, 88, 1280], found)


# ---- csv

def rows_of(case, trace):
    with open(case.export(trace, trace.replace(" ", "_") + ".csv", "--force"), newline="") as file:
        return list(csv.DictReader(file))


def test_stacks_csv_samples(case):
    rows = [row for row in rows_of(case, "stacks") if row["layer"] == "cpu"]
    equal("columns", {None}, {row.get(None) for row in rows})
    equal("samples", [("500000", "1000000", "5151", "on_cpu", "", "Net.forward", "0"),
                      ("700000", "1000000", "5152", "on_cpu", "", "worker", "1"),
                      ("1500000", "1000000", "5151", "on_cpu", "", "nvidia_ioctl", "3"),
                      ("2500000", "1000000", "5151", "on_cpu", "", "Net.forward", "0"),
                      ("3500000", "1000000", "5151", "on_cpu", "", r"triton_\x1b[31mfused", "5"),
                      ("749875", "3250125", "5152", "blocked", "woken", "futex_wait", "6"),
                      ("4000000", "120000", "5152", "blocked", "brief", "", ""),
                      ("4500000", "1000000", "5151", "on_cpu", "", "", "")],
          [tuple(row[key] for key in ("time_ns", "duration_ns", "tid", "function", "flags", "name", "stack")) for row in rows])


def test_stacks_csv_of_hard_ones(case):
    rows = rows_of(case, "hard stacks")
    equal("rows with another number of fields", [], [row for row in rows if None in row or None in row.values()])
    equal("ways to be blocked", {"unknown", "woken", "interrupt", "still", "before", "brief", "skipped", "preempted"},
          {row["flags"] for row in rows if row["function"] == "blocked"})


# ---- Chrome

def names_of(trace, event):
    """A stack as stackFrames tells it, without files and lines; the innermost function first."""
    names, at = [], event.get("sf")
    while at is not None:
        frame = trace["stackFrames"][str(at)]
        names.append(re.sub(r" \((?:/|[A-Z]).*", "", frame["name"]))
        at = frame.get("parent")
    return names


def test_stacks_chrome_samples_and_calls(case):
    trace = hta_rules.parse(hta_rules.text_of(case.export("stacks", "stacks.json")))
    samples = [(event["cat"], event["tid"], event["args"]["weight_us"], " < ".join(names_of(trace, event)))
               for event in trace["traceEvents"] if event["ph"] == "P"]
    equal("samples", [("cpu_sample", 5151, 1000.0, FORWARD), ("cpu_sample", 5152, 1000.0, "worker"),
                      ("cpu_sample", 5151, 1000.0, "nvidia_ioctl < __x64_sys_ioctl < [libcuda.so.1] < cudaLaunchKernel < "
                                                   "at::addmm(at::Tensor const&, at::Tensor const&) < " + FORWARD),
                      ("cpu_sample", 5151, 1000.0, FORWARD),
                      ("cpu_sample", 5151, 1000.0, "triton_\x1b[31mfused < Net.forward"),
                      ("off_cpu", 5152, 3250.125, "futex_wait < worker"), ("off_cpu", 5152, 120.0, ""),
                      ("cpu_sample", 5151, 1000.0, "")], samples)
    equal("who woke", [{"how": "woken", "woken by": "lo;ader", "woken by thread": 77, "weight_us": 3250.125},
                       {"how": "brief", "stretches": 4, "weight_us": 120.0}],
          [event["args"] for event in trace["traceEvents"] if event.get("cat") == "off_cpu"])
    calls = [len(names_of(trace, event)) for event in trace["traceEvents"] if event.get("cat") == "cuda_runtime"]
    equal("frames of launches", [6, 3, 0], calls)
    equal("frames that begin alike are one", 15, len(trace["stackFrames"]))


def test_stacks_chrome_of_hard_ones(case):
    trace = hta_rules.parse(hta_rules.text_of(case.export("hard stacks", "hard.json")))
    equal("the deepest", 1032, max(len(names_of(trace, event)) for event in trace["traceEvents"]))
    equal("left out", None, trace["cuscope"].get("stacks_left_out"))


# ---- Perfetto


def test_stacks_perfetto_samples_and_slices(case):
    lines = packets(decoded(case.export("stacks", "stacks.pftrace")))
    samples = [line for line in lines if "perf_sample {" in line]
    equal("samples on CPUs", 6, len(samples))
    equal("with a stack", 5, sum("callstack_iid" in line for line in samples))
    equal("in the kernel", 1, sum("cpu_mode: 1" in line for line in samples))
    equal("slices with a stack", 3, sum("TYPE_SLICE_BEGIN" in line and "callstack_iid" in line for line in lines))
    equal("a stack that ends early", 1, sum("unwind_error: 3" in line for line in samples))
    equal("each frame once", 12, sum(" frames {" in line for line in lines))
    weights = [float(value) for line in lines for value in re.findall(r"callstack_weight: (\S+)", line)]
    equal("blocked", [3250125.0], weights)
    equal("sums", 1, sum("TYPE_INSTANT" in line and "uint_value: 120000" in line for line in lines))
    equal("who woke", 1, sum('string_value: "lo;ader"' in line and "TYPE_SLICE_BEGIN" in line for line in lines))
    equal("rate", True, "frequency: 1000" in lines[0])


def test_stacks_perfetto_files_have_their_build_ids(case):
    lines = packets(decoded(case.export("hard stacks", "hard.pftrace")))
    ids = [value for line in lines for value in re.findall(r'build_ids \{ iid: \d+ str: "(.*?)" \}', line)]
    equal("build ids", [r"\001#\253\315", r"\001#\253\316"], ids)
    mappings = [line for line in lines if " mappings {" in line and "build_id" in line]
    equal("files with one", 2, len(mappings))


SQL = """
    WITH RECURSIVE chain(leaf, id, depth) AS (
      SELECT id, id, 0 FROM stack_profile_callsite
      UNION ALL SELECT chain.leaf, c.parent_id, chain.depth + 1
      FROM chain JOIN stack_profile_callsite c ON c.id = chain.id WHERE c.parent_id IS NOT NULL)
    SELECT count(*) AS n, t.tid AS tid, (SELECT group_concat(name, ' < ') FROM
       (SELECT f.name AS name FROM chain JOIN stack_profile_callsite c ON c.id = chain.id
        JOIN stack_profile_frame f ON f.id = c.frame_id WHERE chain.leaf = p.callsite_id ORDER BY chain.depth)) AS stack
    FROM perf_sample p JOIN thread t USING (utid) WHERE p.callsite_id IS NOT NULL GROUP BY 2, 3 ORDER BY 1 DESC, 2, 3;"""

BAD = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0 AND name NOT LIKE 'trace_sorter%';"


def query(case, path, sql):
    """What Perfetto's trace_processor answers."""
    shell = shutil.which("trace_processor_shell")
    if not shell:
        raise Skip("no trace_processor_shell")
    with open(case.path("query.sql"), "w") as file:
        file.write(sql)
    result = subprocess.run([shell, path, "-q", case.path("query.sql")], capture_output=True, text=True)
    equal(f"status ({result.stderr[-400:]})", 0, result.returncode)
    return list(csv.reader(io.StringIO(result.stdout)))[1:]


def test_stacks_are_read_by_trace_processor(case):
    path = case.export("stacks", "stacks.pftrace")
    equal("samples", [["2", "5151", FORWARD],
                      ["1", "5151", "nvidia_ioctl < __x64_sys_ioctl < [libcuda.so.1] < cudaLaunchKernel < "
                                    "at::addmm(at::Tensor const&, at::Tensor const&) < " + FORWARD],
                      ["1", "5151", r"triton_\x1b[31mfused < Net.forward"], ["1", "5152", "worker"]], query(case, path, SQL))
    equal("what it complains of", [], query(case, path, BAD))
    equal("blocked", [["0"], ["3250125"]], query(case, path, "SELECT dur FROM slice WHERE name = 'blocked' ORDER BY dur;"))
    equal("frames of Python", [["Net.forward", "/app/\xe4 1.py", "12", "python"], ["train", "/app/train.py", "88", "python"]],
          query(case, path, """SELECT f.name, replace(m.name, '"', '') AS file, s.line_number, f.type FROM stack_profile_frame f
            JOIN stack_profile_mapping m ON m.id = f.mapping JOIN stack_profile_symbol s USING (symbol_set_id)
            WHERE f.type = 'python' ORDER BY 1;"""))
    equal("slices with a stack", [["blocked", "futex_wait"], ["cudaLaunchKernel", "cudaLaunchKernel"],
                                  ["cudaLaunchKernel", "cudaLaunchKernel"]],
          query(case, path, """SELECT s.name, f.name AS leaf FROM __intrinsic_track_event_callstacks t JOIN slice s ON s.id = t.slice_id
            JOIN stack_profile_callsite c ON c.id = t.callsite_id JOIN stack_profile_frame f ON f.id = c.frame_id ORDER BY 1;"""))
    path = case.export("hard stacks", "hard.pftrace")
    equal("what it complains of", [], query(case, path, BAD))
    equal("build ids", [["0123abcd"], ["0123abce"]],
          query(case, path, "SELECT build_id FROM stack_profile_mapping WHERE build_id != '' ORDER BY 1;"))
    equal("the deepest", [["511"]], query(case, path, "SELECT max(depth) AS depth FROM stack_profile_callsite;"))
    equal("samples with a stack", [["5007"]],
          query(case, path, "SELECT count(*) FROM perf_sample WHERE callsite_id IS NOT NULL;"))
