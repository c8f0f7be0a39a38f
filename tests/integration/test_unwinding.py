# SPDX-License-Identifier: MIT
"""Calls that never return: longjmp, exceptions, threads that end inside; and tids used again."""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import checks
from harness import Failure, Places, Skip, alone, wait_until


def unfinished(result, name="cuSimCallback"):
    checks.equal("unfinished", result.counts.of("unfinished")[name],
                 len(result.calls(name=name, unfinished=True, nested=None)))
    checks.equal("nested in them", result.counts.of("nested_unfinished")[name],
                 len(result.calls(name=name, nested=True)))
    checks.equal("they have no duration and no result", 0,
                 sum("duration_us" in c or "retval" in c for c in result.calls(unfinished=True)))


def ordinary_calls_came_out_right(result):
    checks.valid(result)
    checks.nothing_missed(result)
    checks.memory(result)
    checks.equal("nested ordinary calls", 0,
                 sum(c["name"] != "cuSimCallback" for c in result.calls(nested=True)))
    checks.differences(
        "frees and allocations", {name: result.counts.of("calls")[name]
                                  for name in ("cuMemAlloc_v2", "cuMemFree_v2")},
        {name: result.names(nested=None)[name] for name in ("cuMemAlloc_v2", "cuMemFree_v2")})


def test_longjmp_out_of_a_call(case):
    result = case.trace("longjmp", "30")
    unfinished(result)
    ordinary_calls_came_out_right(result)


def test_longjmp_with_nested_returns(case):
    result = case.trace("longjmp", "30", options=["-v"])
    unfinished(result)
    checks.equal("nested ones, too", result.counts.of("nested_unfinished")["cuSimCallback"],
                 len(result.calls(unfinished=True, nested=True)))
    ordinary_calls_came_out_right(result)


def test_longjmp_with_begin_end(case):
    result = case.trace("longjmp", "5", options=["--begin-end"])
    checks.valid(result)
    checks.equal("begins", len([e for e in result.events if e.get("phase") == "B"]),
                 len(result.calls(phase="E")))
    checks.equal("ends that are none", result.counts.of("unfinished")["cuSimCallback"],
                 len(result.calls(phase="E", unfinished=True, nested=None)))


@alone
def test_fibers_without_returns_have_all_of_their_calls(case):
    """With return probes the kernel ends such a program (docs/trace.md), also with those of another test, where these
    have no sessions."""
    result = case.trace("fibers", "20", "4", options=["--no-returns"])
    checks.valid(result)
    checks.nothing_missed(result)
    made = result.counts.of("calls")
    checks.differences("calls", {name: made[name] for name in result.names()}, result.names())


@alone  # another test's top has return probes on the whole machine
def test_exception_through_a_call_that_is_hooked_without_returns(case):
    result = case.trace("throw", "20", options=["--no-returns"])
    checks.valid(result)
    checks.nothing_missed(result)
    checks.equal("calls", result.counts.of("calls")["cuSimCallback"], result.names()["cuSimCallback"])
    checks.equal("allocations", result.counts.of("calls")["cuMemAlloc_v2"],
                 result.names(nested=None)["cuMemAlloc_v2"])


def test_exception_through_a_call(case):
    """The kernel's return probes replace the return address, and the C++ runtime finds no way past
    what they put there: no tracer that shows durations can let an exception through."""
    result = case.trace("throw", "20", status=None)
    if result.status == 128 + signal.SIGABRT:
        raise Skip("this kernel's return probes end the search for a handler; --no-returns passes")
    unfinished(result)
    ordinary_calls_came_out_right(result)


def test_pthread_exit_inside_a_call(case):
    result = case.trace("threadexit", "30")
    unfinished(result)
    ordinary_calls_came_out_right(result)


def test_exit_of_a_thread_by_system_call_inside_a_call(case):
    result = case.trace("threadexit", "30", "also by system call")
    unfinished(result)
    ordinary_calls_came_out_right(result)


def test_tids_that_are_used_again(case):
    """In a pid namespace with few pids every tid comes again soon."""
    pids_max = "/proc/sys/kernel/pid_max"
    script = (f"echo 400 > {pids_max} 2>/dev/null; exec {Places.program('threadexit')} 900 x")
    probe = case.start(Places.program("ownroot"), "unshare", "-p", "-f", "--mount-proc", "/bin/sh", "-c",
                       f"echo 400 > {pids_max} && cat {pids_max}")
    if probe.wait() or probe.out().strip() != "400":
        raise Skip("pid_max is not a namespace's own here")
    with open(pids_max) as file:
        before = file.read()
    result = case.trace(Places.program("ownroot"), "unshare", "-p", "-f", "--mount-proc", "/bin/sh", "-c", script)
    with open(pids_max) as file:
        checks.equal("pid_max outside", before, file.read())
    unfinished(result)
    ordinary_calls_came_out_right(result)
    tids = [c["tid"] for c in result.calls(name="cuMemAlloc_v2")]
    checks.equal("calls", 900, len(tids))


def test_a_process_that_dies_in_the_middle_of_calls(case):
    """kill -9 of the target: what was under way is unfinished, memory is released by its exit."""
    process = case.start_trace([], ["--", Places.program("loop"), "30", "1000"],
                               stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in process.out(), "the program")
    pid = int(subprocess.run(["pgrep", "-P", str(process.pid), "loop"], capture_output=True,
                             text=True, check=True).stdout)
    os.kill(pid, signal.SIGKILL)
    result = case.result(process)
    checks.equal("status", 128 + signal.SIGKILL, result.status)
    checks.valid(result)
    sums = result.summary["memory"]
    checks.equal("live bytes after the end", 0, sums["live_bytes"])


def test_calls_under_way_at_the_end_of_the_trace(case):
    """They are there, unfinished, and not taken for events that were delivered late."""
    case.env["SIMCUDA_TIME_SCALE"] = "1"
    case.env["SIMCUDA_KERNEL_US"] = "700000"
    result = case.trace("threads", "2", "1", options=["--duration", "700ms"])
    checks.valid(result)
    checks.nothing_missed(result)
    checks.equal("waiting", 2, len(result.calls(name="cuStreamSynchronize", unfinished=True)))
    checks.equal("in the summary", 2, result.summary["calls"]["unfinished"])


def maps_of(pid):
    """The ids of the eBPF maps that a process has open."""
    ids = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        # Descriptors are opened and closed meanwhile; those of maps stay.
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{fd}") as file:
            ids |= {int(line.split()[1]) for line in file if line.startswith("map_id:")}
    return ids


def threads_map(pid):
    """The process of each thread in the map "threads" of the cuscope with this pid, or None."""
    text = subprocess.run(["bpftool", "-j", "map", "show"], capture_output=True, text=True,
                          check=False).stdout
    mine = maps_of(pid)
    for known in json.loads(text or "[]"):
        if known.get("name") == "threads" and known["id"] in mine:
            dump = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(known["id"])],
                                  capture_output=True, text=True, check=True).stdout
            return [entry["formatted"]["value"]["tgid"] for entry in json.loads(dump)]
    return None


@alone
def test_threads_that_ended_leave_nothing_in_the_map(case):
    if not shutil.which("bpftool"):
        raise Skip("bpftool is not installed")
    loop = case.program("loop", 60, 5, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in loop.out(), "the loop")
    trace = case.start_trace([], ["--all"])
    case.attached(trace)
    wait_until(lambda: loop.pid in (threads_map(trace.pid) or []), "the loop's thread to be there")
    short = [case.program("threadexit", 40, "x"), case.program("longjmp", 5),
             case.program("threads", 16, 2)]
    for process in short:
        checks.equal("status", 0, process.wait())
    wait_until(lambda: not {p.pid for p in short} & set(threads_map(trace.pid)),
               "their threads to be gone", 5)
    checks.equal("the loop's thread", 1, threads_map(trace.pid).count(loop.pid))
    loop.process.stdin.close()
    loop.wait()
    wait_until(lambda: loop.pid not in threads_map(trace.pid), "the loop's thread to be gone", 5)
    trace.signal(signal.SIGINT)
    checks.valid(case.result(trace))
