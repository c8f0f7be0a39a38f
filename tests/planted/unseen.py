# SPDX-License-Identifier: MIT
"""unseen.py KIND [--without] [SECONDS]: Python's of UNSEEN of kinds.py, in the manner of planted.py."""
import atexit
import concurrent.futures
import io
import logging
import os
import queue
import signal
import socket
import sqlite3
import struct
import sys
import tempfile
import traceback

import planted as base
from planted import PROBLEM_MS, after_each, compute, from_queue, kind, nap, rounds, thread, train_step, worker

# ---- what was left in the program ----------------------------------------------------------------

seen = []


def dump_stack(_signal, frame):
    for _ in range(100):
        seen.append(len(traceback.format_stack(frame)))
    signal.setitimer(signal.ITIMER_REAL, .001)


@kind
def py_signal_timer():
    """A profiler of the user's own: a millisecond after it has done so the main thread tells again where it is."""
    signal.signal(signal.SIGALRM, dump_stack)
    atexit.register(signal.signal, signal.SIGALRM, signal.SIG_IGN)
    if base.planted:
        signal.setitimer(signal.ITIMER_REAL, .001)

    def step():
        train_step()
        rounds(int(1.7 * base.rounds_a_ms))
    return step


def on_call(frame, event, _argument):
    seen.append((frame.f_code.co_name, event))
    if len(seen) > 10000:
        seen.clear()


def score_word(word):
    return len(word) * 31 % 97


@kind
def py_profile_hook():
    """A debugger's hook is told of each call of a step that makes thousands."""
    words = ["tokenizer"] * 12000
    sys.setprofile(on_call if base.planted else None)

    def step():
        train_step(5, 1500)
        sum(score_word(word) for word in words)
    return step


# ---- other threads and processes -----------------------------------------------------------------

def pin_batch(pinned, arrived):
    for _ in range(2 if base.planted else 0):
        pinned[:] = arrived


def run_pins(batches):
    """Copies by bytes objects hold the GIL."""
    arrived = bytes(24 << 20)
    pinned = bytearray(len(arrived))
    while True:
        pin_batch(pinned, arrived)
        batches.put(1)


@kind
def py_pin_thread():
    batches = queue.Queue(1)
    thread(run_pins, batches)
    return from_queue(batches)


def format_slowly(record):
    compute(PROBLEM_MS)
    return record.getMessage()


class Slowly(logging.Formatter):
    def format(self, record):
        return format_slowly(record)


def run_logs(log):
    while True:
        log.info("queue %d", len(seen))
        base.time.sleep(.0005 if base.planted else .005)


def log_loss(log):
    log.info("loss %f", .5)


@kind
def py_log_lock():
    """A thread's records are long in the making, and one at a time may use the handler."""
    log = logging.Logger("train")
    slow = logging.StreamHandler(io.StringIO())
    slow.setFormatter(Slowly())
    log.addHandler(slow)
    other = logging.Logger("queue")
    other.addHandler(slow)
    thread(run_logs, other)
    return after_each(lambda: log_loss(log))


def look_up_features():
    nap(PROBLEM_MS)


def serve_features(listener):
    connection, _ = listener.accept()
    while asked := connection.recv(4):
        look_up_features()
        connection.sendall(asked)


@kind
def py_rpc():
    """A thread of the client's waits for the server's answer, and the trainer for that thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    worker(serve_features, listener)
    client = socket.create_connection(listener.getsockname())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pool = concurrent.futures.ThreadPoolExecutor(1)

    def ask(size):
        client.sendall(struct.pack("I", size))
        return struct.unpack("I", client.recv(4))

    def ask_features():
        return pool.submit(ask, 7).result()
    return after_each(ask_features)


# ---- disks ---------------------------------------------------------------------------------------

def data_base():
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("PLANTED_FOLDER", "/var/tmp"))
    base_of = sqlite3.connect(os.path.join(folder.name, "runs.db"), check_same_thread=False)
    base_of.execute("create table metrics (step, value)")
    return folder, base_of


def record_step(runs):
    for i in range(16 if base.planted else 0):
        runs.execute("insert into metrics values (?, ?)", (i, .5))
        runs.commit()


@kind
def py_sqlite():
    folder, runs = data_base()

    def step(_kept=folder):
        train_step()
        record_step(runs)
    return step


# ---- two at once ---------------------------------------------------------------------------------

def wait_for_quota():
    nap(14)


@kind
def two_py_quota_hook():
    """An answer of a service is waited for by a sleep, and each call of a step is told to a hook."""
    step = py_profile_hook()

    def both():
        wait_for_quota()
        step()
    return both


# ---- nothing is wrong ----------------------------------------------------------------------------

def commit_behind(runs):
    while True:
        runs.execute("insert into metrics values (0, 1)")
        runs.commit()
        base.time.sleep(.1)


@kind
def py_busy_sqlite():
    folder, runs = data_base()
    thread(commit_behind, runs)

    def step(_kept=folder):
        train_step(6, 2500)
    return step


if __name__ == "__main__":
    base.main()
