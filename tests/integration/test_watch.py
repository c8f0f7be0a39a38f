# SPDX-License-Identifier: MIT
"""The watch tools: what the kernel summed up is what the program did, with each mechanism."""

import collections
import json
import os
import re
import signal
import subprocess
import time

import checks
from harness import Counts, Failure, Places, wait_until

TOOLS = {"memleak": "memory", "launches": "launches", "bandwidth": "bandwidth"}
ALL = ",".join(TOOLS)


class Pages:
    """The pages that a tool wrote as JSON, and what the program counted."""

    def __init__(self, case, process, path, counts, status=0):
        self.status, self.err = process.wait(), process.err()
        if status is not None and self.status != status:
            raise Failure(f"exit status {self.status}, not {status}: {self.err[-600:]}")
        with open(path) as lines:
            self.pages = [json.loads(line) for line in lines]
        self.counts = Counts(counts)
        self.last = self.pages[-1]
        checks.equal("the last page says that it is", True, self.last["last"])
        checks.equal("pages", list(range(1, len(self.pages) + 1)), [p["page"] for p in self.pages])


def start(case, tools, target, options=(), name="pages"):
    command = [tools] if tools in TOOLS else ["watch", tools]
    return case.cuscope(*command, "--format", "json", "-o", case.path(name), *case.options,
                        *options, *target)


def watch(case, tools, program, *arguments, options=(), name="pages", status=0):
    process = start(case, tools, ["--", Places.program(program), *arguments], options, name)
    return Pages(case, process, case.path(name), case.path("counts"), status)


def nothing_missed(pages):
    missed = pages.last["missed"]
    if not missed["complete"] or missed["hooks"] or missed["no_room"]:
        raise Failure(f"missed: {missed}")


def sums(rows, column):
    """{kind: (count, bytes)} over all processes, but for address space."""
    kinds = {}
    for row in rows:
        count, size = kinds.get(row["kind"], (0, 0))
        if row[column]["count"] and row["kind"] != "vmm-va":
            kinds[row["kind"]] = count + row[column]["count"], size + row[column]["bytes"]
    return kinds


def memory(pages):
    """Allocated, freed and what was left, by kind; every byte is in one column."""
    rows = pages.last["memory"]["kinds"]
    for column, section in (("allocated", "allocs"), ("freed", "frees")):
        checks.equal(column, checks.by_kind(pages.counts.of(section)), sums(rows, column))
    left = collections.Counter()
    for row in rows:
        gone = {unit: sum(row[column][unit] for column in
                          ("freed", "replaced", "released_with_context", "released_by_exit",
                           "untracked", "live")) for unit in ("count", "bytes")}
        checks.equal(f"columns of {row['kind']}", row["allocated"], gone)
        checks.equal("nothing replaced or untracked", 0,
                     row["replaced"]["count"] + row["untracked"]["count"])
        for unit in ("count", "bytes") if row["kind"] != "vmm-va" else ():
            left[unit] += row["live"][unit] + row["released_by_exit"][unit] + \
                row["released_with_context"][unit]
    live = pages.counts.of("live")
    checks.equal("left", {u: live[u] for u in ("count", "bytes")}, {u: left[u] for u in ("count", "bytes")})
    checks.equal("frees of unknown addresses", 0,
                 sum(p["unknown_frees"] for p in pages.last["memory"]["processes"]))


def launches(pages):
    """Each kernel, grid and block."""
    def counted(section):
        keys = collections.Counter()
        for key, n in pages.counts.of(section).items():
            keys[" ".join(key.rsplit(" ", 3)[0].split(" "))] += n
        return keys

    kernels = [k for k in pages.last["launches"]["kernels"] if "graph" not in k]
    seen = collections.Counter()
    for kernel in kernels:
        for shape in kernel["shapes"]:
            dims = [",".join(map(str, shape[part])) for part in ("grid", "block")]
            seen[f"{kernel['kernel']} {' '.join(dims)}"] += shape["launches"]
        checks.equal("launches by threads", kernel["launches"],
                     sum(bar["count"] for bar in kernel["launches_by_threads"]))
    checks.differences("launches", counted("launches"), +seen)
    by_name = collections.Counter()
    for key, n in pages.counts.of("captured_launches").items():
        by_name[key.rsplit(" ", 5)[0]] += n
    captured = collections.Counter()
    for kernel in kernels:
        captured[kernel["kernel"]] += kernel["captured"]
    checks.differences("captured launches", by_name, +captured)
    checks.equal("launches in all", sum(counted("launches").values()),
                 pages.last["launches"]["kernel_launches"])
    checks.equal("graph launches", pages.counts.of("graph_launches")["count"],
                 pages.last["launches"]["graph_launches"])
    checks.equal("unresolved", [], [k["kernel"] for k in kernels if not k["resolved"]])


def copies(pages):
    """Calls and bytes by direction and way, and the histogram of sizes."""
    wanted, sizes = collections.Counter(), collections.Counter()
    for key, n in pages.counts.of("copies").items():
        direction, size, way = key.split()
        wanted[f"{direction} {way} calls"] += n
        wanted[f"{direction} {way} bytes"] += n * int(size)
        sizes[1 << (int(size).bit_length() - 1)] += n
    for key, n in pages.counts.of("sets").items():
        wanted["set calls"] += n
        wanted["set bytes"] += n * int(key)
        sizes[1 << (int(key).bit_length() - 1)] += n
    seen, histogram, captured = collections.Counter(), collections.Counter(), 0
    for row in pages.last["bandwidth"]["rows"]:
        way = "set" if row["direction"] == "set" else \
            f"{row['direction']} {'async' if row['async'] else 'sync'}"
        seen[f"{way} calls"] += row["calls"]
        seen[f"{way} bytes"] += row["bytes"]
        captured += row["captured"]
        for bar in row["calls_by_bytes"]:
            histogram[bar["from"]] += bar["count"]
        checks.equal("calls of unknown size", 0, row["unknown_size"])
    checks.differences("copies", wanted, +seen)
    checks.differences("sizes", sizes, histogram)
    checks.equal("captured", sum(pages.counts.of("captured_copies").values()) +
                 sum(pages.counts.of("captured_sets").values()), captured)


def everything(pages):
    nothing_missed(pages)
    memory(pages)
    launches(pages)
    copies(pages)


# ---- what is counted ---------------------------------------------------------------------------


def test_watch_memory_of_all_kinds(case):
    pages = watch(case, "memleak", "memory")
    nothing_missed(pages)
    memory(pages)
    ranges = [k for k in pages.last["memory"]["kinds"] if k["kind"] == "vmm-va"]
    checks.equal("address ranges", [{"count": 2, "bytes": 4 << 20}], [k["allocated"] for k in ranges])
    places = [place["kind"] for place in pages.last["memory"]["places"]]
    checks.equal("places with address ranges, which are no memory", 0, places.count("vmm-va"))


def test_watch_launches_by_kernel_and_shape(case):
    pages = watch(case, "launches", "threads", "8", "25")
    nothing_missed(pages)
    launches(pages)
    for kernel in pages.last["launches"]["kernels"]:
        checks.equal("timed calls", kernel["launches"], sum(b["count"] for b in kernel["calls_by_ns"]))


def test_watch_copies_by_direction_and_way(case):
    pages = watch(case, "bandwidth", "copies")
    nothing_missed(pages)
    copies(pages)
    for row in pages.last["bandwidth"]["rows"]:
        checks.equal("host memory", "pinned" if row["direction"] in ("H2D", "D2H") else None, row.get("host"))


def test_watch_pageable_memory_is_not_called_pinned(case):
    pages = watch(case, "bandwidth", "threads", "2", "5")
    copies(pages)
    checks.equal("host memory", {"unknown"}, {r.get("host") for r in pages.last["bandwidth"]["rows"]})


def test_watch_captured_work_is_not_counted_as_run(case):
    everything(watch(case, ALL, "capture"))


def test_watch_runtimes(case):
    for program in ("runtime12", "runtime13", "static", "static-stripped"):
        case.env["SAMPLE_COUNTS"] = case.path(program + ".counts")
        process = start(case, ALL, ["--", Places.program(program)], name=program)
        everything(Pages(case, process, case.path(program), case.path(program + ".counts")))


def test_watch_libraries_opened_late(case):
    everything(watch(case, ALL, "dlopen", "libcuda.so.1", "libcudart.so.13"))


def test_watch_together_is_as_each_alone(case):
    """But for times, and for what one run of a program has other than the next."""
    def essence(page, part):
        if part == "memory":
            return sorted((k["kind"], *[k[c][u] for c in ("allocated", "freed", "released_by_exit")
                                        for u in ("count", "bytes")]) for k in page[part]["kinds"])
        if part == "launches":
            return sorted((k["kernel"], k["launches"], k["captured"], k["failed"],
                           json.dumps(k["launches_by_threads"])) for k in page[part]["kernels"])
        return sorted((r["direction"], r["async"], r.get("host", ""), r["calls"], r["bytes"],
                       json.dumps(r["calls_by_bytes"])) for r in page[part]["rows"])

    together = watch(case, ALL, "threads", "4", "10").last
    for tool, part in TOOLS.items():
        alone_page = watch(case, tool, "threads", "4", "10", name=tool).last
        checks.equal(f"parts of a page of {tool}", {part}, set(TOOLS.values()) & set(alone_page))
        checks.equal(tool, essence(alone_page, part), essence(together, part))


def test_watch_handles_that_mean_another_kernel_later(case):
    for interval in ("20ms", "5s"):
        case.env["SAMPLE_COUNTS"] = case.path(interval + ".counts")
        process = start(case, "launches", ["--", Places.program("reload"), "1000"], ["--interval", interval],
                        interval)
        pages = Pages(case, process, case.path(interval), case.path(interval + ".counts"))
        nothing_missed(pages)
        launches(pages)


def test_watch_kernels_that_are_loaded_anew_without_end(case):
    """20,000 rows, of which a process may have 12,288 at a time: those of what was unloaded are given back."""
    pages = watch(case, "launches", "reload", "10000", options=["--interval", "20ms"])
    nothing_missed(pages)
    kernels = pages.last["launches"]["kernels"]
    # a shape that comes before a page has made room is counted without its grid
    made = sum(pages.counts.of("launches").values())
    checks.equal("launches", made, sum(shape["launches"] for kernel in kernels for shape in kernel["shapes"]))
    checks.equal("launches in all", made, pages.last["launches"]["kernel_launches"])
    checks.equal("unresolved", [], [kernel["kernel"] for kernel in kernels if not kernel["resolved"]])


# ---- memory ------------------------------------------------------------------------------------


def test_watch_live_memory_by_place(case):
    pages = watch(case, "memleak", "live", "stay", "900", options=["--interval", "150ms", "--older", "0s"])
    memory(pages)
    seen = [page for page in pages.pages[:-1] if len(page["memory"]["places"]) == 2]
    if not seen:
        raise Failure(f"no page has both places: {[p['memory']['places'] for p in pages.pages]}")
    host, device = sorted(seen[-1]["memory"]["places"], key=lambda p: p["kind"], reverse=True)
    checks.equal("host", ("host", "cuMemAllocHost_v2", 3, 6000),
                 (host["kind"], host["function"], host["count"], host["bytes"]))
    checks.equal("device", ("device", "cuMemAlloc_v2", 5, 5000),
                 (device["kind"], device["function"], device["count"], device["bytes"]))
    if not host["stack"] or not device["stack"] or host["stack"] == device["stack"]:
        raise Failure(f"stacks: {host['stack']}, {device['stack']}")
    checks.equal("peak", 12000, seen[-1]["memory"]["processes"][0]["peak_bytes"])
    checks.equal("without a stack", 0, seen[-1]["memory"]["without_stack"])


def test_watch_only_older_memory(case):
    pages = watch(case, "memleak", "live", "stay", "1500", options=["--interval", "200ms", "--older", "1s"])
    place = [next((p for p in page["memory"]["places"] if p["kind"] == "host"), None)
             for page in pages.pages[:-1]]
    older = [p["older_count"] for p in place if p]
    checks.equal("first and last", (0, 3), (older[0], older[-1]))
    if any(p["older_count"] != (3 if p["oldest_ns"] >= 1e9 + 1e7 else 0) for p in place
           if p and not 1e9 - 1e7 < p["oldest_ns"] < 1e9 + 1e7):
        raise Failure(f"older: {place}")


def test_watch_a_process_that_dies_with_live_memory(case):
    pages = watch(case, "memleak", "live", "die", status=128 + signal.SIGKILL)
    memory(pages)
    kinds = {k["kind"]: k["released_by_exit"]["count"] for k in pages.last["memory"]["kinds"]}
    checks.equal("released by exit", {"device": 5, "host": 3}, kinds)


def test_watch_memory_that_goes_with_its_context(case):
    pages = watch(case, "memleak", "live", "reset", "600", options=["--interval", "200ms"])
    memory(pages)
    kinds = {k["kind"]: (k["released_with_context"]["count"], k["released_by_exit"]["count"])
             for k in pages.last["memory"]["kinds"]}
    checks.equal("with the context, and at the exit", {"device": (5, 1), "host": (3, 0)}, kinds)
    checks.equal("live while it ran", {"count": 1, "bytes": 7000},
                 pages.pages[-2]["memory"]["processes"][0]["live"])


def test_watch_addresses_that_are_given_out_again(case):
    pages = watch(case, "memleak", "live", "replace")
    nothing_missed(pages)
    memory(pages)


def test_watch_failed_allocations(case):
    pages = watch(case, "memleak", "errors")
    seen = {(f["function"], f["error"]): f["count"] for f in pages.last["memory"]["failures"]}
    wanted = {}
    for key, n in pages.counts.of("errors").items():
        function, _, error = key.split()
        if re.match(r"cu(da)?(Mem|M)allo?c|cuMemAlloc|cudaMalloc|cudaHostAlloc", function):
            wanted[function, error] = n
    checks.equal("failures", wanted, seen)


def test_watch_what_was_allocated_before(case):
    """A free of it is counted, and is no error."""
    program = case.program("live", "stay", "5000")
    time.sleep(0.4)
    pages = Pages(case, start(case, "memleak", ["-p", str(program.pid)]), case.path("pages"), case.path("counts"))
    checks.equal("status of the program", 0, program.wait())
    checks.equal("kinds", [], pages.last["memory"]["kinds"])


# ---- processes, and when a watch ends ----------------------------------------------------------


def test_watch_forked_and_executed_processes(case):
    for program, arguments in (("fork", ["before"]), ("exec", ["2"]), ("exec", ["1", "thread"])):
        name = "-".join([program, *arguments])
        case.env["SAMPLE_COUNTS"] = case.path(name + ".counts")
        process = start(case, ALL, ["--", Places.program(program), *arguments], name=name)
        pages = Pages(case, process, case.path(name), case.path(name + ".counts"))
        everything(pages)
        checks.equal("pids", pages.counts.pids(), {k["pid"] for k in pages.last["memory"]["kinds"]})


def test_watch_a_running_process_page_by_page(case):
    program = case.program("loop", "20", "200", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    pages = Pages(case, start(case, ALL, ["-p", str(program.pid)],
                              ["--interval", "250ms", "--duration", "1.2s"]),
                  case.path("pages"), case.path("counts"))
    program.stop()
    if not 4 <= len(pages.pages) <= 6:
        raise Failure(f"{len(pages.pages)} pages")
    counts = [page["launches"]["kernel_launches"] for page in pages.pages]
    checks.equal("counts that grow", sorted(counts), counts)
    for before, page in zip(pages.pages, pages.pages[1:]):
        rate = (page["launches"]["kernel_launches"] - before["launches"]["kernel_launches"]) / page["interval_s"]
        if abs(rate - page["launches"]["per_second"]) > 0.05 * rate + 1:
            raise Failure(f"{page['launches']['per_second']} a second, not {rate}")
    checks.equal("name", {"tick()"}, {k["kernel"] for k in pages.last["launches"]["kernels"]})
    checks.equal("unknown frees", True, pages.last["memory"]["processes"][0]["unknown_frees"] <= 1)


def test_watch_once(case):
    program = case.program("loop", "20", stdin=subprocess.PIPE)
    begin = time.monotonic()
    pages = Pages(case, start(case, "launches", ["-p", str(program.pid)], ["--once", "--interval", "300ms"]),
                  case.path("pages"), case.path("counts"))
    program.stop()
    checks.equal("pages", 1, len(pages.pages))
    if time.monotonic() - begin > 5:
        raise Failure("it did not end after the page")


def test_watch_status_is_the_command_s(case):
    process = case.cuscope("launches", "--", "sh", "-c", "exit 7")
    checks.equal("status", 7, process.wait())


def test_watch_ends_at_a_signal_with_a_page(case):
    program = case.program("loop", "20", stdin=subprocess.PIPE)
    wait_until(lambda: program.out(), "the program")
    process = start(case, "launches", ["-p", str(program.pid)], ["--interval", "100ms"])
    wait_until(lambda: os.path.exists(case.path("pages")) and os.path.getsize(case.path("pages")),
               "the first page")
    process.signal(signal.SIGINT)
    pages = Pages(case, process, case.path("pages"), case.path("counts"))
    program.stop()
    if not pages.last["launches"]["kernel_launches"]:
        raise Failure("no launches")


# ---- mechanisms --------------------------------------------------------------------------------


def with_mechanism(case, without):
    options = ["--without", without]
    everything(watch(case, ALL, "threads", "4", "20", options=options))
    case.env["SAMPLE_COUNTS"] = case.path("memory.counts")
    process = start(case, "memleak", ["--", Places.program("memory")], options, "memory")
    memory(Pages(case, process, case.path("memory"), case.path("memory.counts")))


def test_watch_without_session(case):
    with_mechanism(case, "session")


def test_watch_without_session_and_multi(case):
    with_mechanism(case, "session,multi")


def test_watch_without_session_multi_and_cookie(case):
    with_mechanism(case, "session,multi,cookie")


def test_watch_no_returns(case):
    pages = watch(case, "launches,bandwidth", "threads", "4", "20", options=["--no-returns"])
    nothing_missed(pages)
    launches(pages)
    copies(pages)
    checks.equal("times", set(), {"call_ns"} & set(pages.last["launches"]["kernels"][0]))


# ---- input and output --------------------------------------------------------------------------


def test_watch_bad_input(case):
    for arguments, words in ((["launches", "--interval", "5x", "--", "true"], "'5x' is no duration"),
                             (["memleak", "--older", "old", "--", "true"], "'old' is no duration"),
                             (["launches", "--top", "0", "--", "true"], "'0' is no number"),
                             (["bandwidth", "--format", "xml", "--", "true"], "'xml' is no format"),
                             (["launches", "--older", "1s", "--", "true"], "no option '--older'"),
                             (["memleak", "--no-returns", "--", "true"], "no option '--no-returns'"),
                             (["watch", "memleak,lunches", "--", "true"], "did you mean 'launches'"),
                             (["watch", "--format", "json", "lunches"], "did you mean 'launches'"),
                             (["watch", "--formt", "json", "launches"], "did you mean '--format'"),
                             (["watch", "--format", "json", "--", "true"], "which tools"),
                             (["watch", "--older", "1s", "launches", "--", "true"], "no option '--older'"),
                             (["watch"], "which tools"),
                             (["watch", "memleak,launches", "--no-returns", "--", "true"], "memleak needs"),
                             (["launches"], "what is to be traced")):
        process = case.cuscope(*arguments)
        checks.equal(f"status of {arguments}", 2, process.wait())
        checks.contains(f"{arguments}", words, process.err())


def test_watch_list_may_stand_behind_options(case):
    """As the usage line has it."""
    process = case.cuscope("watch", "--format", "json", "--top", "3", "memleak,launches", *case.options, "--",
                           Places.program("memory"))
    checks.equal("status", 0, process.wait())
    checks.equal("what it tells of", {"memory", "launches"},
                 {"memory", "launches", "copies"} & set(json.loads(process.out().split("\n")[-2])))


def test_watch_output_that_exists_or_cannot_be_made(case):
    with open(case.path("there"), "w") as file:
        file.write("mine")
    for path, words in ((case.path("there"), "--force"), (case.path("no/such/folder"), "cannot write")):
        process = case.cuscope("launches", "-o", path, "--", "true")
        checks.equal("status", 1, process.wait())
        checks.contains("said", words, process.err())
    with open(case.path("there")) as file:
        checks.equal("untouched", "mine", file.read())


def test_watch_output_that_cannot_be_written(case):
    process = case.cuscope("launches", "--interval", "100ms", "-o", "/dev/full", "--", Places.program("loop"), "5")
    checks.equal("status", True, process.wait() != 0)
    checks.contains("said", "cannot write /dev/full: No space left", process.err())


def test_watch_table_and_classic(case):
    process = case.cuscope("watch", ALL, "--", Places.program("threads"), "2", "3")
    checks.equal("status", 0, process.wait())
    for words in (r"PROCESS +LIVE", r"LAUNCHES .*KERNEL", r"tick\(\)", "H2D +async", "nothing was lost"):
        checks.contains("table", words, process.out())
    checks.contains_not("escapes", "\033", process.out())
    process = case.cuscope("watch", ALL, "--format", "classic", "--", Places.program("threads"), "2", "3")
    checks.equal("status", 0, process.wait())
    wanted = (r"per-process memory maps:\nprocess \d+\n\tNo allocations on GPU\n"
              r"per-process error histograms:\nprocess \d+\n\tNo errors to report\n"
              r"total kernel launches: 12\npid: \d+\n(\t0x[0-9a-f]+ \(_Z\w+\) -> 6\n){2}"
              r"Traced 6 cudaMemcpy calls\n\tD2H \d+\.\d{5} bytes/sec for \d+\.\d{5} secs\n$")
    checks.contains("classic", wanted, process.out())


def test_watch_that_does_not_begin_leaves_no_file(case):
    process = case.cuscope("memleak", "-o", case.path("pages"), "-p", "999999999")
    checks.equal("status", 1, process.wait())
    checks.contains("the reason", "there is no process 999999999", process.err())
    checks.equal("a file", False, os.path.exists(case.path("pages")))
