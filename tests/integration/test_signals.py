# SPDX-License-Identifier: MIT
"""Signals of a command that is held: cuscope stops its threads by one, and keeps none of theirs."""

import json
import sys

import checks
from harness import Failure, Places

# Each kind is sent five times, one at a time, as the kernel, a process and a thread send it.
COUNTS = r"""
import ctypes, fcntl, json, os, pty, signal, socket, struct, sys, termios, threading, time
libc = ctypes.CDLL(None)
counts, seen = {}, []
for number in (signal.SIGURG, signal.SIGWINCH, signal.SIGUSR1, signal.SIGCONT):
    signal.signal(number, lambda number, frame: seen.append(number))

def five(name, number, send):
    seen.clear()
    for i in range(5):
        send(i)
        end = time.monotonic() + 2
        while len(seen) <= i and time.monotonic() < end:
            time.sleep(0.001)
    counts[name] = seen.count(number)

listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far = listener.accept()[0]
fcntl.fcntl(far, fcntl.F_SETOWN, os.getpid())
five("out of band", signal.SIGURG, lambda i: near.send(b"x", socket.MSG_OOB))

master, slave = pty.openpty()
if os.fork() == 0:
    os._exit(0)
os.wait()
for number in (signal.SIGURG, signal.SIGWINCH, signal.SIGUSR1, signal.SIGCONT):
    five(f"kill {number}", number, lambda i: os.kill(os.getpid(), number))
    five(f"thread {number}", number,
         lambda i: signal.pthread_kill(threading.get_ident(), number))

pid = os.fork()  # a session of its own, whose terminal changes its size
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    five("window", signal.SIGWINCH, lambda i: fcntl.ioctl(
        master, termios.TIOCSWINSZ, struct.pack("HHHH", 20 + i, 80, 0, 0)))
    print(json.dumps({"window": counts["window"]}), flush=True)
    os._exit(0)
os.wait()

ctypes.CDLL(sys.argv[1]).cuInit(0)
print(json.dumps(counts), flush=True)
"""


def test_signals_of_a_held_command_arrive(case):
    trace = case.start_trace([], ["--", sys.executable, "-c", COUNTS,
                                  Places.simcuda("push", "libcuda.so.1")])
    checks.equal("status", 0, trace.wait())
    counts = {}
    for line in trace.out().splitlines():
        if line.startswith("{"):
            counts.update(json.loads(line))
    if len(counts) < 10:
        raise Failure(f"{counts}: {trace.err()}")
    checks.equal("signals that did not arrive five times", {},
                 {name: n for name, n in counts.items() if n != 5})
    if "Held while hooking" not in trace.out():
        raise Failure("the command was not held")
