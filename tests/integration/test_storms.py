# SPDX-License-Identifier: MIT
"""Many short processes: each call is seen, or its process is counted as missed.

STORM_PROCESSES says how many there are: 120 by default, 4,000 in `make stress`.
"""

import collections
import glob
import os
import shutil
import signal
import tempfile

import checks
from harness import Failure, Places, Skip, alone, wait_until
from test_targets import cgroup2

PROCESSES = int(os.environ.get("STORM_PROCESSES", "120"))
LIMIT = 60 + PROCESSES // 10


def start(case, options, environment=None):
    """A trace that is ready before the first process is there, and knows of no library yet."""
    env = dict(case.environment(), **(environment or {}))
    if not environment:
        env.pop("LD_LIBRARY_PATH")
    trace = case.start_trace([], options, env=env)
    case.attached(trace)
    return trace


def storm(case, command, before=""):
    """Runs the command again and again, each in a process of a few milliseconds."""
    runner = case.start("/bin/sh", "-c", f"{before} n=0; while [ $n -lt {PROCESSES} ]; do "
                        f"{command} || exit 1; n=$((n+1)); done", name="storm")
    checks.equal("status of the storm", 0, runner.wait(LIMIT))


def finish(case, trace):
    trace.signal(signal.SIGINT)
    result = case.result(trace, seconds=LIMIT)
    checks.equal("status", 0, result.status)
    checks.valid(result)
    return result


def missed_processes(result):
    """How many the summary says to have been hooked late, or not at all."""
    return sum(hook.get("processes", 1) for hook in result.summary["missed"]["hooks"]
               if hook["kind"] in ("hooked_late", "unseen"))


def whole(result):
    """Processes of which every hooked call was seen, and all that there were."""
    on = checks.hooked((), ("push/libcuda.so.1", "libcudart.so.13"))
    seen = collections.defaultdict(collections.Counter)
    for call in result.calls(nested=None):
        seen[call["pid"]][call["name"]] += 1
    complete = 0
    for process in result.counts.processes:
        made = collections.Counter()
        for name, n in process["calls"].items():
            name = checks.ALIASES.get(name, name)
            if name in on:
                made[name] += n
        complete += all(seen[process["pid"]][name] == n for name, n in made.items())
    return complete, len(result.counts.processes)


def account(result, at_most):
    """Those that were not seen whole are counted, and no more are counted than could be late."""
    complete, made = whole(result)
    missed = missed_processes(result)
    checks.equal("processes", PROCESSES, made)
    if made - complete > missed or missed > at_most:
        raise Failure(f"{complete} of {made} processes were seen whole, {missed} are said to be missed: "
                      f"{result.summary['missed']}")
    if missed and result.summary["missed"]["complete"]:
        raise Failure(f"complete, it says: {result.summary['missed']}")


@alone
def test_storm_by_name_of_a_library_that_nobody_knew(case):
    trace = start(case, ["--name", "thr*ds"])
    storm(case, f"{Places.program('threads')} 1 1")
    account(finish(case, trace), 60)


@alone
def test_storm_by_name_of_the_program_file(case):
    """The process renames itself at once, the file's name stays."""
    program = case.path("brief-program")
    shutil.copy(Places.program("threads"), program)
    trace = start(case, ["--name", "brief-prog[q-r]am"])
    storm(case, f"{program} 1 1")
    account(finish(case, trace), 60)


@alone
def test_storm_by_name_leaves_others_alone(case):
    trace = start(case, ["--name", "threads"])
    storm(case, f"{Places.program('runtime13')} && {Places.program('threads')} 1 1")
    result = finish(case, trace)
    checks.equal("names", {"threads"}, {call["comm"] for call in result.calls()})


@alone
def test_storm_by_name_with_libraries_known_beforehand_misses_nothing(case):
    """Known are those where root alone can put files, which a clone in /tmp is not."""
    with tempfile.TemporaryDirectory(prefix="cuscope-test-", dir="/run") as folder:
        os.chmod(folder, 0o755)
        for path in glob.glob(Places.simcuda("push", "*.so*")) + glob.glob(Places.simcuda("*.so*")):
            shutil.copy(path, folder)
        environment = {"LD_LIBRARY_PATH": folder}
        trace = start(case, ["--name", "threads"], environment)
        storm(case, f"LD_LIBRARY_PATH={folder} {Places.program('threads')} 1 1")
        result = finish(case, trace)
        account(result, 0)
        checks.everything(result)
        case.end()


@alone
def test_storm_of_a_library_that_the_user_names_misses_nothing(case):
    trace = start(case, ["--name", "threads", "--library", Places.simcuda("push", "libcuda.so.1")])
    storm(case, f"{Places.program('threads')} 1 1")
    result = finish(case, trace)
    account(result, 0)
    checks.everything(result)


@alone
def test_storm_of_all_with_the_runtime_linked_in(case):
    """A library that has no file of its own: the program is one."""
    trace = start(case, ["--all"])
    storm(case, Places.program("static"))
    account(finish(case, trace), 120)  # of the program and of the driver


@alone
def test_storm_of_all_with_shared_libraries(case):
    trace = start(case, ["--all"])
    storm(case, Places.program("runtime13"))
    account(finish(case, trace), 120)


@alone
def test_storm_in_a_cgroup(case):
    group = os.path.join(cgroup2(), f"cuscope-storm-{os.getpid()}")
    try:
        os.makedirs(group)
    except OSError as error:
        raise Skip(f"no cgroup can be made: {error}") from None
    try:
        trace = start(case, ["--cgroup", group])
        storm(case, f"{Places.program('threads')} 1 1", f"echo $$ > {group}/cgroup.procs;")
        account(finish(case, trace), 60)
    finally:
        case.end()
        wait_until(lambda: not open(os.path.join(group, "cgroup.procs")).read(), "it to be empty")
        os.rmdir(group)


@alone
def test_storm_of_copies_that_are_gone_before_anyone_looks(case):
    """Each has a program of its own that is deleted at once: what cannot be seen is counted."""
    copy = case.path("copy")
    trace = start(case, ["--all"])
    storm(case, f"cp {Places.program('threads')} {copy} && {copy} 1 1 && rm {copy}")
    result = finish(case, trace)
    account(result, PROCESSES + 60)
    unseen = [hook for hook in result.summary["missed"]["hooks"] if hook["kind"] == "unseen"]
    if not unseen or not 0 < unseen[0]["processes"] <= PROCESSES + 60:
        raise Failure(f"unseen: {unseen}")
    checks.contains("text", r"not looked into: \d+ processes ended before", result.out)


def test_a_process_that_takes_a_name_that_is_meant(case):
    """prctl(PR_SET_NAME): from then on it is a target."""
    script = ("import ctypes, os, sys, time\n"
              "open('/proc/self/comm', 'w').write('wanted')\n"
              f"cuda = ctypes.CDLL('{Places.simcuda('push', 'libcuda.so.1')}')\n"
              "time.sleep(1)\n"
              "for i in range(100): cuda.cuInit(0)\n")
    trace = start(case, ["--name", "wanted"])
    process = case.start("/usr/bin/python3", "-c", script)
    checks.equal("status", 0, process.wait())
    result = finish(case, trace)
    checks.equal("cuInit", 100, result.names()["cuInit"])


def test_a_process_that_comes_into_the_cgroup_with_its_libraries(case):
    group = os.path.join(cgroup2(), f"cuscope-move-{os.getpid()}")
    try:
        os.makedirs(group)
    except OSError as error:
        raise Skip(f"no cgroup can be made: {error}") from None
    try:
        trace = start(case, ["--cgroup", group])
        process = case.program("waitload", 30)
        wait_until(lambda: "ready" in process.out(), "it to wait")
        process.signal(signal.SIGUSR1)
        wait_until(lambda: "loaded" in process.out(), "it to load")
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(process.pid))
        process.wait()
        result = finish(case, trace)
        if not result.names()["cuDriverGetVersion"] and not missed_processes(result):
            raise Failure(f"nothing was seen, and nothing missed: {result.summary['missed']}")
        checks.equal("it is late", 1, missed_processes(result))
    finally:
        case.end()
        wait_until(lambda: not open(os.path.join(group, "cgroup.procs")).read(), "it to be empty")
        os.rmdir(group)
