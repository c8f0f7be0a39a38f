# SPDX-License-Identifier: MIT
"""Hooks of one's own, calls to the driver and waits of the host, of all processes and of those of a cgroup."""

import os
import signal

import checks
from harness import Places, alone, wait_until
from test_kernel_side import STAND_INS, kernel_side
from test_targets import cgroup2, end_loop, start_loop

WANTED = ["--hook", "uprobe:libcuda.so:cuMemAlloc_v2(bytes=arg1:bytes) as own",
          "--kernel", "--host-waits"]


OWN = '"name":"own.cuMemAlloc_v2"'


def lines_of(case, pid):
    return sum(OWN in line and f'"pid":{pid},' in line for line in open(case.path("trace.jsonl")))


def seen(case, target, prepare=lambda pid: None, enter=""):
    """Who has what in a trace during which two programs run, of which the first does `enter` before. A third one, for
    which `prepare` is called, goes on all the time: libraries are hooked when it is seen, and no call is too early."""
    case.env.update(STAND_INS)
    loop = start_loop(case)
    prepare(loop.pid)
    trace = case.start_trace(WANTED, target)
    case.attached(trace)
    wait_until(lambda: lines_of(case, loop.pid), "hooks")
    program = f"exec {Places.program('threads')} 2 3"
    inside = case.start("/bin/sh", "-c", enter + program, name="inside")
    outside = case.start("/bin/sh", "-c", program, name="outside")
    checks.equal("their ends", (0, 0), (inside.wait(), outside.wait()))
    wait_until(lambda: lines_of(case, inside.pid) >= 6, "calls")
    end_loop(loop)
    trace.signal(signal.SIGINT)
    result = case.result(trace, seconds=20)
    checks.valid(result)
    hooked = [call["pid"] for call in result.calls(name="own.cuMemAlloc_v2") if call["pid"] != loop.pid]
    return inside, outside, result, hooked, loop.pid


@alone
def test_all_processes_with_hooks_calls_to_the_driver_and_waits(case):
    inside, outside, result, hooked, _ = seen(case, ["--all"])
    for process in (inside, outside):
        checks.equal("hooked", 6, hooked.count(process.pid))
        checks.equal("calls of CUDA", 6, len(result.calls(name="cuMemAlloc_v2", pid=process.pid)))
        checks.equal("allocations of the driver", 6, len([c for c in kernel_side(result) if c["pid"] == process.pid
                                                         and c["name"] == "RM_ALLOC NV01_MEMORY_LOCAL_USER"]))


@alone
def test_a_cgroup_with_hooks_calls_to_the_driver_and_waits(case):
    group = os.path.join(cgroup2(), f"cuscope-hooks-{os.getpid()}")
    os.mkdir(group)
    try:
        def enter(pid):
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(pid))
        inside, _, result, hooked, loop = seen(case, ["--cgroup", group], enter, f"echo $$ > {group}/cgroup.procs; ")
        checks.equal("hooked", [inside.pid] * 6, hooked)
        checks.equal("of the driver", {inside.pid, loop}, {c["pid"] for c in kernel_side(result)})
        checks.equal("events of others", set(), {e["pid"] for e in result.events if e.get("pid")} - {inside.pid, loop})
    finally:
        case.end()
        wait_until(lambda: not open(os.path.join(group, "cgroup.procs")).read(), "it to be empty")
        os.rmdir(group)
