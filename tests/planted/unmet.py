# SPDX-License-Identifier: MIT
"""unmet.py KIND [--without] [SECONDS]: more of Python's of UNSEEN of kinds.py, in the manner of planted.py."""
import asyncio
import atexit
import concurrent.futures
import contextlib
import ctypes
import io
import multiprocessing
import signal
import threading
import typing
import weakref

import planted as base
from planted import after_each, compute, kind, rounds, train_step

# ---- what a line of Python hides -----------------------------------------------------------------

def pick_parser():
    """A module that is not there is looked for anew each time."""
    try:
        import fast_parser_that_is_not_installed
        return fast_parser_that_is_not_installed
    except ImportError:
        return base.json


def parse_samples(texts):
    parser = pick_parser()
    for text in texts:
        if base.planted:
            parser = pick_parser()
        parser.loads(text)


@kind
def py_missing_import():
    texts = ['{"id": 1, "label": [1, 2]}'] * 120
    return after_each(lambda: parse_samples(texts))


@typing.runtime_checkable
class Sample(typing.Protocol):
    tokens: list
    label: int
    weight: float

    def length(self):
        ...

    def crop(self, n):
        ...


class Text:
    def __init__(self, n):
        self.tokens, self.label, self.weight = [n], n, 1.0

    def length(self):
        return len(self.tokens)

    def crop(self, n):
        return self.tokens[:n]


def check_samples(samples):
    for sample in samples if base.planted else ():
        if not isinstance(sample, Sample):
            raise TypeError("no sample")


@kind
def py_protocol():
    """Whether something is of a protocol is asked of each of its members."""
    samples = [Text(i) for i in range(900)]
    return after_each(lambda: check_samples(samples))


class Tensor:
    def __init__(self, n):
        self.n = n


sizes = {}
last_sizes = []


def on_tensor_gone(ref):
    size, name = sizes.pop(ref)
    last_sizes.append(size)
    del last_sizes[:-20]
    sizes["last"] = f"{name}: {size:,} bytes are free, {sum(last_sizes):,} of the last {len(last_sizes)}"


def track_tensors(tensors):
    for tensor in tensors if base.planted else ():
        sizes[weakref.ref(tensor, on_tensor_gone)] = tensor.n, "activation"


def drop_tensors(tensors):
    tensors.clear()


@kind
def py_weakrefs():
    """Who counts tensors is told of the end of each."""
    def step():
        tensors = [Tensor(i) for i in range(4000)]
        track_tensors(tensors)
        train_step()
        drop_tensors(tensors)
    return step


# ---- other tasks and processes -------------------------------------------------------------------

def summarize_request():
    compute(base.PROBLEM_MS)


async def serve_summaries():
    while True:
        summarize_request()
        await asyncio.sleep(.0005)


async def read_batches(batches):
    while True:
        await batches.put(b"x" * 100)


async def end_tasks(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def take_batch(batches):
    await asyncio.sleep(.001)
    return await batches.get()


@kind
def py_event_loop():
    """A coroutine that computes lets no other of its loop go on."""
    loop = asyncio.new_event_loop()
    batches = asyncio.Queue(2)
    tasks = [loop.create_task(serve_summaries()), loop.create_task(read_batches(batches))]

    atexit.register(lambda: loop.run_until_complete(end_tasks(tasks)))

    def step():
        train_step()
        loop.run_until_complete(take_batch(batches))
    return step


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def augment_samples(samples):
    return samples


def augment_in_pool(pool, samples):
    pool.submit(augment_samples, samples).result()


@kind
def py_process_pool():
    """What a pool is to do little with is carried there and back."""
    pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"), end_with_parent)
    samples = [{"id": i, "text": f"x{i}", "label": [i, i + 1]} for i in range(3000 if base.planted else 1)]
    augment_in_pool(pool, samples)
    return after_each(lambda: augment_in_pool(pool, samples))


# ---- two at once ---------------------------------------------------------------------------------

def wait_for_flag(flag):
    flag.wait(.014 if base.planted else 0)


def length_of(text):
    return len(text)


def bucket_by_length(texts):
    for _ in range(5 if base.planted else 0):
        sorted(texts, key=length_of)


@kind
def two_py_flag_sort():
    """A flag that nobody sets is waited for until the time is over, and texts are sorted by a function."""
    flag = threading.Event()
    texts = ["x" * (i * 7919 % 101) for i in range(8000)]

    def step():
        train_step()
        wait_for_flag(flag)
        bucket_by_length(texts)
    return step


# ---- nothing is wrong ----------------------------------------------------------------------------

@contextlib.contextmanager
def timed(name, out):
    begin = base.time.perf_counter()
    yield
    print(f"{name} {base.time.perf_counter() - begin:.6f}", file=out, flush=True)


def load_sample():
    base.time.sleep(.004)
    rounds(int(.5 * base.rounds_a_ms))


@kind
def py_busy_futures():
    """Three batches are in the making, and each step is timed."""
    pool = concurrent.futures.ThreadPoolExecutor(2)
    ahead = [pool.submit(load_sample) for _ in range(3)]
    out = io.StringIO()

    def step():
        with timed("load", out):
            ahead.pop(0).result()
            ahead.append(pool.submit(load_sample))
        with timed("train", out):
            train_step(6, 2500)
    return step


if __name__ == "__main__":
    base.main()
