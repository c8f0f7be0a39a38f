# SPDX-License-Identifier: MIT
"""Processes that targets wait for, and that are none: `record --stacks --host-waits` samples them, too."""

import json
import os
import signal
import sys

import checks
import profiles
from harness import Failure
from wakers import functions, record, sampled, start

DEPTH = 3  # WAKERS_DEPTH
MOST = 16  # WAKERS_MAX


def test_a_worker_that_was_there_before(case):
    process, (worker,) = start(case)
    events, said = record(case, [process], until=[worker])
    checks.equal("who is sampled", {process.pid, worker}, sampled(events))
    ran = functions(events, worker, "cpu")
    if ran.get("work_of_worker", 0) < 60000:
        raise Failure(f"the worker's work is not seen: {ran}")
    if functions(events, worker, "off_cpu").get("wait_to_be_asked", 0) < 10000:
        raise Failure(f"nor what it waits for: {functions(events, worker, 'off_cpu')}")
    if "ask" not in functions(events, process.pid, "off_cpu"):
        raise Failure(f"nor who waits for it: {functions(events, process.pid, 'off_cpu')}")
    checks.equal("what else is told of it", {"sample", "process"}, {event["type"] for event in events if event.get("pid") == worker})
    checks.contains("said", rf"process {worker} \(worker\), which process {process.pid} waits for, is sampled, too", said)
    info = case.cuscope("info", case.path("r.cuscope"))
    checks.equal("status of info", 0, info.wait())
    checks.contains("info", r"complete +yes", info.out())
    checks.contains("processes", r"and 1 process without a CUDA call", info.out())
    profiles.ended(process)


def test_who_wakes_a_waker_and_so_on(case):
    """Three of five: nobody is looked at who is further away."""
    process, workers = start(case, length=5)
    events, _ = record(case, [process], until=workers[:DEPTH])
    checks.equal("who is sampled", {process.pid, *workers[:DEPTH]}, sampled(events))
    for worker in workers[:DEPTH]:
        if functions(events, worker, "off_cpu").get("ask", 0) < 50000:
            raise Failure(f"{worker} waits for the next: {functions(events, worker, 'off_cpu')}")
    profiles.ended(process)


def test_no_more_than_so_many_and_some_of_each_target(case):
    many, _ = start(case, rows=MOST + 8, name="many")
    few, (worker,) = start(case, name="few")
    events, said = record(case, [many, few], 6)
    if worker not in sampled(events):
        raise Failure(f"the one worker is not sampled beside many: {said}")
    info = case.cuscope("info", case.path("r.cuscope"), "--json")
    checks.equal("status of info", 0, info.wait())
    missed = json.loads(info.out())
    if '"wakers_without_room"' not in json.dumps(missed):
        raise Failure(f"it is not told that there were more: {missed}")
    at_once = set()
    for event in events[-2000:]:  # nobody had to make room any more
        if event["type"] == "sample" and event.get("blocked") != "still":
            at_once.add(event["pid"])
    if len(at_once - {many.pid, few.pid}) > MOST:
        raise Failure(f"{len(at_once)} processes at once")
    profiles.ended(many)
    profiles.ended(few)


def test_not_where_it_is_not_asked_for(case):
    process, _ = start(case)
    for options in (("--host-waits", "--no-wakers"), ()):
        events, said = record(case, [process], 2, options)
        checks.equal(f"who is sampled with {options}", {process.pid}, sampled(events))
        if "waits for" in said:
            raise Failure(f"said: {said}")
    profiles.ended(process)


FROM_MEMORY = ("import os, sys; fd = os.memfd_create('cuscope-x', 0); os.write(fd, open(sys.argv[1], 'rb').read()); "
               "os.execv(f'/proc/self/fd/{fd}', sys.argv[1:])")


def test_not_what_is_cuscopes_own(case):
    """Its own processes, which wake who is attached to, run such files."""
    process, _ = start(case, under=(sys.executable, "-c", FROM_MEMORY))
    events, said = record(case, [process], 2)
    checks.equal("who is sampled", {process.pid}, sampled(events))
    if "waits for" in said:
        raise Failure(f"said: {said}")
    profiles.ended(process)


def test_not_what_a_waker_becomes(case):
    """By exec it is another program, for which nobody has waited."""
    process, (worker,) = start(case)
    events, _ = record(case, [process], 1, until=[worker], meanwhile=lambda: os.kill(worker, signal.SIGUSR1))
    ends = [event["ts"] for event in events if event.get("pid") == worker and event["type"] == "process" and event["op"] != "start"]
    checks.equal("ends of the worker", 1, len(ends))
    later = [event for event in events if event.get("pid") == worker and event["ts"] > ends[0]]
    checks.equal("of what it is then", [], later)
    os.kill(worker, signal.SIGKILL)
