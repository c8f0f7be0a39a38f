# SPDX-License-Identifier: MIT
"""Small traces that stand for a great deal: every output of them has a bound."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import time

from case import Failure, equal
from page_file import Page

BOMBS = ("launches", "samples", "stacks", "ranges")
SIZES = {"processes": 1_000_000, "trees": 1_000_000, "definitions": 1_000_000, "domains": 1_000_000,
         "functions": 1_000_000, "misses": 1_000_000, "texts": 1_000_000, "kernels": 4_000_000, "exits": 3_000_000}
FORMATS = ("jsonl", "csv", "log", "sqlite", "pftrace", "json", "svg", "txt", "html")
PROFILES = ("folded", "svg", "html", "pb.gz", "speedscope.json")
REPORTS = ("overview", "summary", "cuda_api_trace", "cuda_gpu_trace", "cuda_kern_exec_trace", "cuda_gpu_kern_sum",
           "nvtx_pushpop_trace", "nvtx_sum", "launches", "findings", "gaps")
LEAST, TIMES = 64 << 20, 1000
NEVER = 512 << 20  # a file that becomes so large fails here, and fills no disk
SENTENCE = "--max-size SIZE allows more"


def bomb(case, kind):
    path = case.path(kind + ".cuscope")
    if not os.path.exists(path):
        subprocess.run([os.path.join(case.build, "tests", "export", "bombs"), kind, path], check=True)
        if os.path.getsize(path) > SIZES.get(kind, 100_000):
            raise Failure(f"{kind} is not small: {os.path.getsize(path)} bytes")
    return path


def limited(case, *command, cpu_s=60, memory=resource.RLIM_INFINITY):
    """cuscope, which must not write a file of NEVER bytes, nor take that much of a processor, nor of memory."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (NEVER, NEVER))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))

    return subprocess.run([os.path.join(case.build, "cuscope"), *command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, preexec_fn=limit)


def bounded(what, result, size, most):
    """It ended well and is small, or it says that there would be more."""
    error = result.stderr.decode()
    if result.returncode not in (0, 1) or (result.returncode and SENTENCE not in error):
        raise Failure(f"{what} ended with {result.returncode}: {error}")
    if size > most:
        raise Failure(f"{what} has {size} bytes, more than {most}")
    return result.returncode


def written(case, name, result, most):
    """bounded() of a file; a program that was ended has written none."""
    path = case.path(name)
    return bounded(name, result, os.path.getsize(path) if os.path.exists(path) else 0, most)


def export(case, kind, ending, *options):
    """Its status, and the file."""
    out = case.path(f"{kind}.{ending}")
    result = limited(case, "export", bomb(case, kind), "-o", out, "--force", *options)
    if options:
        most = 4 << 20
    else:
        most = LEAST + TIMES * os.path.getsize(bomb(case, kind))
    # what an end takes: indices, the tables that events refer to
    return written(case, f"{kind}.{ending}", result, most * 3 // 2 + (1 << 20)), out


def test_no_export_is_larger_than_its_bound(case):
    for kind in BOMBS:
        for ending in FORMATS:
            os.unlink(export(case, kind, ending)[1])


def test_an_export_that_reached_its_bound_is_whole_and_says_so(case):
    says = "of the rest of the trace nothing is here"
    for ending in FORMATS:
        # rows that are alike take a few bits in a page
        status, out = export(case, "launches", ending, "--max-size", "128K" if ending == "html" else "4M")
        if ending == "svg":
            continue
        equal(f"status of {ending}", 1, status)
        if ending == "html":
            equal("in the page", True, any(says in text for text in Page(out).index["missed"]))
            continue
        if ending == "sqlite":
            rows = sqlite3.connect(out).execute("SELECT text FROM DIAGNOSTIC_EVENT").fetchall()
            equal("in the database", True, any(says in text for text, in rows))
            continue
        with open(out, "rb") as file:
            end = file.read()[-4096:]
        wanted = b"--max-size was reached" if ending == "pftrace" else says.encode()
        if ending == "jsonl":
            wanted = b'"complete":false,"output_full":true'
        equal(f"the end of {ending} says so", True, wanted in end or ending == "json")
        if ending == "json":
            with open(out) as file:
                equal("json says so", True, says in json.load(file)["cuscope"]["incomplete"])


def test_long_texts_make_no_block_of_each_row_of_a_page(case):
    """A block ends where its texts take 4 MiB; what they took is not in the next ones."""
    status, out = export(case, "texts", "html")
    equal("status", 0, status)
    page = Page(out)
    blocks = sum(len(track["blocks"]) for track in page.index["tracks"])
    if blocks > 100:
        raise Failure(f"200,000 rows are in {blocks} blocks")


def test_a_long_name_is_told_once(case):
    _, out = export(case, "launches", "jsonl", "--max-size", "4M")
    with open(out) as file:
        lines = [json.loads(line) for line in file]
    names = [line for line in lines if line["type"] == "kernel_name"]
    equal("lines with the name", 1, len(names))
    equal("its length", 8192, len(names[0]["name"]))
    for line in lines:
        if line["type"] in ("kernel", "gpu"):
            equal("the kernel of a line", names[0]["kernel"], line["kernel"])
    if len(names[0]["kernel"]) > 1100 or not names[0]["name"].startswith(names[0]["kernel"][:1000]):
        raise Failure(f"it is shown as {names[0]['kernel']}")


def test_any_size_can_be_asked_for(case):
    status, out = export(case, "samples", "csv", "--max-size", "1M")
    equal("status with a bound", 1, status)
    result = limited(case, "export", bomb(case, "samples"), "-o", out, "--force", "--max-size", "0")
    equal("status without", 0, result.returncode)
    with open(out) as file:
        equal("rows", 300_001, sum(1 for _ in file))


def test_samples_refer_to_the_frames_of_their_stack(case):
    """SAMPLING_CALLCHAINS of 300,000 samples with 1,024 frames each, in a database that has each once."""
    status, out = export(case, "samples", "sqlite")
    equal("status", 0, status)
    database = sqlite3.connect(out)
    equal("frames of the last sample", 1024,
          database.execute("SELECT count(*) FROM SAMPLING_CALLCHAINS WHERE id = 300000").fetchone()[0])
    equal("how it is made", "view",
          database.execute("SELECT type FROM sqlite_master WHERE name = 'SAMPLING_CALLCHAINS'").fetchone()[0])


def test_no_profile_is_larger_than_its_bound(case):
    for kind in ("samples", "stacks"):
        for ending in PROFILES:
            out = case.path("profile." + ending)
            result = limited(case, "profile", bomb(case, kind), "-o", out, "--force", "--max-size", "4M",
                             cpu_s=4)
            bounded(f"{kind}, profile.{ending}", result, os.path.getsize(out), 5 << 20)


def test_no_report_is_larger_than_its_bound(case):
    for kind in ("launches", "ranges"):
        for name in REPORTS:
            for form in ("table", "json"):
                result = limited(case, "report", bomb(case, kind), name, "--format", form, "--max-size", "4M")
                bounded(f"{kind}, report {name}", result, len(result.stdout), 5 << 20)
        result = limited(case, "report", bomb(case, kind), "cuda_api_trace", "--sort", "Duration", "--format", "json",
                         "--max-size", "4M")
        bounded(f"{kind}, rows that are sorted", result, len(result.stdout), 5 << 20)
        if b"--top" in result.stderr:
            raise Failure(f"{kind}: rows that had no room are said to be left out by --top")
        for command in ("info", "timeline"):
            result = limited(case, command, bomb(case, kind))
            bounded(f"{kind}, {command}", result, len(result.stdout), 5 << 20)


def test_a_file_is_not_read_beyond_what_one_of_its_size_may_hold(case):
    """30 million events in 65 KiB: a reader has its bound, and says what is left out."""
    path = bomb(case, "dense")
    for command in ("info", "report", "profile"):
        result = limited(case, command, path, cpu_s=20)
        equal(f"status of {command}", 1, result.returncode)
        if "unpacks to more than is read of a file of its size" not in result.stderr.decode():
            raise Failure(f"{command} says {result.stderr.decode()}")
    result = limited(case, "info", path)
    if b"17738140 in damaged parts" not in result.stdout:
        raise Failure(f"info does not count what is left out: {result.stdout.decode()}")


def test_definitions_are_not_read_beyond_what_a_file_may_hold(case):
    """1.2 billion begins of a thread in 1 MiB: they are definitions, whatever is read of them."""
    path = bomb(case, "definitions")
    for command in ("info", "report", "profile"):
        result = limited(case, command, path, cpu_s=8)
        equal(f"status of {command}", 1, result.returncode)
        if "unpacks to more than is read of a file of its size" not in result.stderr.decode():
            raise Failure(f"{command} says {result.stderr.decode()}")


def sparse(case, name, data):
    """A file of a TiB, of which nothing is there but `data` and its last byte."""
    path = case.path(name)
    with open(path, "wb") as file:
        file.write(data)
        file.seek(1 << 40)
        file.write(b"x")
    return path


def test_holes_of_a_file_are_not_its_size(case):
    with open(bomb(case, "launches"), "rb") as file:
        data = file.read()
    path = sparse(case, "sparse.cuscope", data[:-1])
    for name in ("sparse.csv", "sparse.jsonl"):
        result = limited(case, "export", path, "-o", case.path(name), "--force", cpu_s=8)
        if SENTENCE not in result.stderr.decode():
            raise Failure(f"{name} is not bounded: {result.stderr.decode()}")
        written(case, name, result, (LEAST + TIMES * 16384) * 3 // 2)


def test_holes_of_a_file_are_not_searched(case):
    with open(bomb(case, "ranges"), "rb") as file:
        data = file.read()
    result = limited(case, "info", sparse(case, "search.cuscope", data[:len(data) // 2]), cpu_s=2)
    equal("status", 1, result.returncode)
    if "is damaged at byte" not in result.stderr.decode():
        raise Failure(result.stderr.decode())


def test_the_time_of_a_report_grows_as_its_file(case):
    """With 40,000 processes of one kernel, and as many ranges within each other, and not with their square."""
    for kind, names in (("processes", ("launches",)),
                        ("within", ("nvtx_kern_sum", "nvtx_gpu_proj_sum", "nvtx_gpu_proj_trace"))):
        for name in names:
            result = limited(case, "report", bomb(case, kind), name, "--top", "5", cpu_s=6)
            if result.returncode:
                raise Failure(f"{name} of {kind} ended with {result.returncode}: {result.stderr.decode()}")
            if kind == "within" and b"ranges of which not all work counts" not in result.stdout:
                raise Failure(f"{name} does not say what it left out")
    result = limited(case, "export", bomb(case, "devices"), "-o", case.path("devices.json"), "--force", cpu_s=6)
    written(case, "devices.json", result, LEAST * 2)


def test_the_account_reads_a_name_once(case):
    """A thousand stacks of the same functions with names of kilobytes: each was read for each stack, in 38 s."""
    result = limited(case, "report", bomb(case, "stacks"), "why", cpu_s=8)
    equal("status", 0, result.returncode)


def test_the_memory_of_a_report_does_not_grow_with_domains(case):
    """300,000 of them, of which each had a ring of its own."""
    for name in ("nvtx_kern_sum", "nvtx_gpu_proj_sum", "nvtx_gpu_proj_trace"):
        result = limited(case, "report", bomb(case, "domains"), name, "--top", "5", memory=768 << 20)
        equal(f"status of {name} ({result.stderr.decode()})", 0, result.returncode)
        if b"ranges of which not all work counts" not in result.stdout:
            raise Failure(f"{name} does not say what it left out")


def test_the_memory_of_a_report_by_kernel_is_that_of_its_rows(case):
    """Each row had the percentiles' sketches in it, four times, while it had one value."""
    for name in ("cuda_kern_exec_sum", "cuda_gpu_kern_sum", "launch_stats"):
        result = limited(case, "report", bomb(case, "kernels"), name, "--top", "5", memory=640 << 20)
        equal(f"status of {name} ({result.stderr.decode()})", 0, result.returncode)


def test_the_memory_of_the_slowest_calls_is_not_that_of_all_their_texts(case):
    """500,000 were kept as texts of 8 KiB each, 4 GB, before the first row was written."""
    result = limited(case, "report", bomb(case, "launches"), "slowest", "--top", "1000000", memory=256 << 20)
    equal(f"status ({result.stderr.decode()})", 0, result.returncode)
    if b"at most 10000 calls are kept" not in result.stdout:
        raise Failure(f"it does not say what it left out: {result.stdout.decode()[-500:]}")


def test_what_functions_take_is_that_of_their_calls(case):
    """Each had the buckets of its durations, a thousand bytes for two calls; and places were searched for."""
    path = bomb(case, "functions")
    result = limited(case, "report", path, "summary", "--top", "1000000", memory=256 << 20, cpu_s=4)
    equal(f"status of the summary ({result.stderr.decode()})", 0, result.returncode)
    result = limited(case, "diff", path, path, memory=512 << 20, cpu_s=10)
    equal(f"status of diff ({result.stderr.decode()})", 0, result.returncode)


def test_misses_are_not_gone_through_for_each_function(case):
    """65,536 of them beside 120,000 functions: each table of a summary took a minute."""
    result = limited(case, "report", bomb(case, "misses"), "summary", "--format", "json", cpu_s=6)
    equal(f"status of the summary ({result.stderr.decode()})", 0, result.returncode)
    rows = json.loads(result.stdout)["functions"]
    equal("rows", 120_000, len(rows))
    equal("those that were counted, too", 60_000, sum(row.get("counted") == 1 for row in rows))


def test_numbers_that_were_chosen_to_meet_take_no_longer(case):
    """Of calls and their work, and of frames: what their tables are looked up by is not for a file to reckon."""
    for kind, ending in (("numbers", "pftrace"), ("early", "pftrace"), ("orphans", "pftrace"), ("trees", "json")):
        name = f"{kind}.{ending}"
        result = limited(case, "export", bomb(case, kind), "-o", case.path(name), "--force", cpu_s=4)
        written(case, name, result, LEAST * 2)
        if kind == "trees":
            continue
        result = limited(case, "report", bomb(case, kind), "summary", cpu_s=4)
        equal(f"status of {kind}", 0, result.returncode)


def test_the_end_of_a_process_goes_through_its_own_threads_alone(case):
    for name in ("cuda_api_trace", "overview"):
        result = limited(case, "report", bomb(case, "exits"), name, "--top", "5", cpu_s=6)
        equal(f"status of {name}: {result.stderr[-300:]}", 0, result.returncode)
    for ending in ("pftrace", "json"):
        result = limited(case, "export", bomb(case, "exits"), "-o", case.path(f"exits.{ending}"), "--force", cpu_s=6)
        equal(f"status of {ending}: {result.stderr[-300:]}", 0, result.returncode)


def test_a_long_name_of_ranges_is_not_read_whole_for_each(case):
    for name in ("overview", "nvtx_sum"):
        result = limited(case, "report", bomb(case, "long_ranges"), name, cpu_s=6)
        equal(f"status of {name}: {result.stderr[-300:]}", 0, result.returncode)


def test_an_export_ends_within_a_chunk_when_it_is_asked_to(case):
    """Three million events are two chunks."""
    process = subprocess.Popen([os.path.join(case.build, "cuscope"), "export", bomb(case, "long_ranges"), "-o", case.path("stopped.html"), "--force"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    process.communicate(timeout=60)
    took = time.monotonic() - begin
    if took > 2:
        raise Failure(f"it took {took:.1f} s to end")
