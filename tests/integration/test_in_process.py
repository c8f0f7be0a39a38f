# SPDX-License-Identifier: MIT
"""Calls recorded inside of processes (--in-process): what the programs did is what is told, from
the first call on, whoever saw it, and the programs' code is as it was afterwards.

SAMPLE_WAIT has a program wait where CUDA works, so that what follows is the agent's to tell.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until

INSIDE = re.compile(r"(\d+) calls of (\d+) functions were recorded inside of (\d+) process")


def told_inside(err):
    """(calls, functions, processes) of the last line."""
    found = INSIDE.search(err)
    if not found:
        raise Failure(f"it does not say what was recorded inside: {err[-600:]}")
    return tuple(int(number) for number in found.groups())


def is_inside(process, count=1):
    wait_until(lambda: process.err().count("are recorded inside of process") >= count
               or process.process.poll() is not None, f"{count} libraries to be diverted")
    if process.process.poll() is not None:
        raise Failure(f"it ended: {process.err()[-600:]}")


def started(case, program, *arguments, options=(), status=0):
    """A command that waits after cuInit until its driver is diverted."""
    case.env["SAMPLE_WAIT"] = case.path("go")
    process = case.start_trace(["--in-process", *options],
                               ["--", Places.program(program), *arguments])
    is_inside(process)
    open(case.path("go"), "w").close()
    result = case.result(process)
    if result.status != status:
        raise Failure(f"exit status {result.status}: {result.err[-600:]}")
    return result


def well(result, calls=1):
    checks.valid(result)
    seen, functions, _ = told_inside(result.err)
    if seen < calls or functions < 50:
        raise Failure(f"{seen} calls of {functions} functions were recorded inside")


def late_runtime_only(result):
    """A command is not held any more, so a runtime that is loaded later is hooked late, which is told."""
    missed = result.summary["missed"]
    for hook in list(missed["hooks"]):
        if hook["kind"] == "hooked_late" and hook.get("lib", "").startswith("libcudart"):
            missed["hooks"].remove(hook)
    missed["complete"] = missed["complete"] or not missed["hooks"]


def longjmp_test(shape, where):
    """Nearly always each thread has just left a call by longjmp, so also when the functions are diverted, and
    no later call is within that one. Beside other traces that is not always so: docs/in-process.md, limits."""
    @alone
    def test(case):
        case.shape = shape
        result = case.trace("longjmp", "900", "600", options=["--in-process"])
        told = result.calls(name="cuSimCallback", unfinished=True, nested=None)
        threads = {tid: sorted(call["ts"] for call in told if call["tid"] == tid) for tid in {call["tid"] for call in told}}
        nearest = sorted((b - a, a) for times in threads.values() for a, b in zip(times, times[1:]))[:3]
        checks.equal(f"unfinished (of threads {[len(times) for times in threads.values()]}, nearest {nearest})",
                     result.counts.of("unfinished")["cuSimCallback"], len(told))
        checks.equal("nested", result.counts.of("nested_unfinished")["cuSimCallback"], len(result.calls(nested=True)))
        checks.memory(result)
        inside, calls = told_inside(result.err)[0], len(result.calls())
        if not 100 < inside < calls - 100:
            raise Failure(f"{inside} of {calls} calls were recorded inside: not diverted meanwhile")

    test.__name__ = f"test_in_process_calls_that_longjmp_left_where_jumps_lie_{where}_probes"
    return test


test_in_process_longjmp_behind = longjmp_test("push", "behind")
test_in_process_longjmp_before = longjmp_test("stub", "before")


def nesting(result):
    """How often each function was called at each depth."""
    return collections.Counter((call["name"], call.get("depth", 0)) for call in result.calls())


def fibers(case, guarded, above):
    """20 rounds of 4 fibers, each in two calls while the others make theirs; see the program."""
    result = started(case, "fibers", "20", "4", str(guarded), str(above))
    well(result, 1000)
    checks.differences("calls", result.counts.of("calls"), {**result.names(), "cuCtxSetCurrent": 2, "cuDeviceGet": 1})
    return result


def fibers_test(where, above):
    """Each call has its end, and is nested in those of its own fiber alone. The program would not outlive return probes,
    as other tests have them."""
    @alone
    def test(case):
        result = fibers(case, 1, above)
        checks.nothing_missed(result)
        checks.equal("unfinished", [], result.calls(unfinished=True))
        checks.differences("nested", result.counts.of("nested"), result.names(nested=True))
        told = nesting(result)
        checks.equal("at each depth", (80, 80, 80),
                     tuple(told[at] for at in (("cuSimCallback", 0), ("cuSimCallback", 1), ("cuMemAlloc_v2", 2))))

    test.__name__ = f"test_in_process_calls_of_fibers_{where}_their_thread"
    return test


test_in_process_fibers_below = fibers_test("below", 0)
test_in_process_fibers_above = fibers_test("above", 1)


@alone
def test_in_process_fibers_side_by_side_look_like_one_stack(case):
    """So some calls look as if they were left. That they come back is counted, each once."""
    result = fibers(case, 0, 1)
    if not result.calls(unfinished=True):
        raise Failure("all calls have their ends: the limit is gone")
    checks.equal("returns without an entry", len(result.calls(unfinished=True)), result.summary["missed"]["lost"]["no_entry"])


def test_in_process_nested_calls_are_those_of_probes(case):
    """What a runtime calls in the driver, each once and within its call, whoever tells. The program waits in cuInit until
    both are diverted; in the second trace it does not."""
    case.env["SIMCUDA_WAIT"] = case.path("go")
    process = case.start_trace(["--in-process"], ["--", Places.program("runtime13")])
    is_inside(process, 2)
    open(case.path("go"), "w").close()
    inside = case.result(process)
    checks.nothing_missed(inside)
    told = nesting(inside)
    checks.differences("calls at each depth", nesting(case.trace("runtime13", name="probes")), told)
    if sum(n for (_, depth), n in told.items() if depth) < 10:
        raise Failure(f"few calls are nested: {told}")


def layered(case, options, name):
    """A runtime whose calls go through a layer, of which one function keeps its probe (tests/programs/layer.c), to the driver. The
    program waits in cuInit until all that can be is diverted."""
    case.env["LD_LIBRARY_PATH"] = Places.program("layer") + ":" + Places.simcuda()
    case.env["SAMPLE_DRIVER"] = Places.simcuda("push/libcuda.so.1")
    case.env["SIMCUDA_WAIT"] = case.path(f"go {name}")
    process = case.start_trace(options, ["--", Places.program("runtime13"), "3"], name)
    if options:
        is_inside(process, 3)
    open(case.path(f"go {name}"), "w").close()
    result = case.result(process, name)
    checks.equal("status", 0, result.status)
    checks.nothing_missed(result)
    return result


def test_in_process_a_layer_before_the_driver_counts_nothing_twice(case):
    """A call that a probe tells of is known to be within one that an agent tells of."""
    inside = layered(case, ["--in-process"], "inside")
    checks.contains("it says", "1 of 3 functions of libcuda.so.1 keep their probes: it calls within its first bytes", inside.err)
    told = nesting(inside)
    probes = layered(case, [], "probes")
    checks.differences("calls that no other makes", probes.names(nested=None), inside.names(nested=None))
    checks.differences("calls", probes.names(), inside.names())
    checks.equal("allocations of the runtime, the layer and the driver", [2, 2, 2],
                 [told[at] for at in (("cudaMalloc", 0), ("cuMemAlloc_v2", 1), ("cuMemAlloc_v2", 2))])


def test_in_process_exceptions_go_through_calls(case):
    """With return probes they would meet the trampoline, and end the program."""
    result = started(case, "throw", "20")
    checks.valid(result)
    told_inside(result.err)


def test_in_process_under_seccomp(case):
    result = started(case, "seccomp")
    checks.valid(result)
    checks.nothing_missed(result)
    checks.calls(result)
    told_inside(result.err)


def test_in_process_beside_one_that_cannot_be_entered(case):
    """A process under a debugger's trace keeps its probes, and nothing of either is missing."""
    if not shutil.which("strace"):
        raise Skip("strace is not here")
    first = case.program("loop", 30, 200, stdin=subprocess.PIPE)
    second = case.program("loop", 30, 200, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in first.out() and "ready" in second.out(), "the programs")
    tracer = case.start("strace", "-qq", "-o", "/dev/null", "-e", "trace=none", "-p", str(second.pid))
    wait_until(lambda: "TracerPid:\t0\n" not in open(f"/proc/{second.pid}/status").read(), "strace")
    trace = case.start_trace(["--in-process"], ["-p", f"{first.pid},{second.pid}"])
    is_inside(trace)
    time.sleep(1)
    trace.signal(signal.SIGINT)
    result = case.result(trace)
    checks.valid(result)
    checks.nothing_missed(result)
    checks.equal("processes inside", 1, told_inside(result.err)[2])
    checks.contains("it says", f"process {second.pid} ", result.err)
    for program in (first, second):
        launches = len(result.calls(name="cuLaunchKernel", pid=program.pid))
        if launches < 100:
            raise Failure(f"{launches} launches of process {program.pid}")
    tracer.stop()


def text_of(process, library):
    """The bytes of a library that the process may run, as they are in its memory and in its file."""
    memory = file = b""
    with open(f"/proc/{process.pid}/maps") as maps:
        lines = [line.split() for line in maps if library in line and " r-xp " in line]
    if not lines:
        raise Failure(f"{library} is not mapped")
    for line in lines:
        start, end = (int(number, 16) for number in line[0].split("-"))
        with open(f"/proc/{process.pid}/mem", "rb", 0) as mem:
            mem.seek(start)
            memory += mem.read(end - start)
        with open(f"/proc/{process.pid}/map_files/{line[0]}", "rb") as whole:  # also where its path leads elsewhere for us
            whole.seek(int(line[2], 16))
            file += whole.read(end - start).ljust(end - start, b"\0")
    return memory, file


def is_as_in_its_file(program):
    """Breakpoints go later than who put them there: the kernel takes one after the other away. Those of other traces are in there, too,
    so such tests run alone."""
    def is_back():
        memory, file = text_of(program, "libcuda.so.1")
        return memory == file
    wait_until(is_back, "the code to be as in the file", 60)


def attach(case, program, *options, name="trace"):
    process = case.start_trace(["--in-process", *options], ["-p", str(program.pid)], name)
    is_inside(process)
    return process


@alone
def test_in_process_of_a_program_that_runs_and_back(case):
    """Each call once, by numbers that the program has: what is missing or told twice shows."""
    program = case.program("loop", 120, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    trace = attach(case, program)
    memory, file = text_of(program, "libcuda.so.1")
    checks.equal("code was changed", True, memory != file)
    time.sleep(1)
    trace.signal(signal.SIGINT)
    result = case.result(trace)
    checks.valid(result)
    checks.nothing_missed(result)
    told_inside(result.err)
    is_as_in_its_file(program)
    rounds(result)
    program.signal(signal.SIGTERM)


def rounds(result):
    """A loop makes the same calls in each round: each name as often as the others, but at the ends."""
    launches = result.names()["cuLaunchKernel"]
    if launches < 200:
        raise Failure(f"{launches} launches in a second of 500 rounds")
    begins = sorted(call["ts"] for call in result.calls(name="cuLaunchKernel"))
    gaps = [later - earlier for earlier, later in zip(begins, begins[1:])]
    if max(gaps) > 200000:
        raise Failure(f"nothing was told for {max(gaps) / 1000} ms")


@alone
def test_in_process_again_and_again(case):
    """An agent has 4,096 slots, which would be enough for eight times if none were used again."""
    program = case.program("loop", 300, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    known = 0
    for number in range(12):
        trace = attach(case, program, name=f"trace{number}")
        time.sleep(0.1)
        trace.signal(signal.SIGINT)
        result = case.result(trace, f"trace{number}")
        checks.valid(result)
        calls, functions, _ = told_inside(result.err)
        known = known or functions
        checks.equal(f"functions the {number + 1}th time", known, functions)
        checks.equal(f"calls the {number + 1}th time", True, calls > 10)
        is_as_in_its_file(program)
    program.signal(signal.SIGTERM)


@alone
def test_in_process_after_cuscope_was_killed_entries_are_put_back(case):
    program = case.program("loop", 60, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    trace = attach(case, program)
    trace.signal(signal.SIGKILL)
    trace.wait()
    is_as_in_its_file(program)
    if program.process.poll() is not None:
        raise Failure(f"the program ended: {program.err()}")
    program.signal(signal.SIGTERM)


GAP = re.compile(r"calls from (\d+) ms to (\d+) ms: its agent has ended")


def closes(case, shape):
    """Calls that the program made, those that were told, and the gap in ms that was told (or None)."""
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)
    result = started(case, "closes", "6", "500")  # on a busy machine a second goes by until probes are there again
    checks.valid(result)
    seen, _, _ = told_inside(result.err)
    made = result.counts.of("calls")
    told = result.names()
    missed = result.summary["missed"]
    if any(missed["lost"].values()):
        raise Failure(f"lost: {missed}")
    gaps = [GAP.search(hook["why"]) for hook in missed["hooks"] if hook["kind"] == "unhooked"]
    checks.equal("gaps that are told", 1, len(gaps))
    checks.equal("it is not complete", False, missed["complete"])
    if not gaps[0]:
        raise Failure(f"what may be missing: {missed['hooks']}")
    since, until = (int(number) for number in gaps[0].groups())
    names = ("cuMemAlloc_v2", "cuMemFree_v2")
    lacking = [made[name] - told[checks.ALIASES.get(name, name)] for name in names]
    most = (until - since + 2) / 2 + 1  # a round takes 2 ms at least
    if min(lacking) < 0 or max(lacking) > most:
        raise Failure(f"{shape}: {lacking} calls of {made} lack, {most:.0f} were told: {told}")
    if seen > sum(told.values()) * 3 / 4:
        raise Failure(f"{seen} of {sum(told.values())} calls were the agent's: none came after its end")
    return lacking, until - since


def test_in_process_a_program_that_closes_all_of_its_descriptors(case):
    """Its agent has no socket any more. The probes tell of calls again, and what may lack is told."""
    closes(case, "push")


def test_in_process_descriptors_are_closed_where_jumps_lie_before_probes(case):
    closes(case, "stub")


def beside(case, shape, sees_all=True):
    """A plain trace of a program, in the middle of which another one records inside: (made, told)."""
    case.env["LD_LIBRARY_PATH"] = Places.libraries(shape)
    case.env["SAMPLE_WAIT"] = case.path("go")
    program = case.program("loop", 30, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "libcuda" in open(f"/proc/{program.pid}/maps").read(), "the driver")
    time.sleep(0.3)  # cuInit
    plain = case.start_trace([], ["-p", str(program.pid)], "plain")
    case.attached(plain)
    open(case.path("go"), "w").close()
    wait_until(lambda: "ready" in program.out(), "the program")
    trace = attach(case, program)
    time.sleep(0.7)
    trace.signal(signal.SIGINT)
    inside = case.result(trace)
    checks.valid(inside)
    checks.nothing_missed(inside)
    told_inside(inside.err)
    time.sleep(0.3)
    program.process.stdin.close()
    program.wait()
    result = case.result(plain, "plain")
    checks.valid(result)
    if sees_all:
        checks.nothing_missed(result)
    else:
        says_what_it_lacks(result, program)
    made = {checks.ALIASES.get(name, name): n for name, n in result.counts.of("calls").items()
            if name in ("cuMemAlloc_v2", "cuLaunchKernel", "cuMemFree_v2")}
    told = result.names()
    return made, {name: told[name] for name in made}, inside


def says_what_it_lacks(result, program):
    missed = result.summary["missed"]["hooks"]
    checks.equal("what is missed", [("unhooked", "libcuda.so.1", program.pid)],
                 [(hook["kind"], hook["lib"], hook["pid"]) for hook in missed])
    checks.contains("why", "there are jumps before their probes", missed[0]["why"])
    checks.equal("complete", False, result.summary["missed"]["complete"])


def test_in_process_another_trace_sees_all_calls(case):
    """Its probes are those of the kernel, and jumps that lie behind them leave them alone."""
    made, told, inside = beside(case, "push")
    checks.differences("calls that the plain trace told", made, told)
    if inside.names()["cuLaunchKernel"] < 100:
        raise Failure(f"{inside.names()} was told by the other trace")


def test_in_process_another_trace_lacks_calls_that_are_diverted_before_its_probes(case):
    """In the meantime, and not afterwards; and it says so."""
    made, told, inside = beside(case, "stub", sees_all=False)
    launches = inside.names()["cuLaunchKernel"]
    lacking = made["cuLaunchKernel"] - told["cuLaunchKernel"]
    if not 0 < lacking <= launches:
        raise Failure(f"{lacking} of {made['cuLaunchKernel']} launches lack, {launches} were recorded inside")


def test_in_process_with_gpu_times_each_begin_is_told(case):
    result = started(case, "threads", "2", "50", options=["--gpu", "--begin-end"])
    phases = [event["phase"] for event in result.events if event.get("name") == "cuLaunchKernel"]
    checks.equal("begins and ends", (200, 200), (phases.count("B"), phases.count("E")))
    told_inside(result.err)


def test_in_process_options_that_do_not_go_with_it(case):
    for options, text in ((["--no-returns"], "--no-returns"), (["--max-overhead", "5%"], "--max-overhead")):
        process = case.cuscope("trace", "--in-process", *options, "--", "true")
        checks.equal("status", 2, process.wait())
        checks.contains("it says", f"--in-process does not go with {text}", process.err())


def test_in_process_a_program_without_cuda_is_let_alone(case):
    process = case.cuscope("trace", "--in-process", "--summary-only", "--", "true")
    checks.equal("status", 0, process.wait())
    checks.contains("it says", "no calls were recorded inside of processes", process.err())
