# SPDX-License-Identifier: MIT
"""PyTorch programs that another thread or process feeds, or holds up."""

import collections
import http.client
import http.server
import itertools
import json
import multiprocessing
import queue
import random
import socket
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import steady
import torch
from model import BATCH, DEVICE, DTYPE, LENGTH, PATCH, VOCAB, Trainer, forever, to_gpu, tokens, wait
from torch.utils.data import DataLoader, Dataset
from torch_host import ROW, FileTable

SAMPLES = 4096
PICTURE = torch.zeros(LENGTH, PATCH), torch.zeros(LENGTH, dtype=torch.int64)


def loader(dataset, workers=2):
    return DataLoader(dataset, batch_size=BATCH, num_workers=workers, pin_memory=DEVICE == "cuda", persistent_workers=True)


class Pictures(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        if self.slow:
            return self.prepare(index), PICTURE[1]
        return PICTURE


class Augmented(Pictures):
    def prepare(self, index):
        return augment_picture(index)


def augment_picture(index):
    """Contrast by a table, one number after the other."""
    table = [int(255 * (i / 255) ** (1 + index % 3)) for i in range(256)]
    bright = [0] * (LENGTH * PATCH)
    for i in range(LENGTH * PATCH):
        bright[i] = table[i & 255] / 255
    return torch.tensor(bright).view(LENGTH, PATCH)


class Remote(Pictures):
    def prepare(self, index):
        return fetch_remote(index)


def fetch_remote(_):
    time.sleep(0.004)
    return PICTURE[0]


class OnDisk(Pictures):
    table = None

    def prepare(self, index):
        if not self.table:
            self.table = FileTable()
        return read_sample(self.table, index)


def read_sample(table, index):
    table.read_rows([(index * 7919 + i * 104729) % table.rows for i in range(100)])
    return PICTURE[0]


def train_from(batches):
    trainer = Trainer(patches=True)
    for batch in batches:
        x, y = to_gpu(batch)
        trainer.step(x.to(DTYPE), y)
        yield


def workers_compute(planted):
    yield from train_from(forever(loader(Augmented(planted))))


def workers_sleep(planted):
    yield from train_from(forever(loader(Remote(planted))))


def workers_disk(planted):
    FileTable()
    yield from train_from(forever(loader(OnDisk(planted))))


def one_slow_worker(planted):
    """One shard's samples take ten times as long: the loader keeps the order."""
    yield from train_from(forever(loader(SlowShard(planted), 2)))


class SlowShard(Pictures):
    def prepare(self, index):
        return read_old_format(index) if index // BATCH % 2 else PICTURE[0]


def read_old_format(index):
    text = json.dumps([[index + i, i * 0.5, "label"] for i in range(6000)])
    return PICTURE[0] + len(json.loads(text)) * 0


def summarise_history(history):
    """Of all losses so far, for a page that nobody looks at."""
    total = 0.0
    for value in history:
        total += value * value
    return total


def watch_in_thread(planted):
    trainer, x = Trainer(), tokens()
    history = [random.random() for _ in range(300000)]

    def keep_page_fresh():
        while True:
            summarise_history(history)
            time.sleep(0.004)

    if planted:
        threading.Thread(target=keep_page_fresh, daemon=True).start()
    while True:
        trainer.step(x, x)
        yield


class Metrics:
    def __init__(self):
        self.lock, self.values = threading.Lock(), collections.deque(maxlen=1000)

    def record(self, value):
        with self.lock:
            self.values.append(value)

    def export_values(self):
        with self.lock:
            list(self.values)
            time.sleep(0.015)  # as long as the other side takes to answer
        time.sleep(0.002)


def lock_of_exporter(planted):
    trainer, x, metrics = Trainer(), tokens(), Metrics()

    def export_forever():
        while True:
            metrics.export_values()

    if planted:
        threading.Thread(target=export_forever, daemon=True).start()
    for step in itertools.count():
        trainer.step(x, x)
        metrics.record(step)
        yield


def decompress_shard(packed):
    return np.frombuffer(zlib.decompress(packed), np.uint8)


def thread_decompresses(planted):
    batches = queue.Queue(4)
    rows = np.random.randint(0, 8, LENGTH * PATCH * BATCH * 12, dtype=np.uint8)
    packed = zlib.compress(rows.tobytes(), 6)

    def produce():
        while True:
            batches.put(decompress_shard(packed) if planted else rows)

    threading.Thread(target=produce, daemon=True).start()
    trainer, y = Trainer(patches=True), tokens()
    while True:
        pixels = torch.from_numpy(batches.get()[:LENGTH * PATCH * BATCH].copy()).view(BATCH, LENGTH, PATCH)
        trainer.step(pixels.to(DEVICE).to(DTYPE), y)
        yield


def decode_record(text):
    numbers = [int(word) for word in text.split(",")]
    return sum(numbers) % VOCAB


def thread_pool_decodes(planted):
    """Threads do not help: all need the interpreter."""
    trainer, x = Trainer(), tokens()
    text = ",".join(str(random.randrange(VOCAB)) for _ in range(9000))
    with ThreadPoolExecutor(4) as pool:
        while True:
            if planted:
                sum(pool.map(decode_record, [text] * 16))
            trainer.step(x, x)
            yield


def produce_batches(batches, planted):
    rng = np.random.default_rng(1)
    whole = {"pixels": np.zeros((BATCH, LENGTH, PATCH), np.float32), "words": list(range(1000))}
    while True:
        if planted:
            clean_words([rng.integers(0, VOCAB) for _ in range(8000)])
        batches.put(whole)


def clean_words(words):
    seen = {}
    for word in words:
        name = f"word-{word}"
        seen[name] = seen.get(name, 0) + len(name.strip().lower().split("-"))
    return sorted(seen, key=lambda name: (seen[name], name))


def process_cleans(planted):
    context = multiprocessing.get_context("fork")
    batches = context.Queue(4)
    context.Process(target=produce_batches, args=(batches, planted), daemon=True).start()
    trainer, y = Trainer(patches=True), tokens()
    while True:
        x = torch.from_numpy(batches.get()["pixels"]).to(DEVICE, DTYPE)
        trainer.step(x, y)
        yield


def compute_features(number):
    value = number
    for i in range(250000):
        value = (value * 31 + i) % 65521
    return value


class Features(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):  # noqa: N802 (the name that the library asks for)
        number = int(self.path.rpartition("/")[2])
        said = str(compute_features(number) if self.path.startswith("/slow") else number).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


def serve_features(port):
    with http.server.HTTPServer(("127.0.0.1", 0), Features) as server:
        port.send(server.server_port)
        server.serve_forever()


def in_process(function):
    """What a new process says first, of `function`."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    context.Process(target=function, args=(theirs,), daemon=True).start()
    return ours.recv()


def fetch_features(connection, path):
    connection.request("GET", path)
    return int(connection.getresponse().read())


def feature_server(planted):
    connection = http.client.HTTPConnection("127.0.0.1", in_process(serve_features), timeout=20)
    trainer, x = Trainer(), tokens()
    for step in itertools.count():
        fetch_features(connection, f"/{'slow' if planted else 'fast'}/{step}")
        trainer.step(x, x)
        yield


def answer_after_disk(connection):
    while connection.recv(64):
        time.sleep(0.013)
        connection.sendall(b"x" * ROW)


def serve_objects(port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port.send(server.getsockname()[1])
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer_after_disk, args=(connection,), daemon=True).start()


def get_object(connection):
    connection.sendall(b"GET")
    got = 0
    while got < ROW:
        got += len(connection.recv(ROW))


def object_store(planted):
    connection = socket.create_connection(("127.0.0.1", in_process(serve_objects)), timeout=20)
    connection.settimeout(None)
    trainer, x = Trainer(), tokens()
    while True:
        if planted:
            get_object(connection)
        trainer.step(x, x)
        yield


def manager_dict(planted):
    """A dictionary that all processes share is asked for one word after the other, by a pipe."""
    words = dict.fromkeys(range(VOCAB), 1)
    if planted:
        words = multiprocessing.get_context("fork").Manager().dict(words)
    trainer, x = Trainer(), tokens()
    while True:
        count_words(words)
        trainer.step(x, x)
        yield


def count_words(words):
    return sum(words[i] for i in range(0, 250))


def hook_in_backward(planted):
    """A host-side clip that Python computes for each parameter, while gradients are computed."""
    trainer, x = Trainer(), tokens()
    if planted:
        for parameter in trainer.model.parameters():
            parameter.register_hook(note_gradient)
    while True:
        trainer.step(x, x)
        yield


def note_gradient(gradient):
    text = json.dumps({"shape": list(gradient.shape), "bins": [i * 0.25 for i in range(700)]})
    json.loads(text)


KINDS = {function.__name__: function for function in (
    workers_compute, workers_sleep, workers_disk, one_slow_worker, watch_in_thread, lock_of_exporter, thread_decompresses,
    thread_pool_decodes, process_cleans, feature_server, object_store, manager_dict, hook_in_backward)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
