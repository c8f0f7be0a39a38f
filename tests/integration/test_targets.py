# SPDX-License-Identifier: MIT
"""Which processes are traced: by pid, name, cgroup, all."""

import contextlib
import json
import os
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until


def start_loop(case):
    process = case.program("loop", 30, 200, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the loop")
    return process


def end_loop(process):
    process.process.stdin.close()
    checks.equal("status of the loop", 0, process.wait())


def pids_of(result):
    return {c["pid"] for c in result.calls()}


@alone
def test_pid_of_a_running_process(case):
    loop, other = start_loop(case), start_loop(case)
    trace = case.start_trace([], ["-p", loop.pid])
    case.attached(trace)
    seen = wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 4000, "calls to be written")
    checks.equal("something came", True, bool(seen))
    end_loop(loop)
    result = case.result(trace, seconds=10)  # ends with its last process
    end_loop(other)
    checks.valid(result)
    checks.nothing_missed(result)
    checks.equal("processes", {loop.pid}, pids_of(result))
    launches = result.names()["cuLaunchKernel"]
    made = next(c for c in result.counts.processes if c["pid"] == loop.pid)["calls"]["cuLaunchKernel"]
    if not 3 <= launches <= made:
        raise Failure(f"{launches} launches seen, {made} made in all")
    checks.equal("kernel names, of handles made before the trace", {"tick()"},
                 {c["kernel"] for c in result.calls(op="launch")})


@alone
def test_several_pids(case):
    loops = [start_loop(case) for _ in range(3)]
    trace = case.start_trace([], ["-p", f"{loops[0].pid},{loops[1].pid}"])
    case.attached(trace)
    wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 6000, "calls")
    for loop in loops:
        end_loop(loop)
    checks.equal("processes", {loops[0].pid, loops[1].pid}, pids_of(case.result(trace, seconds=10)))


def test_interrupting_a_trace_leaves_the_process_running(case):
    loop = start_loop(case)
    trace = case.start_trace([], ["-p", loop.pid])
    case.attached(trace)
    wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 4000, "calls")
    trace.signal(signal.SIGINT)
    result = case.result(trace, seconds=10)
    checks.equal("status", 0, result.status)
    checks.valid(result)
    checks.equal("it runs", None, loop.process.poll())
    end_loop(loop)


def test_children_of_a_running_process_are_followed(case):
    shell = case.start("/bin/sh", "-c", f"read x; sleep 2 | {Places.program('loop')} 1 200",
                       stdin=subprocess.PIPE)
    trace = case.start_trace([], ["-p", shell.pid])
    case.attached(trace)
    shell.process.stdin.close()
    shell.wait()
    result = case.result(trace, seconds=10)
    checks.valid(result)
    checks.equal("pids", result.counts.pids(), pids_of(result))
    if result.names()["cuLaunchKernel"] < 0.6 * result.counts.of("calls")["cuLaunchKernel"]:
        raise Failure(f"{dict(result.names())} of {dict(result.counts.of('calls'))}")


@alone
def test_name_of_running_and_of_later_processes(case):
    loop = start_loop(case)
    trace = case.start_trace([], ["--name", "loo*"])
    case.attached(trace)
    later = start_loop(case)
    checks.equal("another program", 0, case.program("threads", 1, 1).wait())
    wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 6000, "calls")
    end_loop(loop)
    end_loop(later)
    trace.signal(signal.SIGINT)
    result = case.result(trace, seconds=10)
    checks.valid(result)
    checks.equal("processes", {loop.pid, later.pid}, pids_of(result))


@alone
def test_all_processes(case):
    loop = start_loop(case)
    trace = case.start_trace([], ["--all"])
    case.attached(trace)
    later = case.program("threads", 2, 2, name="later")
    later.wait()
    wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 6000, "calls")
    end_loop(loop)
    trace.signal(signal.SIGINT)
    result = case.result(trace, seconds=10)
    checks.valid(result)
    checks.equal("both are there", True, {loop.pid, later.pid} <= pids_of(result))
    checks.equal("launches of the later one, hooked already", 8,
                 len([c for c in result.calls(op="launch") if c["pid"] == later.pid]))


def cgroup2():
    with open("/proc/mounts") as file:
        for line in file:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    raise Skip("no cgroup2 is mounted")


def test_cgroup_and_those_below_it(case):
    group = os.path.join(cgroup2(), f"cuscope-test-{os.getpid()}")
    below = os.path.join(group, "below")
    try:
        os.makedirs(below)
    except OSError as error:
        raise Skip(f"no cgroup can be made: {error}") from None
    try:
        inside, outside = start_loop(case), start_loop(case)
        with open(os.path.join(below, "cgroup.procs"), "w") as file:
            file.write(str(inside.pid))
        trace = case.start_trace([], ["--cgroup", group])
        case.attached(trace)
        later = case.start("/bin/sh", "-c", f"echo $$ > {below}/cgroup.procs; "
                           f"exec {Places.program('threads')} 1 2", name="later")
        later.wait()
        wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 6000, "calls")
        end_loop(inside)
        end_loop(outside)
        trace.signal(signal.SIGINT)
        result = case.result(trace, seconds=10)
        checks.valid(result)
        checks.equal("processes", {inside.pid, later.pid}, pids_of(result))
    finally:
        case.end()
        wait_until(lambda: not open(os.path.join(below, "cgroup.procs")).read(), "it to be empty")
        os.rmdir(below)
        os.rmdir(group)


@contextlib.contextmanager
def cgroups_within(case, folder, depth):
    """The list of processes of the innermost of so many cgroups in each other. The case has ended when they go."""
    try:
        os.mkdir(folder)
    except OSError as error:
        raise Skip(f"no cgroup can be made: {error}") from None
    at = os.path.join(folder, *["d"] * depth)
    os.makedirs(at)
    procs = os.path.join(at, "cgroup.procs")
    try:
        yield procs
    finally:
        case.end()
        wait_until(lambda: not open(procs).read(), "it to be empty")
        while at != os.path.dirname(folder):
            os.rmdir(at)
            at = os.path.dirname(at)


def test_a_process_that_comes_into_a_cgroup_far_below_is_looked_into(case):
    """What it has mapped was mapped before; it is deeper than the kernel's side follows."""
    outermost = os.path.join(cgroup2(), f"cuscope-test-deep-{os.getpid()}")
    with cgroups_within(case, outermost, 80) as procs:
        tight = case.program("tight", 0)
        wait_until(lambda: "libcuda" in open(f"/proc/{tight.pid}/maps").read(), "the library")
        trace = case.start_trace(["--only", "cuCtxSetCurrent"], ["--cgroup", outermost])
        case.attached(trace)
        with open(procs, "w") as file:
            file.write(str(tight.pid))
        wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 6000, "calls")
        trace.signal(signal.SIGINT)
        result = case.result(trace, seconds=10)
        checks.valid(result)
        checks.equal("processes", {tight.pid}, pids_of(result))
        if "nothing was traced" in trace.err():
            raise Failure(trace.err())


@alone
def test_duration_ends_the_trace(case):
    loop = start_loop(case)
    begin = time.monotonic()
    trace = case.start_trace(["--duration", "500ms"], ["-p", loop.pid])
    result = case.result(trace, seconds=10)
    took = time.monotonic() - begin
    checks.equal("status", 0, result.status)
    checks.valid(result)
    if not 0.5 <= took < 3:
        raise Failure(f"took {took:.2f} s")
    if not 0.45 < result.summary["duration_seconds"] < 1:
        raise Failure(f"duration {result.summary['duration_seconds']}")
    end_loop(loop)


def test_duration_begins_when_all_is_hooked(case):
    """That takes longer than what is asked for here."""
    loop = case.program("loop", "30", "1000", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in loop.out(), "the program to begin")
    result = case.result(case.start_trace(["--duration", "50ms"], ["-p", loop.pid]))
    loop.process.stdin.close()
    times = [call["ts"] for call in result.calls()]
    if not times or max(times) - min(times) < 30:
        raise Failure(f"{len(times)} calls")


def test_duration_with_a_command_lets_it_run_to_its_end(case):
    begin = time.monotonic()
    result = case.trace("/bin/sh", "-c", "sleep 1.2; exit 7", options=["--duration", "200ms"],
                        status=7)
    if time.monotonic() - begin < 1.1:
        raise Failure("the command did not run to its end")
    checks.valid(result)


def test_max_events(case):
    result = case.trace("threads", "2", "100", options=["--max-events", "50"])
    checks.valid(result)
    checks.equal("calls", 50, len(result.calls()))


def test_max_events_means_the_same_calls_everywhere(case):
    """Those that a call makes come along, and are not counted: in one command they were."""
    trace = case.path("few.cuscope")
    target = ["--", Places.program("runtime13")]
    checks.equal("status of record", 0, case.cuscope("record", "-v", "-o", case.path("all.cuscope"), *target).wait())
    checks.equal("status of record", 0, case.cuscope("record", "-v", "--max-events", "9", "-o", trace, *target).wait())

    def jsonl(*command):
        process = case.cuscope(*command)
        checks.equal(f"status of {command[0]}", 0, process.wait())
        return process.out().splitlines()

    result = case.trace("runtime13", options=["-v", "--max-events", "9"])
    wanted = [(c["name"], c.get("nested")) for c in result.calls()]
    checks.equal("calls that no other made", 9, sum(not nested for name, nested in wanted))
    checks.equal("calls that they made", True, len(wanted) > 9)
    for file, options in ((trace, ()), (case.path("all.cuscope"), ("--max-events", "9"))):
        lines = [json.loads(line) for line in jsonl("export", file, "--format", "jsonl", *options)]
        seen = [(c["name"], c.get("nested")) for c in lines if c.get("phase") == "X"]
        checks.equal(f"calls of {os.path.basename(file)}", wanted, seen)
        report = jsonl("report", file, "cuda_api_trace", "--format", "csv", *options)
        checks.equal(f"rows of the report of {os.path.basename(file)}", 9, len(report) - 1)
