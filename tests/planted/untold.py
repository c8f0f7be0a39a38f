# SPDX-License-Identifier: MIT
"""untold.py KIND [--without] [SECONDS]: Python's of the last of UNSEEN of kinds.py, in the manner of planted.py."""
import asyncio
import atexit
import concurrent.futures
import ctypes
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile

import planted as base
from planted import PROBLEM_MS, after_each, kind, rounds, thread, train_step

# ---- the main thread -----------------------------------------------------------------------------

CONTEXT = 16000
vocabulary = [f"Ġtoken{i}".encode() for i in range(1000)]
bytes_of = {i: (i - 7) % 256 for i in range(256)}


def detokenize_all(ids):
    """As byte-level BPE has it: each character is looked up."""
    return bytes([bytes_of[byte] for i in ids for byte in vocabulary[i]]).decode(errors="replace")


def read_token(on_gpu):
    token = ctypes.c_int()
    base.gpu.call("cuMemcpyDtoHAsync_v2", ctypes.byref(token), on_gpu, ctypes.c_size_t(4), base.gpu.stream)
    base.gpu.wait()
    return token.value % 1000


@kind
def py_detokenize():
    """After each token the text is made anew, of all tokens of the context."""
    ids, on_gpu = [i % 1000 for i in range(CONTEXT)], ctypes.c_void_p()

    def step():
        if not on_gpu:
            base.gpu.call("cuMemAlloc_v2", ctypes.byref(on_gpu), ctypes.c_size_t(4096))
        for _ in range(10):
            base.gpu.launch(base.gpu.gemm, 200)
        ids.append(read_token(on_gpu))
        del ids[0]
        detokenize_all(ids if base.planted else ids[-8:])
    return step


class Parameter:
    def __init__(self, n):
        self.n, self.step, self.decay = n, 0, .9


parameters = [Parameter(i) for i in range(300)]


def update_parameters():
    for parameter in parameters:
        parameter.step += 1
        parameter.decay *= .9999
        base.gpu.launch(base.gpu.add, 0)


def train_and_update():
    base.gpu.keep_two_steps()
    for _ in range(5):
        base.gpu.launch(base.gpu.gemm, 400)
    if base.planted:
        update_parameters()
    else:
        base.gpu.launch(base.gpu.gemm, 200)
    base.gpu.mark()


@kind
def py_optimizer_loop():
    """Few large kernels, then a small one for each of the parameters."""
    return train_and_update


def read_sample(path, n):
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"sample{n}")


@kind
def py_zip_anew():
    """A reader that opens the archive for each sample reads the list of all of them each time."""
    folder = tempfile.TemporaryDirectory(dir="/dev/shm")
    path, n = os.path.join(folder.name, "data.zip"), [0]
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(400):
            archive.writestr(f"sample{i}", b"x" * 1000)
    kept = zipfile.ZipFile(path)

    def step(_kept=folder):
        train_step()
        for _ in range(3):
            n[0] = (n[0] + 7) % 400
            if base.planted:
                read_sample(path, n[0])
            else:
                kept.read(f"sample{n[0]}")
    return step


# ---- other threads and processes -----------------------------------------------------------------

def pickle_state(state):
    with open(os.devnull, "wb") as file:
        file.write(pickle.dumps(state))


def run_snapshots(state):
    while True:
        if base.planted:
            pickle_state(state)
        base.time.sleep(.001)


@kind
def py_snapshot_thread():
    """A thread beside the trainer makes snapshots, and has the interpreter's lock until each is made."""
    thread(run_snapshots, [{"name": f"layer{i}", "values": [i, i + 1, .5]} for i in range(20000)])
    return train_step


TOOL = """
import sys

def parse_slowly(rounds):
    value = 0
    for i in range(rounds):
        value = (value * 31 + i) % 65521
    return value

for line in sys.stdin:
    print(parse_slowly(int(line)))
"""


def ask_parser(tool):
    if base.planted:
        tool.stdin.write(f"{int(2 * PROBLEM_MS * base.rounds_a_ms)}\n".encode())
        tool.stdin.flush()
        tool.stdout.readline()


# ---- two at once ---------------------------------------------------------------------------------

@kind
def two_py_tool_update():
    """A program that was started once is asked in each step, and each parameter has a kernel of its own."""
    tool = subprocess.Popen([sys.executable, "-u", "-c", TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def step():
        train_and_update()
        ask_parser(tool)
    return step


# ---- nothing is wrong ----------------------------------------------------------------------------

def run_on_gpu():
    context = ctypes.c_void_p()
    base.gpu.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    base.gpu.call("cuCtxSetCurrent", context)
    for _ in range(4):
        train_step(6, 2500)


async def end_tasks(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def answer_requests():
    while True:
        rounds(int(.1 * base.rounds_a_ms))
        await asyncio.sleep(.01)


@kind
def py_busy_engine():
    """The loop answers requests, and has a thread of its pool work on the GPU."""
    loop, pool = asyncio.new_event_loop(), concurrent.futures.ThreadPoolExecutor(1)
    tasks = [loop.create_task(answer_requests()) for _ in range(4)]
    atexit.register(lambda: loop.run_until_complete(end_tasks(tasks)))

    def step():
        loop.run_until_complete(loop.run_in_executor(pool, run_on_gpu))
    return step


if __name__ == "__main__":
    base.main()
