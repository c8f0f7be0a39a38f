# SPDX-License-Identifier: MIT
"""How long threads are blocked, where, and who wakes them: `profile --off-cpu` and `record --stacks=blocked`."""

import json
import os
import re
import time

import checks
import gpu_trace
import harness
import profiles
from harness import Failure, Places, Skip
from test_targets import cgroup2

LEAF = "[off_CPU]"


def blocked(case, target, options=(), seconds=None, told=None):
    """Chains of names, outermost first, with the ns that threads were blocked there; to `told` goes what it and the program said."""
    path = case.path("blocked.folded")
    limit = ["--duration", f"{seconds * harness.patience:g}s"] if seconds else []
    process = case.cuscope("profile", "--mode", "off-cpu", "-o", path, "--force", *limit, *options, *target)
    status = process.wait()
    checks.equal(f"status ({process.err()[-300:]})", 0, status)
    if told is not None:
        told.append(process.out() + process.err())
    chains = profiles.folded(path)
    others = [chain for chain in chains if chain[-1] != LEAF]
    checks.equal("stacks that are not of blocked time", [], others)
    return {chain[:-1]: ns for chain, ns in chains.items()}


def through(chains, name):
    return {chain: ns for chain, ns in chains.items() if name in chain}


def expect(chains, name, ms, waker, kernel=None, slack=80):
    """All time in the function: how long, by whom it was ended, and in what of the kernel."""
    found = through(chains, name)
    total = sum(found.values()) / 1e6
    late = ms / 10  # what ends it is begun before the wait is, and goes on while this waits for a CPU
    if not ms - late <= total <= ms + slack * harness.patience:
        raise Failure(f"{name} is blocked for {total} ms, should be {ms}: {found or chains}")
    for chain, ns in found.items():
        if ns < 1e6:
            continue
        checks.equal(f"what ended {name}", f"[woken by {waker}]", chain[-1])
        if kernel and not any(kernel in frame for frame in chain):
            raise Failure(f"nothing of {kernel} in {chain}")
        if "__schedule" in chain or any(frame.startswith("bpf_") for frame in chain):
            raise Failure(f"how it was walked is in {chain}")


def program(*arguments):
    return ["--", Places.program("sleeper"), *map(str, arguments)]


def test_blocked_functions_and_who_ends_them(case):
    # Tables of its code are made while it runs: before they are there, no stack is walked.
    chains = blocked(case, program("once", int(500 * harness.patience)))
    expect(chains, "in_sleep", 100, "an interrupt", "nanosleep")
    expect(chains, "in_pipe", 200, "writer", "pipe_read")
    expect(chains, "in_lock", 250, "holder", "futex")
    expect(chains, "in_poll", 150, "an interrupt", "poll")


WAITS = """import queue, threading, time
time.sleep({late_s})
work = queue.Queue()
def produce():
    for i in range(5):
        time.sleep(0.1)
        work.put(i)
def consume():
    for i in range(5):
        work.get()
def timed(body):
    begin = time.monotonic()
    body()
    print(f"{{body.__name__}} {{1000 * (time.monotonic() - begin):.0f}} ms", flush=True)
threading.Thread(target=timed, args=(produce,)).start()
timed(consume)
"""


def test_blocked_time_of_python(case):
    """
    As long as it says itself: a sleep lasts until there is a CPU again. Where the machine has no time for its frames
    before it ends, that is told, and it begins later the next time.
    """
    script = case.path("waits.py")
    for late_s in 0, 2, 10:
        with open(script, "w") as file:
            file.write(WAITS.format(late_s=late_s))
        told = []
        chains = blocked(case, ["--", "/usr/bin/python3", script], ["--functions"], told=told)
        if "frames of Python are missing" not in told[0] or \
                min(sum(through(chains, name + " (waits.py)").values()) for name in ("produce", "consume")) > 450e6:
            break
    longest = {name: int(ms) for name, ms in re.findall(r"(\w+) (\d+) ms", told[0])}
    expect(chains, "produce (waits.py)", 500, "an interrupt", slack=longest["produce"] - 500 + 30)
    expect(chains, "consume (waits.py)", 500, "python3", "futex", slack=longest["consume"] - 500 + 30)
    if not all(any(frame.endswith("get (queue.py)") for frame in chain) for chain, ns in through(chains, "consume (waits.py)").items() if ns > 1e6):
        raise Failure(f"not in Queue.get: {chains}")


def test_blocked_still_and_since_before(case):
    """Of a process that runs already: who stays blocked, and who is woken in the end."""
    process = profiles.started(case, Places.program("sleeper"), "forever")
    chains = blocked(case, ["-p", process.pid], seconds=1)
    found = {chain: ns / 1e9 / harness.patience for chain, ns in chains.items() if ns > 1e8}
    checks.equal("what is known of both threads", [("[blocked since before the begin]",)], list(found))
    if not 1.2 <= sum(found.values()) <= 2.4: # what comes before the first record is not in it
        raise Failure(f"two threads for a second: {found}")
    profiles.ended(process)
    script = f"sleep 3 | {Places.program('sleeper')} forever 1000"  # by then tables of its code are made
    chains = blocked(case, ["--", "/bin/sh", "-c", script], ["--duration", "1.6s"])
    still = [chain for chain in through(chains, "in_vain") if chain[-1] == "[still blocked at the end]"]
    if len(still) != 1 or chains[still[0]] < 0.2e9:
        raise Failure(f"nobody is still blocked: {chains}")


def python_on_first_cpu(case, script, name):
    return profiles.started(case, "taskset", "-c", 0, "/usr/bin/python3", "-S", "-c", script, name=name)


def never_blocked(case, body):
    """
    A process that shares its CPU with a busy one, and begins anew by exec() again and again: each
    time nobody knows its thread until it is switched away from.
    """
    again = f"import os, sys, time\nprint('ready', flush=True)\n{body}\nos.execv(sys.executable, sys.orig_argv)"
    process = python_on_first_cpu(case, again, "again")
    python_on_first_cpu(case, "print('ready', flush=True)\nwhile True: pass", "competitor")
    chains = blocked(case, ["-p", process.pid], seconds=1)
    before = [ns for chain, ns in chains.items() if "[blocked since before the begin]" in chain]
    if sum(before) > 0.1e9 * harness.patience:
        raise Failure(f"a thread that never blocks is blocked since before the begin, for {sum(before) / 1e9} s")


def test_blocked_before_is_not_told_of_the_preempted(case):
    never_blocked(case, "while time.process_time() < 0.04: pass")


def test_blocked_before_is_not_told_of_those_that_yield(case):
    never_blocked(case, "for i in range(3): os.sched_yield()")


def test_blocked_in_a_cgroup_says_what_is_missing(case):
    group = os.path.join(cgroup2(), f"cuscope-blocked-{os.getpid()}")
    try:
        os.makedirs(group)
    except OSError as error:
        raise Skip(f"no cgroup can be made: {error}") from None
    try:
        process = profiles.started(case, Places.program("sleeper"), "forever")
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(process.pid))
        profile = case.cuscope("profile", "--mode", "off-cpu", "-o", case.path("group.folded"),
                               "--cgroup", group, "--duration", "0.3s")
        checks.equal("status", 0, profile.wait())
        checks.contains("what it says", "blocked already at the begin and is woken later", profile.err())
    finally:
        case.end()
        harness.wait_until(lambda: not open(os.path.join(group, "cgroup.procs")).read(), "it to be empty")
        os.rmdir(group)


def test_blocked_and_on_cpus_in_one_profile(case):
    path = case.path("both.folded")
    command = ["--", "/usr/bin/python3", "-c",
               "import time\nend = time.time() + 0.5\nwhile time.time() < end: pass\ntime.sleep(0.3)"]
    process = case.cuscope("profile", "--off-cpu", "-F", 499, "-o", path, *command)
    checks.equal("status", 0, process.wait())
    chains = profiles.folded(path)
    off = sum(ns for chain, ns in chains.items() if chain[-1] == LEAF)
    on = sum(chains.values()) - off
    if not 0.3e9 <= off <= 0.3e9 + 0.3e9 * harness.patience or on < 0.02e9:
        raise Failure(f"{on / 1e9} s on CPUs, {off / 1e9} s blocked: {chains}")


def test_blocked_time_is_all_there(case):
    """What is too short to be told, or not walked, is in sums: the limit changes no total."""
    for least in ("1us", "10ms", "1s"):
        chains = blocked(case, program("once"), [f"--off-cpu={least}"])
        total = sum(chains.values()) / 1e6
        if not 100 + 2 * 200 + 2 * 250 + 150 <= total <= 1150 + 500 * harness.patience:
            raise Failure(f"{total} ms blocked in all with {least}: {chains}")
        told = [chain for chain in chains if "in_pipe" in chain]
        checks.equal(f"stacks of 200 ms with {least}", least != "1s", bool(told))


def test_blocked_wakers_of_threads_apart(case):
    chains = blocked(case, program("once"), ["--per-thread"])
    for name in ("writer", "holder"):
        wakers = {chain[-1] for chain in chains if chain[-1].startswith(f"[woken by {name}")}
        if len(wakers) != 1 or not wakers.pop().rpartition(" (")[2].rstrip(")]").isdigit():
            raise Failure(f"no number of {name}: {chains}")


def test_blocked_time_of_a_recording(case):
    process = gpu_trace.start(case, program("once"), ["--stacks=blocked"], name="trace")
    checks.equal("status of the recording", 0, process.wait())
    path = case.path("trace.cuscope")
    out = case.path("file.folded")
    process = case.cuscope("profile", path, "-o", out)
    checks.equal("status of the profile", 0, process.wait())
    chains = {chain[:-1]: ns for chain, ns in profiles.folded(out).items()}
    expect(chains, "in_pipe", 200, "writer", "pipe_read")
    info = case.cuscope("info", "--json", path)
    info.wait()
    stacks = json.loads(info.out())["stacks"]
    checks.equal("what info says of it", (True, 100000), (stacks["of_blocked"], stacks["blocked_least_ns"]))
    profiles.same_time("the sum of info", stacks["blocked_ns"], chains)
    process = case.cuscope("export", path, "--format", "jsonl")
    process.wait()
    lines = [json.loads(line) for line in process.out().splitlines()]
    woken = [line for line in lines if line["type"] == "sample" and line.get("woken_by") == "writer"]
    checks.equal("times that the writer ended", 1, len(woken))
    profiles.same_time("the sum of jsonl", sum(round(1000 * line["weight_us"]) for line in lines if line["type"] == "sample"), chains)
    halves = []
    for option in "--to", "--from":  # the middle of that stretch
        process = case.cuscope("profile", path, "-o", out, "--force", option, f"{woken[0]['ts'] * 1000 - woken[0]['weight_us'] / 2:.0f}us")
        checks.equal("status of a part", 0, process.wait())
        halves.append(sum(ns for chain, ns in profiles.folded(out).items() if "in_pipe" in " ".join(chain)))
    if any(abs(half - woken[0]["weight_us"] * 500) > 2000 for half in halves):
        raise Failure(f"{halves} of {woken[0]}")


def test_blocked_storm_does_not_blind_others(case):
    """A sleeper beside 100 threads that block each other as fast as they can. These are a session
    with little weight: beside one with some, Linux 6.18 lets others, RCU's threads as well, wait
    for a CPU for up to 17 s (docs/results/hostile.md)."""
    path = case.path("blocked.folded")
    quiet = profiles.started(case, Places.program("sleeper"), "beside", name="beside")
    other = profiles.started(case, "setsid", "sh", "-c", 'echo 19 > /proc/$$/autogroup; exec nice -n 19 "$0" "$@"',
                             Places.program("sleeper"), "storm", 100, name="storm")
    profile = case.cuscope("profile", "--mode", "off-cpu", "--per-process", "--name=sleeper", "--duration", "2s", "-o", path)
    checks.equal(f"status ({profile.err()})", 0, profile.wait())
    profiles.ended(other)
    profiles.ended(quiet)
    of = [{chain: ns for chain, ns in profiles.folded(path).items() if f"({process.pid})" in chain[0]}
          for process in (quiet, other)]
    walked = sum(ns for chain, ns in of[0].items() if "beside" in chain)
    skipped = sum(ns for chain, ns in of[0].items() if "[stack not walked]" in chain)
    if walked < 0.5e9 or walked < 3 * skipped:
        raise Failure(f"{walked / 1e9} s of the other process are known, {skipped / 1e9} not: {of[0]}")
    if sum(of[1].values()) < 10e9:
        raise Failure(f"100 threads are blocked for {sum(of[1].values()) / 1e9} s in 2 s: {of[1]}")


def test_blocked_bad_options(case):
    for words, arguments in (("--off-cpu: 'x' is no", ["--off-cpu=x", "--", "true"]),
                             ("mode (merge, gpu, cpu, off-cpu or hooks)", ["--mode", "offcpu", "--", "true"])):
        process = case.cuscope("profile", *arguments)
        checks.equal(f"status of {arguments}", 2, process.wait())
        if words not in process.err():
            raise Failure(f"{arguments}: {process.err()}")
