# SPDX-License-Identifier: MIT
"""The node agent beside hostile users: names that break out of labels, and clients that send anything."""

import os
import random
import shutil
import socket
import subprocess
import sys
import time

import checks
from harness import Failure, Places, alone, wait_until
from node import Node, parse

MOST_MIB, AFTER_MIB = 176, 112
NAMES = ('a"} 9\nb 1', "x\\", '<b>&"', "\x1b[2J", "ü" * 7, "l1\nl2 # EOF")


def test_node_names_break_out_of_nothing(case):
    node = Node(case)
    running = []
    for i, name in enumerate(NAMES):
        copy = os.path.join(case.folder, str(i), name.replace("/", "_"))
        os.makedirs(os.path.dirname(copy))
        shutil.copy(Places.program("gpuloop"), copy)
        running.append(case.start(copy, "20", "10", name=f"running-{i}", stdin=subprocess.PIPE))
    latin = os.path.join(case.folder, "latin")
    os.makedirs(latin)
    shutil.copy(Places.program("gpuloop").encode(), latin.encode() + b"/\xff\xfe")
    running.append(case.start(latin.encode() + b"/\xff\xfe", "20", "10", name="running-latin", stdin=subprocess.PIPE))
    pids = {str(process.pid) for process in running}

    def seen():
        return pids <= {dict(labels).get("pid") for _, labels in node.metrics()}  # which parse() checks
    wait_until(seen, "all of them to be seen", 30)
    for headers in ({}, {"Accept": "application/openmetrics-text"}):
        text = node.get(headers=headers)[2]
        bad = [c for c in text if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0]
        if bad:
            raise Failure(f"controls in the exposition: {set(bad)}")
        named = {dict(labels)["process"] for (_, labels) in parse(text) if dict(labels).get("pid") in pids}
        if 'a\\"} 9' not in named or 'x\\\\' not in named:
            raise Failure(f"names: {named}")
    if "<b>" in node.get("/")[2]:
        raise Failure("a name is a tag on the page")


def as_user(case, uid, name, rate):
    env = case.environment()
    env.pop("SAMPLE_COUNTS")  # a file of root's
    return case.start("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", Places.program("loop"),
                      "30", str(rate), name=name, stdin=subprocess.PIPE, env=env)


@alone
def test_node_one_user_leaves_room_for_the_processes_of_others(case):
    """With a share for each user: the eight that are busiest by far are one user's."""
    node = Node(case, "[agent]\nage = 0\ninterval = 200ms\ntop = 5\n")
    hostile = [as_user(case, 1234, f"hostile-{i}", 300) for i in range(8)]
    wait_until(lambda: all("ready" in process.out() for process in hostile), "them to run")
    victim = as_user(case, 1235, "victim", 5)

    def users():
        found = {dict(labels)["pid"]: dict(labels).get("user") for (name, labels) in node.metrics()
                 if name == "cuscope_process_info"}
        return found if found.get(str(victim.pid)) == "1235" else None
    seen = wait_until(users, "its series", 20)
    if not 2 <= list(seen.values()).count("1234") <= 4:
        raise Failure(f"who has series: {seen}")
    if node.metrics()["cuscope_agent_processes_over_share", ()] < 1:
        raise Failure("no metric tells that a user has more than his share")


def below(pid):
    """All processes that it started, and these."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    return children + [found for child in children for found in below(child)]


@alone
def test_node_a_container_that_dies_while_it_is_scraped(case):
    """All processes of a pid namespace end at once: no scrape fails, and nothing of them stays live."""
    node = Node(case)
    for _ in range(2):
        inside = case.start("unshare", "--pid", "--fork", "--kill-child", Places.program("churn"), "4", "4", "30000",
                            name="inside")
        pids = wait_until(lambda: below(inside.pid) if len(below(inside.pid)) == 5 else None, "its processes")[1:]
        wait_until(lambda: all(node.of(pid).get("live_bytes device") for pid in pids), "their memory", 20)
        inside.process.kill()
        for _ in range(20):
            node.metrics()  # which fails where the status is not 200, or the text is none
        wait_until(lambda: not any(node.of(pid).get("live_bytes device") for pid in pids), "their end", 20)
        if not all(node.of(pid).get("launches_total") for pid in pids):
            raise Failure("their last figures are gone at once")


def test_node_clients_that_send_anything(case):
    node = Node(case)
    chance = random.Random(13)
    pieces = [b"GET", b" ", b"/metrics", b" HTTP/1.1", b"\r\n", b"\n", b"\r", b"Host: x\r\n", b":", b"\0", b"\xff" * 100,
              b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n",
              b"Authorization: Bearer " + b"A" * 3000 + b"\r\n", b"Accept: " + b"application/openmetrics-text;q=" * 50 + b"\r\n",
              b"/" + b"%00" * 50, b"?" + b"a=b&" * 200, b"\r\n\r\n", b"Expect: 100-continue\r\n", b"Connection: keep-alive\r\n"]
    for _ in range(400):
        with socket.create_connection(("127.0.0.1", node.port), timeout=10) as client:
            client.settimeout(0.05)
            try:
                client.sendall(b"".join(chance.choices(pieces, k=chance.randrange(1, 15))))
                client.recv(100)
            except OSError:
                pass
    status, _, text = node.get()
    if status != 200 or not parse(text):
        raise Failure(f"status {status}")
    memory = node.metrics()["cuscope_agent_resident_bytes", ()]
    if memory > 64 << 20:
        raise Failure(f"{memory} bytes of memory")


def test_node_one_user_leaves_room_for_the_connections_of_others(case):
    """By as many addresses of 127/8 as there are: they are all his."""
    node = Node(case)
    script = ("import socket, sys, time\n"
              "print('begins', flush=True)\n"
              "sys.stdin.read()\n"
              "held = [socket.create_connection(('127.0.0.1', int(sys.argv[1])), source_address=(f'127.0.1.{i + 1}', 0)) for i in range(80) if not time.sleep(0.005)]\n"
              "print('ready', flush=True)\n"
              "time.sleep(100)\n")
    crowd = case.start("setpriv", "--reuid", "1234", "--clear-groups", sys.executable, "-c", script, str(node.port), name="crowd",
                       stdin=subprocess.PIPE)
    wait_until(lambda: "begins" in crowd.out(), "his program")
    with socket.create_connection(("127.0.0.1", node.port), timeout=4) as client:  # which ends after 5 s
        crowd.process.stdin.close()
        wait_until(lambda: "ready" in crowd.out(), "his connections")
        try:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = client.recv(100)
        except OSError:
            answer = b""
    crowd.process.kill()
    checks.contains("answer", "^HTTP/1.1 200", answer.decode())


def anonymous(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("RssAnon:"))


def figures(node):
    """They are old for a moment where there is much to do."""
    found = wait_until(lambda: (answer := node.get())[0] == 200 and answer, "figures that are not old", 30)
    return parse(found[2])


def stacks_without_room(node):
    return figures(node)["cuscope_agent_stacks_lost_total", (("why", "no_room"),)]


@alone
def without_room(case, node, uid):
    """Of 20,000 stacks of a user who comes now: how many had no room."""
    before = stacks_without_room(node)
    other = case.start("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", Places.program("hostile-floods"),
                       "stacks", "20000", name=f"other-{uid}")
    checks.equal("status", 0, other.wait(30))
    time.sleep(1)
    return stacks_without_room(node) - before


def test_node_floods_of_stacks_leave_room_for_those_of_others(case):
    """Three users' programs had all that there is for stacks, for as long as the agent ran: nothing of it was given back."""
    node = Node(case, "[agent]\nage = 0\ninterval = 200ms\ntop = 20\n[leaks]\ninterval = 400ms\nolder = 100ms\n")
    leaking = case.program("leak", 4000, 50)

    def leaks():
        return {dict(labels)["place"] for (name, labels) in figures(node)
                if name == "cuscope_suspected_leak_bytes" and dict(labels)["pid"] == str(leaking.pid)}
    first = wait_until(leaks, "a leak", 30)
    checks.contains("its place", "leaky::Model::grow_cache", "".join(first))
    as_one, peak = ["--clear-groups", Places.program("hostile-floods")], 0
    floods = [case.start("setpriv", "--reuid", str(uid), "--regid", str(uid), *as_one, "passing", "60000", name=f"flood-{uid}-{i}")
              for uid in (1234, 1235, 1236) for i in range(2)]
    while any(flood.process.poll() is None for flood in floods):
        peak = max(peak, anonymous(node.process.pid))
        checks.equal("other places of the leak", set(), leaks() - first)
        time.sleep(0.2)
    if peak > MOST_MIB:
        raise Failure(f"{peak:.0f} MiB of memory, {MOST_MIB} at most")
    wait_until(lambda: anonymous(node.process.pid) < AFTER_MIB, f"less than {AFTER_MIB} MiB of memory", 60)
    refused = [without_room(case, node, uid) for uid in (1237, 1238, 1239)]
    if 0 not in refused:  # what the floods had is given back in seconds, and on a slow machine not before the first comes
        raise Failure(f"stacks of other users without room, one after the other: {refused}")
    wait_until(lambda: leaks() == first, f"the leak's place, not {leaks()}", 30)


TWICE = """import ctypes, os, sys, time
cuda, at = ctypes.CDLL(sys.argv[2]), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1 << 60))
time.sleep(1)
if len(sys.argv) == 3:
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
print("ready", flush=True)
time.sleep(30)
"""


def test_node_a_program_that_begins_anew_is_no_series_twice(case):
    """The same call fails before its exec and after it: nobody reads figures with a series twice."""
    node = Node(case, options=["--names", "gpuprobe"])
    script = case.path("twice.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(TWICE)
    process = case.start(sys.executable, script, script, Places.simcuda("push", "libcuda.so.1"), name="twice")
    wait_until(lambda: "ready" in process.out(), "its second beginning", 20)

    def failed():
        return [value for (name, labels), value in node.metrics().items()
                if name == "cuda_error_histogram" and dict(labels)["pid"] == str(process.pid)]
    wait_until(lambda: failed() == [2], "both to be one", 20)
