# SPDX-License-Identifier: MIT
"""What the node agent takes does not grow with the processes that come and go.

NODE_PROCESSES says how many there are: 600 by default, 100,000 in `make stress-node`, which are more
than there are numbers of processes on most machines.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, stress, wait_until
from node import Node

PROCESSES = int(os.environ.get("NODE_PROCESSES", "600"))
ROUND = 300
SETTINGS = "[agent]\nage = 0\ninterval = 200ms\ntop = 20\n"
MIB = 1 << 20


def churn(case, *arguments):
    env = dict(case.environment(), SIMCUDA_TIME_SCALE="0",
               LD_LIBRARY_PATH=f"{Places.simcuda('push')}:{Places.simcuda()}")
    program = Places.program("churn")
    checks.equal("status", 0, subprocess.run([program, *map(str, arguments)], env=env, check=False).returncode)


def figures(node):
    wait_until(lambda: node.get()[0] == 200, "figures that are not old", 30)
    found = node.metrics()
    lost = {dict(labels)["reason"]: n for (name, labels), n in found.items()
            if name == "cuscope_lost_events_total" and n}
    return {"lost": lost, **{name: value for (name, labels), value in found.items() if not labels},
            **{name: value for (name, labels), value in found.items() if labels == (("kind", "device"),)}}


def at_most(what, most, seen):
    if seen > most:
        raise Failure(f"{what}: {seen:,.0f}, more than {most:,.0f}")


def taken(now):
    return {name: now[f"cuscope_agent_{name}"] for name in ("resident_bytes", "bpf_bytes", "open_files")}


def has_settled(node, seen):
    """All of them were met, and none is left, nor its memory."""
    now = figures(node)
    return (now["cuscope_processes_seen_total"] >= seen and not now["cuscope_processes"]
            and not now.get("cuscope_live_bytes", 0))


@alone
def test_node_bounds_processes_that_come_and_go(case):
    node = Node(case, SETTINGS)
    done, first = 0, None
    while done < PROCESSES:
        churn(case, ROUND, 4)
        done += ROUND
        wait_until(lambda: has_settled(node, done), f"{done} processes, not {figures(node)}", 60)
        if first is None and done >= PROCESSES // 5:
            first = taken(figures(node))
    last = figures(node)
    checks.equal("what is lost", {}, last["lost"])
    # processes of others on this machine may have launched as well
    checks.equal("launches are as many as processes, or more", True, last["cuscope_launches_total"] >= done)
    at_most("processes", done + 100 + done // 10, last["cuscope_processes_seen_total"])
    growth = {"resident_bytes": 12 * MIB, "bpf_bytes": MIB, "open_files": 24}
    for name, more in growth.items():
        at_most(f"{name} after {done} processes", first[name] + more, taken(last)[name])
    at_most("resident", 64 * MIB, last["cuscope_agent_resident_bytes"])


@alone
def test_node_bounds_many_at_once(case):
    many = 500 if PROCESSES > 10000 else 60
    node = Node(case, SETTINGS)
    with subprocess.Popen([Places.program("churn"), str(many), str(many), "1500"],
                          env=dict(case.environment(), SIMCUDA_TIME_SCALE="0")) as process:
        wait_until(lambda: figures(node)["cuscope_processes"] >= many * 0.9, f"{many} at once", 30)
        series = sum(name == "cuscope_process_info" for name, _ in node.metrics())
        at_most("series", 20, series)
        checks.equal("status", 0, process.wait())
    wait_until(lambda: has_settled(node, many), f"their end, not {figures(node)}", 30)


@alone
def test_node_bounds_ends_that_were_lost(case):
    """What is not told is found out: a process without an end would be live for ever."""
    if PROCESSES <= 10000:
        raise Skip("it takes 10 s: make stress-node")
    node = Node(case, SETTINGS)
    os.kill(node.process.pid, signal.SIGSTOP)
    churn(case, 20000, 4)  # of 5,000, all records have room
    os.kill(node.process.pid, signal.SIGCONT)
    wait_until(lambda: figures(node)["lost"].get("records", 0) > 0, "lost records")
    wait_until(lambda: has_settled(node, 1), f"all of them to have ended, not {figures(node)}", 30)


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000


def test_node_whose_loop_does_not_turn_is_told(case):
    """Its first thread alone is held, as one that hangs: the server's answers. With long intervals no figure is old by then."""
    node = Node(case, "[agent]\nage = 0\ninterval = 5s\n")
    age = ("cuscope_agent_loop_age_seconds", ())
    at_most("age of a loop that turns", 2, node.metrics()[age])
    libc = ctypes.CDLL(None, use_errno=True)
    pid = node.process.pid
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) or libc.ptrace(PTRACE_INTERRUPT, pid, None, None):
        raise Failure(os.strerror(ctypes.get_errno()))
    try:
        os.waitpid(pid, WALL)
        begin = time.monotonic()
        wait_until(lambda: node.get("/healthz")[0] == 503, "the news", 10)
        if not 3 < time.monotonic() - begin < 8:
            raise Failure(f"it was told after {time.monotonic() - begin:.1f} s")
        checks.contains("what it says", r"the agent hangs \d+\.\d{3} s\n", node.get("/healthz")[2])
        if not node.metrics()[age] > 4:
            raise Failure("the metric does not tell")
        checks.contains("OpenMetrics", r"(?s)^# TYPE cuscope_agent_loop_age_seconds gauge\n.*\n# EOF\n$",
                        node.get(headers={"Accept": "application/openmetrics-text"})[2])
    finally:
        libc.ptrace(PTRACE_DETACH, pid, None, None)
    wait_until(lambda: node.get("/healthz")[0] == 200, "a healthy agent again", 10)


IMAGES = 25
COPIES = 6  # of the driver in each, with 169 hooks each: 16 images would have all hooks that there are


def launches_of_image(case, node, number):
    """Runs what another container's image would be: with files of its own, which are gone after it."""
    folder = case.path(f"image-{number}")
    os.makedirs(folder)
    for i in range(COPIES):
        shutil.copy(Places.simcuda("push", "libcuda.so.1"), f"{folder}/libcuda-{i}.so.1")
    before = figures(node)["cuscope_launches_total"]
    env = dict(case.environment(), SIMCUDA_TIME_SCALE="0",
               LD_PRELOAD=":".join(f"{folder}/libcuda-{i}.so.1" for i in range(COPIES)))
    checks.equal("status", 0, subprocess.run([Places.program("churn"), "100", "1", "10"], env=env, check=False).returncode)
    shutil.rmtree(folder)
    time.sleep(0.6)  # three snapshots
    return figures(node)["cuscope_launches_total"] - before


@alone
@stress("it takes 44 s")
def test_node_bounds_images_that_come_and_go(case):
    node = Node(case, SETTINGS)
    first = None
    for number in range(IMAGES):
        launches = launches_of_image(case, node, number)
        if launches < 20:
            raise Failure(f"image {number}: {launches} launches of 100 were counted: {figures(node)}")
        if number == IMAGES // 2:
            first = figures(node)
    last = figures(node)
    checks.equal("files that were not hooked", 0, last["cuscope_agent_refused_files_total"])
    checks.equal("files are let go", True, last["cuscope_agent_unhooked_files_total"] >= IMAGES * COPIES / 2)
    # half of the room, those of the images of the last seconds, and those that stay two seconds for what is on its way
    at_most("hooked files", 16383 // 169 // 2 + 5 * COPIES + 10, last["cuscope_agent_hooked_files"])
    # names in stacks keep some files open, up to a limit of their own
    at_most("open files", first["cuscope_agent_open_files"] + 12 * IMAGES, last["cuscope_agent_open_files"])
    for name, value in first.items():
        if name.endswith("_total") and last.get(name, 0) < value:
            raise Failure(f"{name} went down from {value} to {last.get(name)}")
