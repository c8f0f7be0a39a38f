# SPDX-License-Identifier: MIT
"""The watch tools with --in-process: each call is in the sums once, whoever saw it."""

import json
import os
import signal
import subprocess
import time

import checks
import test_watch
from harness import Failure, Places, alone, stress, wait_until
from test_in_process import is_as_in_its_file, is_inside, told_inside
from test_watch import ALL, Pages

SUMS = "launches,bandwidth"


def begin(case, tools, target, options=(), name="pages"):
    return test_watch.start(case, tools, target, ["--in-process", *options], name)


def pages_of(case, process, name="pages", counts="counts", status=0):
    return Pages(case, process, case.path(name), case.path(counts), status)


def shaped(case, shape):
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)


def started(case, tools, program, *arguments, options=(), name="pages", status=0):
    """A command that waits after cuInit until its driver is diverted."""
    case.env["SAMPLE_WAIT"] = case.path(name + ".go")
    case.env["SAMPLE_COUNTS"] = case.path(name + ".counts")
    process = begin(case, tools, ["--", Places.program(program), *arguments], options, name)
    is_inside(process)
    open(case.path(name + ".go"), "w").close()
    return pages_of(case, process, name, name + ".counts", status)


def late_runtime_only(pages):
    """See test_in_process.late_runtime_only."""
    missed = pages.last["missed"]
    hooks = [hook for hook in missed["hooks"]
             if hook["kind"] != "hooked_late" or not hook["lib"].startswith("libcudart")]
    if any(missed["lost"].values()) or missed["no_room"] or hooks:
        raise Failure(f"missed: {missed}")


def sums_are_right(pages, calls=1):
    late_runtime_only(pages)
    test_watch.launches(pages)
    test_watch.copies(pages)
    if told_inside(pages.err)[0] < calls:
        raise Failure(f"too few calls were recorded inside: {pages.err[-300:]}")


# ---- what is counted ---------------------------------------------------------------------------


def test_in_process_watch_counts_what_programs_do(case):
    for shape in ("push", "stub", "endbr"):
        shaped(case, shape)
        for program, *arguments in (("threads", "8", "25"), ("copies",), ("capture", "5"), ("reload", "300")):
            pages = started(case, SUMS, program, *arguments, name=f"{shape}-{program}")
            sums_are_right(pages, 20)


def test_in_process_watch_runtimes(case):
    for program in ("runtime12", "runtime13", "static"):
        case.env["SAMPLE_COUNTS"] = case.path(program + ".counts")
        process = begin(case, ALL, ["--", Places.program(program), "60000"], name=program)
        pages = pages_of(case, process, program, program + ".counts")
        sums_are_right(pages, 10000)
        test_watch.memory(pages)


def test_in_process_watch_live_memory_beside_it(case):
    """Allocations and frees keep their probes, in the same library."""
    for shape in ("push", "stub"):
        shaped(case, shape)
        pages = started(case, ALL, "threads", "4", "50", name=shape)
        sums_are_right(pages, 200)
        test_watch.memory(pages)


def test_in_process_watch_whoever_tells(case):
    """Of a program so short that its agent may come too late."""
    process = begin(case, ALL, ["--", Places.program("threads"), "4", "20"])
    pages = pages_of(case, process)
    test_watch.launches(pages)
    test_watch.copies(pages)
    test_watch.memory(pages)


def essence(page):
    """All but times and numbers of processes."""
    page = json.loads(json.dumps(page))
    for kernel in page["launches"]["kernels"]:
        for key in ("pid", "call_ns", "max_call_ns", "calls_by_ns", "per_second"):
            kernel.pop(key, None)
        if "graph" in kernel:
            kernel["graph"] = "a handle"
    for row in page["bandwidth"]["rows"]:
        for key in ("pid", "call_ns", "max_call_ns", "calls_per_second", "bytes_per_second"):
            row.pop(key, None)
    return (sorted(json.dumps(kernel, sort_keys=True) for kernel in page["launches"]["kernels"]),
            sorted(json.dumps(row, sort_keys=True) for row in page["bandwidth"]["rows"]))


@stress("it takes 23 s")
def test_in_process_watch_pages_are_as_with_probes(case):
    for shape in ("push", "stub"):
        shaped(case, shape)
        for program, *arguments in (("copies",), ("capture", "3"), ("errors",), ("threads", "2", "10")):
            name = f"{shape}-{program}"
            inside = started(case, SUMS, program, *arguments, name=name)
            probes = test_watch.watch(case, SUMS, program, *arguments, name=name + "-probes")
            wanted, seen = essence(probes.last), essence(inside.last)
            checks.equal(f"kernels of {name}", wanted[0], seen[0])
            checks.equal(f"copies of {name}", wanted[1], seen[1])
            checks.equal(f"parts of a page of {name}", set(probes.last), set(inside.last))


# ---- diverted on the way -----------------------------------------------------------------------


def test_in_process_watch_of_a_program_that_is_diverted_on_its_way(case):
    """So many calls as the program made: those before are the kernel's, those after the agent's."""
    for shape in ("push", "stub"):
        shaped(case, shape)
        for number in range(3):
            for rounds in 2000, 20000, 200000:  # until it is not over before the agent is there
                name = f"{shape}{number}-{rounds}"
                case.env["SAMPLE_COUNTS"] = case.path(name + ".counts")
                process = begin(case, SUMS, ["--", Places.program("threads"), "8", str(rounds)], name=name)
                pages = pages_of(case, process, name, name + ".counts")
                sums_are_right(pages)
                if "no calls were recorded inside" not in pages.err:
                    break
            made = sum(pages.counts.of("calls").values())
            inside = told_inside(pages.err)[0]
            if not 0 < inside < made:
                raise Failure(f"{inside} of {made} calls were recorded inside")


def has_a_page(case, name, process):
    wait_until(lambda: os.path.exists(case.path(name)) and os.path.getsize(case.path(name))
               or process.process.poll() is not None, "a page", 60)


def launches_on_page(case, name):
    """The last one that is whole."""
    with open(case.path(name)) as file:
        pages = file.read().rpartition("\n")[0].splitlines()
    return json.loads(pages[-1])["launches"]["kernel_launches"] if pages else 0


def has_launches(case, name, process, more=100):
    """More of them than there are on a page now, however long the machine takes for that."""
    wanted = launches_on_page(case, name) + more
    wait_until(lambda: launches_on_page(case, name) >= wanted or process.process.poll() is not None,
               f"{more} launches", 60)


def test_in_process_watch_knows_what_was_pinned_before(case):
    """The kernel followed that until the process was diverted."""
    for shape in ("push", "stub"):
        shaped(case, shape)
        case.env["SAMPLE_COUNTS"] = case.path(shape + ".counts")
        process = begin(case, "bandwidth", ["--", Places.program("copies"), "30000"], name=shape)
        pages = pages_of(case, process, shape, shape + ".counts")
        late_runtime_only(pages)
        test_watch.copies(pages)
        for row in pages.last["bandwidth"]["rows"]:
            checks.equal(f"host memory of {row['direction']}",
                         "pinned" if row["direction"] in ("H2D", "D2H") else None, row.get("host"))
        made, inside = sum(pages.counts.of("calls").values()), told_inside(pages.err)[0]
        if not 0 < inside < made:
            raise Failure(f"{inside} of {made} calls were recorded inside")


def test_in_process_watch_with_each_mechanism(case):
    for without in ("session", "session,multi", "session,multi,cookie"):
        case.env["SAMPLE_COUNTS"] = case.path(without + ".counts")
        process = begin(case, ALL, ["--", Places.program("threads"), "8", "4000"], ["--without", without],
                        without)
        pages = pages_of(case, process, without, without + ".counts")
        sums_are_right(pages)
        test_watch.memory(pages)


def attached(case, tools, name):
    """A watch of a program that waits after cuInit, and goes on when it is attached to."""
    case.env["SAMPLE_WAIT"] = case.path(name + ".go")
    case.env["SAMPLE_COUNTS"] = case.path(name + ".counts")
    program = case.program("loop", 30, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "libcuda" in open(f"/proc/{program.pid}/maps").read(), "the driver")
    time.sleep(0.3)  # cuInit
    process = begin(case, tools, ["-p", str(program.pid)], ["--interval", "100ms"], name)
    has_a_page(case, name, process)
    open(case.path(name + ".go"), "w").close()
    wait_until(lambda: "ready" in program.out(), "the program")
    return program, process


def test_in_process_watch_of_a_running_process(case):
    """Of all its calls, from the first on, none is missing and none is twice."""
    for shape in ("push", "stub"):
        shaped(case, shape)
        program, process = attached(case, ALL, shape)
        is_inside(process)
        has_launches(case, shape, process, 200)
        program.process.stdin.close()
        program.wait()
        pages = pages_of(case, process, shape, shape + ".counts")
        test_watch.nothing_missed(pages)
        test_watch.launches(pages)
        test_watch.memory(pages)
        counts = [page["launches"]["kernel_launches"] for page in pages.pages]
        checks.equal("counts that grow", sorted(counts), counts)
        checks.equal("kernels", 1, len(pages.last["launches"]["kernels"]))
        if told_inside(pages.err)[0] < 100:
            raise Failure(f"it says: {pages.err}")


@alone  # another trace's breakpoints would be seen
def test_in_process_watch_that_ends_leaves_the_program_as_it_was(case):
    program, process = attached(case, SUMS, "loop")
    is_inside(process)
    has_launches(case, "loop", process)
    process.signal(signal.SIGINT)
    pages = pages_of(case, process, "loop", "loop.counts")
    test_watch.nothing_missed(pages)
    is_as_in_its_file(program)
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())


# ---- processes ---------------------------------------------------------------------------------


def test_in_process_watch_of_a_process_that_is_killed(case):
    """Its rows stay as they were."""
    program, process = attached(case, SUMS, "loop")
    is_inside(process)
    has_launches(case, "loop", process)
    program.signal(signal.SIGKILL)
    pages = pages_of(case, process, "loop", "loop.counts")
    kernel = pages.last["launches"]["kernels"][0]
    checks.equal("ended", True, kernel["ended"])
    before = [page["launches"]["kernel_launches"] for page in pages.pages]
    if kernel["launches"] < 100 or before != sorted(before):
        raise Failure(f"launches: {before}")


def test_in_process_watch_of_two_processes(case):
    case.env["SAMPLE_WAIT"] = case.path("go")
    programs = []
    for number in range(2):
        case.env["SAMPLE_COUNTS"] = case.path(f"counts{number}")
        programs.append(case.program("loop", 30, 300 + 200 * number, stdin=subprocess.PIPE))
    time.sleep(0.5)
    process = begin(case, SUMS, ["-p", ",".join(str(program.pid) for program in programs)],
                    ["--interval", "100ms"])
    has_a_page(case, "pages", process)
    open(case.path("go"), "w").close()
    is_inside(process, 2)
    time.sleep(0.5)
    for program in programs:
        program.process.stdin.close()
        program.wait()
    pages = pages_of(case, process, counts="counts0")
    checks.equal("processes inside", 2, told_inside(pages.err)[2])
    for number, program in enumerate(programs):
        with open(case.path(f"counts{number}")) as file:
            made = json.load(file)["calls"]["cuLaunchKernel"]
        kernels = [k for k in pages.last["launches"]["kernels"] if k["pid"] == program.pid]
        checks.equal(f"launches of process {number}", [made], [k["launches"] for k in kernels])


def test_in_process_watch_forked_and_executed_processes(case):
    for program, arguments in (("fork", ["before"]), ("exec", ["2"]), ("exec", ["1", "thread"])):
        name = "-".join([program, *arguments])
        case.env["SAMPLE_COUNTS"] = case.path(name + ".counts")
        process = begin(case, ALL, ["--", Places.program(program), *arguments], name=name)
        pages = pages_of(case, process, name, name + ".counts")
        test_watch.launches(pages)
        test_watch.copies(pages)
        test_watch.memory(pages)


# ---- input -------------------------------------------------------------------------------------


def test_in_process_watch_bad_input(case):
    process = case.cuscope("launches", "--in-process", "--no-returns", "--", "true")
    checks.equal("status", 2, process.wait())
    checks.contains("it says", "--in-process does not go with --no-returns", process.err())


def test_in_process_watch_the_last_of_both_options_wins(case):
    for options, said in ((["--in-process", "--no-in-process"], False), (["--no-in-process", "--in-process"], True)):
        for command in (["launches"], ["trace", "--summary-only"]):
            process = case.cuscope(*command, *options, "--", "true")
            checks.equal("status", 0, process.wait())
            checks.equal(f"inside with {options}", said, "recorded inside" in process.err())
    process = case.cuscope("launches", "--in-process", "--no-returns", "--no-in-process", "--", "true")
    checks.equal("status", 0, process.wait())


def test_in_process_watch_memleak_keeps_its_probes(case):
    process = begin(case, "memleak", ["--", Places.program("memory")])
    pages = pages_of(case, process)
    test_watch.memory(pages)
    checks.contains("it says", "memleak keeps all probes", pages.err)
    checks.contains_not("it says", "recorded inside", pages.err)
