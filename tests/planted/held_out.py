# SPDX-License-Identifier: MIT
"""held_out.py KIND [--without] [SECONDS]: Python's of the kinds that no rule of `cuscope why` was written against, in the
manner of planted.py."""
import asyncio
import collections
import concurrent.futures
import copy
import ctypes
import os
import queue
import random
import re
import struct
import subprocess
import tempfile
import threading
import zlib

import planted as base
from planted import PROBLEM_MS, after_each, compute, from_queue, kind, multiprocessing, nap, rounds, thread, train_step, worker

# ---- the main thread ----------------------------------------------------------------------------

rows = None
values = None


def inflate_shard():
    for _ in range(4 if base.planted else 0):
        zlib.decompress(rows)


@kind
def py_inflate():
    global rows
    rows = zlib.compress(bytes(random.Random(1).choices(b"abcdefgh", k=400000)))
    return after_each(inflate_shard)


def parse_field(word):
    try:
        return float(word)
    except ValueError:
        return 0.


def parse_row():
    return [parse_field(word) for word in rows]


@kind
def py_exceptions():
    global rows
    rows = ["n/a", "-", "1.5", "?"] * 1500

    def step():
        train_step()
        if base.planted:
            parse_row()
    return step


def encode_sample(text):
    return [len(word) * 31 % 50000 for word in re.findall(r"\w+|[^\w\s]", text.lower())]


def encode_batch():
    return [encode_sample(text) for text in rows]


@kind
def py_tokenizer():
    """Sample by sample in the trainer's thread."""
    global rows
    rows = ["The quick brown fox, number 17, jumps over the lazy dog's back again and again. " * 3] * 250

    def step():
        train_step()
        if base.planted:
            encode_batch()
    return step


def pad_sequences():
    longest = max(len(row) for row in rows)
    return [row + [0] * (longest - len(row)) for row in rows]


@kind
def py_pad():
    global rows
    rows = [[1] * (i * 37 % 1500) for i in range(300)]

    def step():
        train_step()
        if base.planted:
            pad_sequences()
    return step


def augment_noise():
    if base.planted:
        rows[:] = [random.gauss(0, 1) for _ in range(16000)]


@kind
def py_random():
    global rows
    rows = []
    return after_each(augment_noise)


def snapshot_state():
    if base.planted:
        copy.deepcopy(rows)


@kind
def py_deepcopy():
    global rows
    rows = [{"name": f"layer{i}", "shape": [i, i + 1], "values": list(range(8))} for i in range(900)]
    return after_each(snapshot_state)


def predictions_to_list():
    """As .tolist(): a copy to the host, and an object of each number."""
    count = 120000
    host = (ctypes.c_float * count)()
    base.gpu.call("cuMemcpyDtoHAsync_v2", host, values, ctypes.c_size_t(4 * count), base.gpu.stream)
    base.gpu.wait()
    return list(host)


@kind
def py_tolist():
    global values
    values = ctypes.c_void_p()

    def step():
        if not values:
            base.gpu.call("cuMemAlloc_v2", ctypes.byref(values), ctypes.c_size_t(1 << 20))
        train_step()
        if base.planted:
            predictions_to_list()
    return step


# ---- other processes and threads -----------------------------------------------------------------

def ask_temperature():
    if base.planted:
        subprocess.check_output(["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do cat /proc/stat; done"])


@kind
def py_spawn():
    return after_each(ask_temperature)


def collate_records():
    for _ in range(3 if base.planted else 0):
        base.json.loads(rows)


def run_collate(batches):
    while True:
        collate_records()
        batches.put(1)


@kind
def py_collate_json():
    global rows
    rows = base.json.dumps([{"id": i, "text": "x" * 20, "label": [i, i + 1]} for i in range(5000)])
    batches = multiprocessing.Queue(2)
    worker(run_collate, batches)
    return from_queue(batches)


def read_next_shard():
    nap(70)


def run_shards(batches):
    """Every eighth batch has to come from a shard of its own, and there is room for one batch."""
    while True:
        read_next_shard()
        for _ in range(8):
            batches.put(1)


@kind
def py_queue_of_one():
    batches = queue.Queue(1)
    thread(run_shards, batches)
    return from_queue(batches)


def decode_in_threads(_):
    compute(PROBLEM_MS / 3)


@kind
def py_pool_of_threads():
    """Threads that decode what only one of them can at a time."""
    pool = concurrent.futures.ThreadPoolExecutor(4)

    def decode_all():
        list(pool.map(decode_in_threads, range(4)))
    return after_each(decode_all)


async def next_request():
    if base.planted:
        await asyncio.sleep(PROBLEM_MS / 1000)


@kind
def py_async():
    loop = asyncio.new_event_loop()

    def serve_requests():
        loop.run_until_complete(next_request())
    return after_each(serve_requests)


def save_every_tenth(path):
    with open(path + ".new", "wb") as file:
        for _ in range(16):
            file.write(b"x" * (2 << 20))
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


@kind
def py_save():
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("PLANTED_FOLDER", "/var/tmp"))
    path = os.path.join(folder.name, "state")
    steps = [folder, 0]

    def step():
        train_step()
        steps[1] += 1
        if base.planted and steps[1] % 10 == 0:
            save_every_tenth(path)
    return step


# ---- two at once ---------------------------------------------------------------------------------

@kind
def two_py_spawn_tokens():
    py_tokenizer()

    def step():
        train_step()
        if base.planted:
            run_slow_tool()
            encode_batch()
    return step


def run_slow_tool():
    subprocess.run(["sleep", "0.025"], check=True)


@kind
def two_py_shard_inflate():
    """A worker is late, and what it hands over is inflated by the trainer, which is asked for one at a time."""
    py_inflate()
    asked, given = multiprocessing.Queue(), multiprocessing.Queue()
    worker(answer_late, asked, given)

    def step():
        train_step()
        if base.planted:
            asked.put(1)
            given.get()
            inflate_shard()
    return step


def answer_late(asked, given):
    while asked.get():
        nap(14)
        given.put(1)


# ---- nothing is wrong ----------------------------------------------------------------------------

def train_long():
    base.train_step(6, 2500)


def inflate_ahead(batches):
    while True:
        zlib.decompress(rows)
        batches.put(1)


@kind
def py_busy_inflate():
    py_inflate()
    batches = queue.Queue(4)
    thread(inflate_ahead, batches)

    def step():
        batches.get()
        train_long()
    return step


async def beat():
    while True:
        await asyncio.sleep(.005)


@kind
def py_busy_async():
    loop = asyncio.new_event_loop()

    def run():
        loop.run_until_complete(beat())
    thread(run)
    return train_long


recent = collections.deque(maxlen=50)
recent_lock = threading.Lock()


def report_metrics():
    while True:
        base.time.sleep(.05)
        with recent_lock:
            rounds(int(.1 * base.rounds_a_ms) + len(recent))


@kind
def py_busy_metrics():
    """A thread of metrics has the lock for a moment, twenty times a second."""
    thread(report_metrics)

    def step():
        train_long()
        with recent_lock:
            recent.append(1)
    return step


if __name__ == "__main__":
    base.main()
