# SPDX-License-Identifier: MIT
"""Who has the port of NCCL's RAS in a network answers for it: late, at length, or not while an exec lasts."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import checks
from harness import Failure, Places, alone, wait_until
from test_exec import LIMIT, server as fuse_server
from test_ranks import join_network, own_network

AS_USER = ("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups")


EXECUTES = """
import ctypes, os, select, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC)
print("ready", flush=True)
while not select.select([0], [], [], 0.02)[0]:
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256))
    cuda.cuMemFree_v2(memory)
os.execv("/bin/sleep", ["sleep", "100"])
"""

# Gives everybody what is in a file, so many seconds late.
SERVES = """
import contextlib, socket, sys, time
with open(sys.argv[1]) as file:
    answer = file.read().encode()
listening = socket.create_server(("127.0.0.1", 28028))
print("ready", flush=True)
while True:
    with listening.accept()[0] as one, contextlib.suppress(OSError):
        time.sleep(float(sys.argv[2]))
        one.sendall(answer[:answer.index(b"OK")])
        asked = b""
        while not asked.endswith(b"STATUS\\n"):
            asked += one.recv(1000) or b"STATUS\\n"
        one.sendall(answer[answer.index(b"OK"):])
"""


def answer(pid, ranks, counts="", comms=1):
    """Of communicators with so many ranks, each of which is one process."""
    rank = ", ".join('{ "rank": %d, "pid": %d, %s }' % (i, pid, counts) for i in range(ranks))
    comm = ", ".join('{ "hash": "0x%x", "size": %d, "ranks": [ %s ] }' % (i + 1, ranks, rank) for i in range(comms))
    return 'SERVER PROTOCOL 2\nOK\nOK\n{ "nccl_version": "2.28.9", "communicators": [ ' + comm + " ] }"


@contextlib.contextmanager
def hostile(case, late, *command, make=answer, ranks=1):
    """A user's process in a network of its own, where he answers."""
    os.chmod(case.folder, 0o755)
    target = case.start(*AS_USER, *command, stdin=subprocess.PIPE, name="target",
                        preexec_fn=own_network)
    wait_until(lambda: "ready" in target.out(), "the program to begin")
    with open(case.path("answer"), "w") as file:
        file.write(make(target.pid, ranks))
    other = case.start(*AS_USER, sys.executable, "-c", SERVES, case.path("answer"), str(late), name="ras",
                       preexec_fn=lambda: join_network(target.pid))
    try:
        wait_until(lambda: "ready" in other.out(), "RAS")
        yield target
    finally:
        other.process.kill()


def loop():
    return Places.program("loop"), "200000", "500"


def record(case, target, *options):
    return case.cuscope("record", "--gpu", "-o", case.path("out.cuscope"), "-p", target.pid, *options)


@alone
def test_ras_that_answers_late_holds_up_no_end(case):
    with hostile(case, 2.6, *loop()) as target:
        process = record(case, target)
        time.sleep(4)
        begin = time.monotonic()
        process.signal(signal.SIGINT)
        process.process.wait(timeout=LIMIT)
        took = time.monotonic() - begin
        if took > 1.5:
            raise Failure(f"{took:.1f} s until the first SIGINT ended it")


def test_ras_that_repeats_a_rank_is_told_of_64_times_an_answer(case):
    with hostile(case, 0, *loop(), ranks=32000) as target:
        record(case, target, "--duration", "2s").wait()
    checks.equal("status", 0, case.cuscope("export", case.path("out.cuscope"), "-o", case.path("out.jsonl")).wait())
    with open(case.path("out.jsonl")) as events:
        told = sum('"ras.rank"' in line for line in events)
    if not 0 < told <= 64 * 13:
        raise Failure(f"{told} ranks are told of")


@alone
def test_ras_of_a_process_whose_exec_is_never_over_holds_up_nobody(case):
    """Its network is asked for, and what its first thread waits in, since its rank is said to stand still."""
    def uneven(pid, ranks):
        two = ", ".join('{ "rank": %d, "pid": %d, "AllReduce": %d }' % (i, pid + i, i) for i in range(2))
        return ('SERVER PROTOCOL 2\nOK\nOK\n{ "nccl_version": "2.28.9", "communicators": [ { "hash": "0x1", "size": 2, '
                '"ranks": [ ' + two + " ] } ] }")
    with fuse_server(case) as file, hostile(case, 0, sys.executable, "-c", EXECUTES, file, make=uneven) as target:
        process = record(case, target)
        time.sleep(0.9)
        target.process.stdin.close()  # it executes now
        time.sleep(3)
        process.signal(signal.SIGINT)
        try:
            process.process.wait(timeout=8)
        except subprocess.TimeoutExpired:
            process.signal(signal.SIGKILL)
            raise Failure(f"cuscope hangs: {process.err()}") from None

