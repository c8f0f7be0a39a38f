# SPDX-License-Identifier: MIT
"""planted.py KIND [--without] [SECONDS]: the kinds of planted.c's manner that are Python's, with nothing but ctypes and the
library. A kind is a function of this name that makes what it needs and returns its step; what is wrong is a function of its
own, which kinds.py names."""
import concurrent.futures
import ctypes
import gc
import http.client
import http.server
import json
import logging
import multiprocessing
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

PROBLEM_MS = 9
PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry gemm() { ret; }\n.visible .entry add() { ret; }\n"
arguments = [word for word in sys.argv[1:] if word != "--without"]
planted = "--without" not in sys.argv
kinds = {}


def kind(function):
    kinds[function.__name__] = function
    return function


# ---- the GPU ------------------------------------------------------------------------------------

class Gpu:
    """The simulated driver's: a kernel takes 4 us and 1 us more with each 100,000 threads."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.stream, self.gemm, self.add = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.gemm), module, b"gemm")
        self.call("cuModuleGetFunction", ctypes.byref(self.add), module, b"add")
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.marks = [ctypes.c_void_p(), ctypes.c_void_p()]
        self.steps = 0
        for mark in self.marks:
            self.call("cuEventCreate", ctypes.byref(mark), 2)

    def call(self, name, *words):
        result = getattr(self.cuda, name)(*words)
        if result:
            sys.exit(f"{name} said {result}")

    def launch(self, kernel, us):
        blocks = max(1, int((us - 4) * 100000 / 256))
        self.call("cuLaunchKernel", kernel, blocks, 1, 1, 256, 1, 1, 0, self.stream, None, None)

    def keep_two_steps(self):
        if self.steps >= 2:
            self.call("cuEventSynchronize", self.marks[self.steps % 2])

    def mark(self):
        self.call("cuEventRecord", self.marks[self.steps % 2], self.stream)
        self.steps += 1

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


gpu = None


def train_step(kernels=5, us=400):
    gpu.keep_two_steps()
    for _ in range(kernels):
        gpu.launch(gpu.gemm, us)
    gpu.mark()


def rounds(n):
    value = 0
    for i in range(n):
        value = (value * 31 + i) % 65521
    return value


def rate():
    best = 0
    for _ in range(10):
        begin = time.perf_counter()
        rounds(10000)
        best = max(best, 10000 / (time.perf_counter() - begin) / 1000)
    return best


rounds_a_ms = 0


def compute(ms):
    rounds(int(ms * rounds_a_ms) if planted else 0)


def nap(ms):
    if planted:
        time.sleep(ms / 1000)


# ---- the main thread ----------------------------------------------------------------------------

def after_each(problem):
    def step():
        train_step()
        problem()
    return step


def pause_between_steps():
    nap(PROBLEM_MS)


@kind
def py_sleep():
    return after_each(pause_between_steps)


def decode_sample():
    compute(PROBLEM_MS)


@kind
def py_decode():
    return after_each(decode_sample)


LIBRARY = """
def attention_of_shape(compile, rounds):
    compile(rounds)
"""


@kind
def py_compile():
    compiler = ctypes.CDLL(os.environ["PLANTED_COMPILER"]).nvrtcCompileProgram
    compiler.argtypes, library = [ctypes.c_double], {}
    exec(compile(LIBRARY, "/usr/lib/python3/dist-packages/layers/attention.py", "exec"), library)
    begin = time.perf_counter()
    compiler(1e6)
    a_ms = 1e3 / (time.perf_counter() - begin)

    def attend():
        if planted:
            library["attention_of_shape"](compiler, PROBLEM_MS * a_ms)
    return after_each(attend)


class Node:
    def __init__(self, other):
        self.other = other


def collect_garbage():
    if planted:
        gc.collect()


@kind
def py_gc():
    global kept
    kept = [Node(None) for _ in range(80000)]
    return after_each(collect_garbage)


records = None


def parse_records():
    for _ in range(4 if planted else 0):
        json.loads(records)


@kind
def py_json():
    global records
    records = json.dumps([{"id": i, "text": "x" * 20, "label": [i, i + 1]} for i in range(4000)])
    return after_each(parse_records)


def unpack_batch():
    for _ in range(5 if planted else 0):
        pickle.loads(records)


@kind
def py_pickle():
    global records
    records = pickle.dumps([{"id": i, "text": f"x{i}", "label": [i, i + 1]} for i in range(4000)])
    return after_each(unpack_batch)


def clean_text():
    if planted:
        re.findall(r"(a+)+c|(\w+) \2", records)


@kind
def py_regex():
    global records
    records = " ".join(f"word{i} wird{i % 7}" for i in range(6000))
    return after_each(clean_text)


def run_tool():
    if planted:
        subprocess.run(["sleep", "0.012"], check=True)


@kind
def py_subprocess():
    return after_each(run_tool)


metrics = None


def save_metrics():
    if planted:
        for _ in range(20):
            os.pwrite(metrics, b"x" * 500000, 0)
            os.fsync(metrics)


@kind
def py_fsync():
    global metrics
    handle, path = tempfile.mkstemp(dir=os.environ.get("PLANTED_FOLDER", "/var/tmp"))
    os.unlink(path)
    metrics = handle
    return after_each(save_metrics)


def read_slowly(there):
    while os.read(there, 4096):
        nap(PROBLEM_MS)


def print_step():
    print("x" * 4095, file=metrics, flush=True)


@kind
def py_print():
    global metrics
    there, here = os.pipe()
    if child() == 0:
        os.close(here)
        read_slowly(there)
        os._exit(0)
    os.close(there)
    metrics = os.fdopen(here, "w")
    return after_each(print_step)


def log_metrics():
    for i in range(700 if planted else 0):
        logging.info("step %d loss %.4f lr %s", i, i / 7, [i, i + 1])


@kind
def py_logging():
    logging.basicConfig(filename=os.devnull, level=logging.INFO)
    return after_each(log_metrics)


# ---- the interpreter's lock, and others ----------------------------------------------------------

def burn():
    while True:
        rounds(1000)


def thread(function, *words):
    threading.Thread(target=function, args=words, daemon=True).start()


@kind
def py_gil():
    for _ in range(2 if planted else 0):
        thread(burn)
    return train_step


def flush_cache(lock):
    while True:
        with lock:
            nap(PROBLEM_MS)
        time.sleep(.0003)


@kind
def py_lock():
    lock = threading.Lock()
    thread(flush_cache, lock)

    def update_cache():
        with lock:
            pass
    return after_each(update_cache)


# ---- loaders: threads and processes --------------------------------------------------------------

def from_queue(batches):
    def next_batch():
        batches.get()
    return after_each(next_batch)


def fetch_shards(batches):
    while True:
        nap(PROBLEM_MS)
        batches.put(b"x" * 100)


def decode_shards(batches):
    while True:
        compute(PROBLEM_MS)
        batches.put(b"x" * 100)


@kind
def py_loader_sleep():
    batches = queue.Queue(2)
    thread(fetch_shards, batches)
    return from_queue(batches)


@kind
def py_loader_decode():
    batches = queue.Queue(2)
    thread(decode_shards, batches)
    return from_queue(batches)


def download_shard():
    nap(PROBLEM_MS)


@kind
def py_pool():
    pool = concurrent.futures.ThreadPoolExecutor(2)

    def wait_for_shard():
        pool.submit(download_shard).result()
    return after_each(wait_for_shard)


def child():
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return pid


def worker(function, *words):
    def run():
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the program
        function(*words)
    multiprocessing.get_context("fork").Process(target=run, daemon=True).start()


@kind
def py_worker():
    batches = multiprocessing.Queue(2)
    worker(decode_shards, batches)
    return from_queue(batches)


def answer_slowly(connection):
    while connection.recv():
        nap(PROBLEM_MS)
        connection.send(1)


@kind
def py_pipe():
    here, there = multiprocessing.Pipe()
    worker(answer_slowly, there)

    def ask_worker():
        here.send(1)
        here.recv()
    return after_each(ask_worker)


class Tokens(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def look_up_tokens(self):
        compute(PROBLEM_MS)

    def do_GET(self):
        self.look_up_tokens()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words):
        pass


def serve():
    """Prints its port; a program of its own for py_server, which is not the target's child."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Tokens)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask_server():
        connection.request("GET", "/")
        connection.getresponse().read()
    return after_each(ask_server)


@kind
def py_http():
    server = http.server.HTTPServer(("127.0.0.1", 0), Tokens)
    if child() == 0:
        server.serve_forever()
    server.socket.close()
    return ask(server.server_address[1])


@kind
def py_server():
    return ask(int(os.environ["PLANTED_PORT"]))


# ---- CUDA calls ---------------------------------------------------------------------------------

def launch_many():
    for _ in range(40):
        gpu.launch(gpu.add, 0)


@kind
def py_tiny():
    def step():
        gpu.keep_two_steps()
        if planted:
            launch_many()
        else:
            gpu.launch(gpu.gemm, 160)
        gpu.mark()
    return step


def read_loss():
    if planted:
        gpu.wait()


def augment_next():
    rounds(int(1.6 * rounds_a_ms))


@kind
def py_item():
    def step():
        train_step()
        read_loss()
        augment_next()
    return step


def empty_cache():
    memory = ctypes.c_void_p()
    if planted:
        gpu.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1 << 20))
        gpu.call("cuMemFree_v2", memory)


@kind
def py_alloc():
    return after_each(empty_cache)


def between():
    rounds(int(.01 * rounds_a_ms))


def small_kernels(n, us):
    for _ in range(n):
        gpu.launch(gpu.add, us)
        between()


value, values = ctypes.c_float(), ctypes.c_void_p()


def item():
    gpu.call("cuMemcpyDtoHAsync_v2", ctypes.byref(value), values, ctypes.c_size_t(4), gpu.stream)
    gpu.wait()
    between()


def gradient_norms():
    for _ in range(50):
        small_kernels(1, 0)
        if planted:
            item()


@kind
def py_items():
    def step():
        if not values:
            gpu.call("cuMemAlloc_v2", ctypes.byref(values), ctypes.c_size_t(4096))
        gpu.keep_two_steps()
        small_kernels(60, 8)
        small_kernels(5, 800)
        gradient_norms()
        small_kernels(20, 8)
        gpu.mark()
    return step


kept_blocks = []


def pad_batch():
    for _ in range(6 if planted or not kept_blocks else 0):
        kept_blocks.append(ctypes.c_void_p())
        gpu.call("cuMemAlloc_v2", ctypes.byref(kept_blocks[-1]), ctypes.c_size_t(1 << 20))


def empty_blocks():
    while planted and kept_blocks:
        gpu.call("cuMemFree_v2", kept_blocks.pop())


def train_with_cache():
    pad_batch()
    small_kernels(5, 800)
    empty_blocks()


@kind
def py_cache():
    def step():
        gpu.keep_two_steps()
        train_with_cache()
        gpu.mark()
    return step


def trace_function(graph):
    pickle.dumps(graph)


def crop_and_score(graph):
    for _ in range(40 if planted else 0):
        trace_function(graph)


@kind
def py_deep():
    """The stack is so deep in code of the interpreter that a walk ends before it is at the program's lines."""
    sys.setrecursionlimit(10000)
    graph = []
    for i in range(900):
        graph = [graph, {i: str(i)}]
    return after_each(lambda: crop_and_score(graph))


pool, pool_rounds_a_ms = None, 0


def scale_volume():
    """Two thirds of it by a thread of the library's, which has no line."""
    if planted:
        pool.pool_share_out(ctypes.c_double(PROBLEM_MS * 1.5 * pool_rounds_a_ms))


@kind
def py_library_pool():
    global pool, pool_rounds_a_ms
    pool = ctypes.CDLL(os.environ["PLANTED_POOL"])
    for _ in range(10):
        begin = time.perf_counter()
        pool.pool_share_out(ctypes.c_double(300000))
        pool_rounds_a_ms = max(pool_rounds_a_ms, 200 / (time.perf_counter() - begin))
    return after_each(scale_volume)


words = []


def texts_of(rows):
    return [" ".join(f"w{word}" for word in row if word % 2) for row in rows]


@kind
def py_generator():
    words.extend([list(range(20))] * (2000 if planted else 0))
    return after_each(lambda: texts_of(words))


@kind
def two_py_gc_sleep():
    global kept
    kept = [Node(None) for _ in range(160000)]

    def step():
        train_step()
        collect_garbage()
        nap(4)
    return step


def decode_long_shards(batches):
    while True:
        compute(2 * PROBLEM_MS)
        batches.put(b"x" * 100)


def read_labels():
    if planted:
        json.loads(records)


@kind
def two_py_worker_json():
    batches = multiprocessing.Queue(1)
    worker(decode_long_shards, batches)
    py_json()
    step = from_queue(batches)

    def both():
        step()
        read_labels()
    return both


# ---- nothing is wrong ---------------------------------------------------------------------------

@kind
def py_busy():
    return train_step


def sleep_on():
    while True:
        time.sleep(.02)


@kind
def py_busy_threads():
    for _ in range(3):
        thread(sleep_on)
    return train_step


def load_ahead(batches):
    while True:
        rounds(int(.5 * rounds_a_ms))
        batches.put(1)


@kind
def py_busy_loader():
    batches = queue.Queue(4)
    thread(load_ahead, batches)

    def step():
        batches.get()
        train_step(10, 900)
    return step


@kind
def py_busy_worker():
    batches = multiprocessing.Queue(4)
    worker(load_ahead, batches)

    def step():
        batches.get()
        train_step(10, 900)
    return step


# ---- the program --------------------------------------------------------------------------------

def train(step, seconds):
    begin, counted, steps = time.perf_counter(), 0, 0
    now = begin
    while now < begin + seconds:
        step()
        now = time.perf_counter()
        if counted:
            steps += 1
        elif now > begin + seconds / 10:
            counted = now
    gpu.wait()
    return steps, (time.perf_counter() - counted) / max(steps, 1) * 1e6


def main():
    global gpu, rounds_a_ms
    if not arguments:
        sys.exit(__doc__)
    rounds_a_ms = rate()
    if arguments[0] == "serve":
        return serve()
    step = kinds[arguments[0]]()
    gpu = Gpu()
    train_step()
    print("ready", flush=True)
    steps, us = train(step, float(arguments[1]) if len(arguments) > 1 else 2.5)
    print(f"steps {steps} step_us {us:.0f}", flush=True)


if __name__ == "__main__":
    main()
