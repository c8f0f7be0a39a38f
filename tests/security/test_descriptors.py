# SPDX-License-Identifier: MIT
"""Descriptors of strangers: whoever closes the last of one waits for as long as its maker likes."""

import os
import signal
import time

import checks
import gpu_trace
import test_hang
from harness import Failure, Places, links_of, wait_until

LINGER = 60   # seconds, of strangers.c
LIMIT = 15    # for cuscope to end
NOBODY = "65534"


def sent(stranger, least=1):
    """How many it could send, of those that it tried to."""
    words = stranger.out().split()
    if len(words) < 5 or int(words[1]) + int(words[3]) < least:
        raise Failure(f"it did not come to that: {stranger.out()} {stranger.err()}")
    return int(words[1])


def socket_of(pid):
    """The name that cuscope's socket for agents has in the abstract namespace."""
    links = links_of(pid)
    with open("/proc/net/unix") as sockets:
        for line in sockets:
            words = line.split()
            if len(words) == 8 and words[7].startswith("@cuscope-") and f"socket:[{words[6]}]" in links:
                return words[7][1:]
    return None


def in_time(process, begin):
    status = process.wait(LIMIT + LINGER)
    if time.monotonic() - begin > LIMIT:
        raise Failure(f"it took {time.monotonic() - begin:.0f} s: {process.err()[-300:]}")
    return status


def be_slow(process, seconds):
    """Stops cuscope for moments, so that who sends has closed its own before that is received."""
    for _ in range(int(seconds / 0.4)):
        process.signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.signal(signal.SIGCONT)
        time.sleep(0.1)


def test_a_stranger_s_sockets_are_neither_received_nor_waited_for(case):
    begin = time.monotonic()
    process = gpu_trace.start(case, ["--", "sh", "-c", f"{Places.program('gpuloop')} 1 20 1; sleep 3"])
    wait_until(lambda: socket_of(process.pid), "cuscope's socket")
    stranger = case.start("setpriv", "--reuid", NOBODY, "--clear-groups",
                          Places.program("hostile-strangers"), "10", socket_of(process.pid), name="stranger")
    checks.equal("status", 0, in_time(process, begin))
    stranger.wait()
    sent(stranger)
    if not gpu_trace.read(case).kernels:
        raise Failure(f"no kernels: {process.err()}")


def test_a_target_s_sockets_are_neither_received_nor_waited_for(case):
    begin = time.monotonic()
    process = gpu_trace.start(case, ["--", Places.program("hostile-strangers"), "3", "agent"])
    wait_until(lambda: "ready" in process.out(), "the target")
    be_slow(process, 2)
    in_time(process, begin)
    checks.contains("what it said", "there are no GPU times", process.err())


def test_sockets_by_the_pair_of_a_target_that_is_entered_are_not_waited_for(case):
    """Its kernel makes that pair for it, so nothing can be refused ahead."""
    target = case.program("hostile-strangers", "12", "entered", name="target")
    wait_until(lambda: "ready" in target.out(), "the target")
    time.sleep(0.3)
    begin = time.monotonic()
    process = gpu_trace.start(case, ["--duration", "5", "-p", str(target.pid)])
    be_slow(process, 4)
    in_time(process, begin)
    target.wait()
    if not sent(target):
        raise Failure(f"nothing was sent: {target.out()} {process.err()}")


def test_a_file_that_is_only_called_nvidia_uvm_is_not_waited_for(case):
    """Its server answers neither who asks what it is nor who closes it."""
    with test_hang.serve(case, test_hang.text_of(case, "x"), folder=case.path("nvidia-uvm")) as (server, path):
        held = os.open(path, os.O_RDONLY)
        try:
            begin = time.monotonic()
            process = case.program("hostile-copies", str(os.getpid()), str(held), name="copies")
            result = test_hang.end_within(case, process, 10, server)
            checks.equal("seconds", True, time.monotonic() - begin < 8)
            checks.contains("what came of it", "cannot be had: Connection timed out", process.out())
        finally:
            os.close(held)
            server.stop()
