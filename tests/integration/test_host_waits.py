# SPDX-License-Identifier: MIT
"""What threads wait for, `record --host-waits`: programs that read a disk, wait for others, or have to share their CPU."""

import json
import os

import checks
import profiles
from harness import Failure, Places


def data(case):
    """16 MiB that are on a disk, and not in memory only."""
    path = case.path("data")
    with open(path, "wb") as file:
        file.write(os.urandom(16 << 20))
        os.fsync(file.fileno())
    return path


def record(case, kind, rounds=6, options=()):
    path = case.path(f"{kind}.cuscope")
    times = ["--gpu", "--cupti", Places.simcuda("libcupti.so.13")]
    process = case.cuscope("record", "--force", "-o", path, "--host-waits", *times, *options, "--",
                           Places.program("hostwaits"), kind, str(rounds), data(case))
    checks.equal(f"status of record ({process.err()[-300:]})", 0, process.wait())
    return path


def waits(case, path):
    """What the main thread waited for from its first launch on: each stretch."""
    process = case.cuscope("export", path, "--format", "jsonl", "-o", "-")
    checks.equal("status of export", 0, process.wait())
    events = [json.loads(line) for line in process.out().splitlines()]
    first = min(event["ts"] for event in events if event.get("name") == "cuLaunchKernel")
    return [event for event in events
            if event.get("op") == "off_cpu" and event["tid"] == event["pid"] and event["ts"] > first]


def time_of(stretches, kind):
    return sum(stretch["weight_us"] - stretch.get("runnable_us", 0) for stretch in stretches if stretch.get("waited_for") == kind)


def expect(case, kind, waited_for, least_us):
    stretches = waits(case, record(case, kind))
    found = time_of(stretches, waited_for)
    if found < least_us:
        raise Failure(f"{kind}: waited {found} us for {waited_for}: {stretches[:20]}")
    return [stretch for stretch in stretches if stretch.get("waited_for") == waited_for]


def report(case, path, name):
    process = case.cuscope("report", path, name, "--format", "json")
    checks.equal(f"status of {name}", 0, process.wait())
    return json.loads(process.out())


def check_gaps(case, path, part):
    """It is a cause of idle time, and findings know that waits were recorded."""
    rows = {row["Cause"]: row for row in report(case, path, "gaps")["causes"]}
    if part not in rows:
        raise Failure(f"gaps have no {part}: {rows}")
    checks.contains_not("findings", "record --host-waits", json.dumps(report(case, path, "findings")["not_known"]))


def test_waits_for_a_disk(case):
    expect(case, "disk", "disk", 500)
    check_gaps(case, case.path("disk.cuscope"), "disk")


def test_waits_for_pages_of_a_file(case):
    expect(case, "fault", "fault", 500)


def test_waits_for_a_socket_and_who_ended_them(case):
    for stretch in expect(case, "network", "network", 9000):
        checks.equal("who sent it", ("woken", "giver"), (stretch["blocked"], stretch.get("woken_by")))


def test_waits_for_a_lock_and_who_ended_them(case):
    stretches = expect(case, "lock", "lock", 9000)
    if "giver" not in {stretch.get("woken_by") for stretch in stretches}:
        raise Failure(f"not woken by who gave: {stretches}")


def test_a_wait_whose_limit_is_over_is_a_sleep(case):
    for stretch in expect(case, "limit", "sleep", 9000):
        checks.equal("what ended it", "interrupt", stretch["blocked"])


def test_waits_for_a_cpu_and_who_had_it(case):
    path = record(case, "cpu", 10)
    stretches = waits(case, path)
    check_gaps(case, path, "no_cpu")
    taken = [stretch for stretch in stretches if stretch.get("runnable_us")]
    by_neighbour = sum(stretch["runnable_us"] for stretch in taken if stretch.get("rival") == "neighbour")
    if by_neighbour < 5000:
        raise Failure(f"its neighbours had the CPU for {by_neighbour} us: {taken}")
    for stretch in taken:
        if stretch["runnable_us"] > stretch["weight_us"]:
            raise Failure(f"more than there is: {stretch}")


def test_trace_has_lines_of_waits(case):
    process = case.cuscope("trace", "--host-waits", "--", Places.program("hostwaits"), "lock", "3", data(case))
    checks.equal("status", 0, process.wait())
    checks.contains("a wait", r"\n +[\d.]+ +hostwaits +\d+ +\d+ +\[off cpu\] +[\d.]+ ms +lock, woken by giver \(\d+\)", process.out())
    process = case.cuscope("trace", "--host-waits", "--summary-only", "--", "true")
    checks.equal("status without lines", 2, process.wait())
    checks.contains("what is said", "--host-waits shows lines, of which --summary-only shows none", process.err())


def storm(case, *words):
    """Each thread's stretches of two seconds in which it waited more than a thousand times."""
    path, seconds = case.path("storm.cuscope"), 2
    program = profiles.started(case, Places.program("sleeper"), *words, name="storm")
    recording = case.cuscope("record", "--host-waits=1us", "--stacks=blocked", "--duration", f"{seconds}s", "-o", path, "-p", program.pid)
    recording.wait()
    profiles.ended(program)
    process = case.cuscope("export", path, "--format", "jsonl", "-o", "-")
    checks.equal("status of export", 0, process.wait())
    threads = {}
    for event in map(json.loads, process.out().splitlines()):
        if event.get("op") == "off_cpu":
            threads.setdefault(event["tid"], []).append(event)
    storming = [events for events in threads.values() if sum(event.get("count", 1) for event in events) > 1000]
    if len(storming) != 2:
        raise Failure(f"{len(storming)} threads waited all the time: { {tid: len(events) for tid, events in threads.items()} }")
    return storming, seconds


def test_waits_of_a_storm_are_told_by_chance_and_the_others_added_up(case):
    """Two threads hand a byte on as fast as they can: a record of each wait would cost as much as all else that is done for it."""
    storming, seconds = storm(case, "storm", 2)
    for events in storming:
        told = [event for event in events if event["blocked"] in ("woken", "interrupt", "unknown")]
        short = [event for event in told if event["weight_us"] < 1000]
        if not 500 < len(short) < 1500 * seconds * 1.2 + 256 + 64:
            raise Failure(f"{len(short)} of {sum(event.get('count', 1) for event in events)} waits are told")
        checks.equal("kinds of those that are told", {"pipe"}, {event["waited_for"] for event in short} - {"cpu"})
        time_us = sum(event["weight_us"] for event in events)
        if not 0.2e6 < time_us < seconds * 1.2e6:
            raise Failure(f"of {seconds} s {time_us} us are told as waits")


def test_rare_long_waits_of_a_storm_have_their_stacks(case):
    """The short ones at another place, some hundred for each, take no walks away from them."""
    storming, _ = storm(case, "rare")
    naps = [event for events in storming for event in events if event.get("waited_for") == "sleep"]
    late = naps[len(naps) // 3:]  # the first ones were before tables of the program's code
    walked = sum(bool(event.get("stack")) for event in late)
    if len(late) < 20 or walked < len(late) / 3:
        raise Failure(f"of {len(late)} naps {walked} have stacks: {late[:3]}")


def innermost(case, path, waited_for):
    """What frames the stacks of such waits end in."""
    process = case.cuscope("export", path, "--format", "jsonl", "-o", "-")
    checks.equal("status of export", 0, process.wait())
    events = [json.loads(line) for line in process.out().splitlines()]
    stacks = {event["stack"]: event["frames"] for event in events if event.get("type") == "stack"}
    return {stacks[event["stack"]][0]["kind"] for event in events
            if event.get("op") == "off_cpu" and event.get("waited_for") == waited_for and event.get("stack")}


def test_stacks_of_waits_have_frames_of_the_kernel_but_where_why_knows_the_call(case):
    checks.equal("of a recording", {"kernel"}, innermost(case, record(case, "sleep", options=["--stacks=blocked"]), "sleep"))
    for kind, frames in (("sleep", {"native"}), ("disk", {"kernel"}), ("fault", {"kernel"})):
        path = case.path(f"why-{kind}.cuscope")
        process = case.cuscope("why", "-o", path, "--", Places.program("hostwaits"), kind, "200", data(case))
        checks.equal(f"status of why ({process.err()[-300:]})", 0, process.wait())
        checks.equal(f"of why, {kind}", frames, innermost(case, path, kind))
