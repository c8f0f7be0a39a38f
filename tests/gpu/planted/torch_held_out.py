# SPDX-License-Identifier: MIT
"""PyTorch programs that no rule of `cuscope why` was written against: HELD_OUT of kinds.py."""

import asyncio
import gzip
import itertools
import multiprocessing
import os
import queue
import random
import socket
import threading
import time

import steady
import torch
from model import BATCH, DEVICE, DTYPE, SMALL, WIDTH, Block, Model, Trainer, to_gpu, tokens, wait
from torch.utils.data import DataLoader
from torch_feed import Pictures, in_process

# ---- the main thread ----------------------------------------------------------------------------


def read_shard(packed):
    return gzip.decompress(packed)


def packed_shard(count=3_000_000):
    return gzip.compress(bytes(random.Random(1).choices(b"abcdefgh", k=count)), 6)


def gzip_in_step(planted):
    trainer, x, packed = Trainer(), tokens(), packed_shard()
    while True:
        if planted:
            read_shard(packed)
        trainer.step(x, x)
        yield


def parse_value(word):
    try:
        return float(word)
    except ValueError:
        return 0.0


def parse_table(words):
    return [parse_value(word) for word in words]


def exceptions_in_parser(planted):
    trainer, x, words = Trainer(), tokens(), ["n/a", "-", "1.5", "none"] * 5000
    while True:
        if planted:
            parse_table(words)
        trainer.step(x, x)
        yield


def texts_of(logits):
    """Each word of each sample as text, for a log."""
    return [" ".join(f"w{word}" for word in row) for row in logits.argmax(-1).tolist()]


def lists_of_words(planted):
    model, x = Model(1).to(DEVICE, DTYPE), tokens(BATCH * 4)
    while True:
        with torch.no_grad():
            logits = model(x)
            if planted:
                texts_of(logits)
        yield


class Answers:
    """One request after the other, each after the way to a store."""

    def __init__(self, planted):
        self.planted, self.loop = planted, asyncio.new_event_loop()

    async def ask_store(self):
        if self.planted:
            await asyncio.sleep(0.015)

    def serve_one(self):
        self.loop.run_until_complete(self.ask_store())


def async_server(planted):
    model, x, answers = Model(4).to(DEVICE, DTYPE), tokens(), Answers(planted)
    while True:
        answers.serve_one()
        with torch.no_grad():
            model(x)
        yield


# ---- other threads and processes ------------------------------------------------------------------

class Points:
    """A thread writes them to the disk, with the lock that each step takes."""

    def __init__(self):
        self.lock = threading.Lock()
        self.file = open(os.path.join(steady.folder(), f"points-{os.getpid()}"), "wb")

    def write_points(self):
        for _ in range(12):
            self.file.write(b"x" * (1 << 20))
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.seek(0)

    def write_forever(self):
        while True:
            with self.lock:
                self.write_points()
            time.sleep(0.001)

    def add_point(self):
        with self.lock:
            pass


def lock_over_fsync(planted):
    trainer, x, points = Trainer(), tokens(), Points()
    if planted:
        threading.Thread(target=points.write_forever, daemon=True).start()
    while True:
        trainer.step(x, x)
        points.add_point()
        yield


def render_frame():
    value = 0
    for i in range(250000):
        value = (value * 31 + i) % 65521
    return value


def render_forever(asked, done):
    while True:
        if done.value < asked.value:
            render_frame()
            done.value += 1
        else:
            time.sleep(0.0001)


def spin_for_frame(asked, done):
    asked.value += 1
    while done.value < asked.value:
        pass


def flag_of_process(planted):
    """A number in shared memory says that another process has a frame."""
    context = multiprocessing.get_context("fork")
    asked, done = (context.Value("q", 0, lock=False) for _ in range(2))
    context.Process(target=render_forever, args=(asked, done), daemon=True).start()
    trainer, x = Trainer(), tokens()
    while True:
        if planted:
            spin_for_frame(asked, done)
        trainer.step(x, x)
        yield


def slow_physics():
    time.sleep(0.018)


def run_environment(connection, slow):
    while connection.recv():
        if slow:
            slow_physics()
        connection.send(0.5)


def step_environments(environments):
    for environment in environments:
        environment.send(True)
    return [environment.recv() for environment in environments]


def eight_environments(planted):
    """One of eight is late, and all are waited for."""
    context, environments = multiprocessing.get_context("fork"), []
    for i in range(8):
        ours, theirs = context.Pipe()
        context.Process(target=run_environment, args=(theirs, planted and i == 5), daemon=True).start()
        environments.append(ours)
    trainer, x = Trainer(), tokens()
    while True:
        step_environments(environments)
        trainer.step(x, x)
        yield


def answer_names(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port.send(server.getsockname()[1])
        while True:
            asked, who = server.recvfrom(512)
            time.sleep(0.015)
            server.sendto(asked, who)


def resolve_name(resolver):
    resolver.send(b"store.example.")
    return resolver.recv(512)


def name_each_step(planted):
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.connect(("127.0.0.1", in_process(answer_names)))
    trainer, x = Trainer(), tokens()
    while True:
        if planted:
            resolve_name(resolver)
        trainer.step(x, x)
        yield


def open_next_shard():
    time.sleep(0.150)


def read_ahead(batches, planted):
    while True:
        if planted:
            open_next_shard()
        for _ in range(8):
            batches.put(1)


def queue_of_one(planted):
    """Each eighth batch is late, and there is room for one."""
    batches = queue.Queue(1)
    threading.Thread(target=read_ahead, args=(batches, planted), daemon=True).start()
    trainer, x = Trainer(), tokens()
    while True:
        batches.get()
        trainer.step(x, x)
        yield


class Server:
    """Answers full batches, or what has come until a time is over."""

    def __init__(self, full):
        self.requests, self.full = queue.Queue(), full

    def ask_forever(self):
        while True:
            answered = threading.Event()
            self.requests.put(answered)
            answered.wait()

    def collect_requests(self):
        found, end = [self.requests.get()], time.monotonic() + 0.020
        while len(found) < self.full:
            try:
                found.append(self.requests.get(timeout=max(0, end - time.monotonic())))
            except queue.Empty:
                break
        return found


def window_of_server(planted):
    """Three clients each wait for an answer, so there are never eight requests."""
    server = Server(8 if planted else 3)
    for _ in range(3):
        threading.Thread(target=server.ask_forever, daemon=True).start()
    model, x = Model(4).to(DEVICE, DTYPE), tokens()
    while True:
        found = server.collect_requests()
        with torch.no_grad():
            model(x)
        wait()
        for answered in found:
            answered.set()
        yield


def short_epoch(trainer, loader):
    for batch in loader:
        x, y = to_gpu(batch)
        trainer.step(x.to(DTYPE), y)
        yield


class FewPictures(Pictures):
    def __len__(self):
        return BATCH * 6


def workers_of_each_epoch(planted):
    """Six batches, and then the workers end and others begin."""
    loader = DataLoader(FewPictures(False), batch_size=BATCH, num_workers=2, persistent_workers=not planted)
    trainer = Trainer(patches=True)
    while True:
        yield from short_epoch(trainer, loader)


# ---- the GPU's use --------------------------------------------------------------------------------

def pin_batch(volume):
    return volume.pin_memory()


def pinned_in_step(planted):
    """A quarter of a gigabyte is copied to pinned memory by the trainer itself, then to the GPU."""
    trainer, x = Trainer(), tokens()
    volume = torch.zeros(4 if SMALL else 256, 1 << 20, dtype=torch.uint8)
    here = volume.to(DEVICE)
    while True:
        if planted:
            here.copy_(pin_batch(volume), non_blocking=True)
        trainer.step(x, x)
        yield


def bring_model(models, wanted):
    for i, model in enumerate(models):
        model.to(DEVICE if i == wanted else "cpu")
    return models[wanted]


def models_in_turn(planted):
    """Each request is of the other model, and there is said to be room for one."""
    models, x = [Model(4).to(DTYPE) for _ in range(2)], tokens()
    model = bring_model(models, 0)
    for step in itertools.count():
        if planted:
            model = bring_model(models, step % 2)
        with torch.no_grad():
            model(x)
        yield


def count_right(model, samples):
    right = 0
    with torch.no_grad():
        for sample in samples:
            right += (model(sample).argmax(-1) == sample).sum().item()
    return right


def evaluated_each_step(planted):
    """Thirty small samples, with a value of each."""
    trainer, x = Trainer(), tokens()
    samples = [tokens(1, length=32) for _ in range(30)]
    while True:
        trainer.step(x, x)
        if planted:
            count_right(trainer.model, samples)
        yield


def micro_step(trainer, x):
    trainer.forward_backward(x, x)


def one_sample_at_a_time(planted):
    """Gradients are gathered of 24 short samples, each by itself."""
    trainer, x = Trainer(4), tokens(24, length=32)
    while True:
        if planted:
            for sample in x:
                micro_step(trainer, sample.unsqueeze(0))
        else:
            micro_step(trainer, x)
        trainer.update()
        yield


def log_activations(x):
    return f"mean {x.mean():.3f} deviation {x.std():.3f} largest {x.max():.3f}"


class LoggedBlocks(torch.nn.Module):
    def __init__(self, planted):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(WIDTH) for _ in range(4 if SMALL else 30))
        self.planted = planted

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            if self.planted:
                log_activations(x)
        return x


def logged_layers(planted):
    model = LoggedBlocks(planted).to(DEVICE, DTYPE)
    x = torch.randn(2, 128, WIDTH, device=DEVICE, dtype=DTYPE)
    while True:
        with torch.no_grad():
            model(x)
        yield


def host_average(averages, model):
    with torch.no_grad():
        for average, parameter in zip(averages, model.parameters()):
            average.lerp_(parameter.float().cpu(), 0.01)


def average_on_host(planted):
    trainer, x = Trainer(), tokens()
    averages = [parameter.detach().float().cpu() for parameter in trainer.model.parameters()]
    while True:
        trainer.step(x, x)
        if planted:
            host_average(averages, trainer.model)
        yield


def slow_statistics():
    """One block that runs for some 15 ms."""
    torch.cuda._sleep(25_000_000)


def wait_for_statistics(side):
    with torch.cuda.stream(side):
        slow_statistics()
    torch.cuda.current_stream().wait_stream(side)


def statistics_first(planted):
    """The trainer's stream waits for a stream that has next to nothing to do with it."""
    trainer, x, side = Trainer(), tokens(), torch.cuda.Stream()
    while True:
        if planted:
            wait_for_statistics(side)
        trainer.step(x, x)
        yield


# ---- two at once ----------------------------------------------------------------------------------

def rest_after_step():
    time.sleep(0.009)


def two_gzip_rest(planted):
    trainer, x, packed = Trainer(), tokens(), packed_shard(6_000_000)
    while True:
        if planted:
            read_shard(packed)
        trainer.step(x, x)
        if planted:
            rest_after_step()
        yield


def two_environments_parser(planted):
    """18 ms asleep in another process, some 8 ms of exceptions."""
    steps, words = eight_environments(planted), ["n/a", "-", "1.5", "none"] * 3000
    while True:
        next(steps)
        if planted:
            parse_table(words)
        yield


# ---- nothing is wrong -----------------------------------------------------------------------------

def busy_trainer():
    return Trainer(8), tokens(BATCH * 2)


def busy_log_behind(_):
    """A thread for which nobody waits writes each line to the disk."""
    lines, (trainer, x) = queue.Queue(), busy_trainer()

    def write_lines():
        with open(os.path.join(steady.folder(), f"lines-{os.getpid()}"), "w", encoding="utf-8") as file:
            while True:
                file.write(f"{lines.get()}\n")
                file.flush()
                os.fsync(file.fileno())

    threading.Thread(target=write_lines, daemon=True).start()
    for step in itertools.count():
        trainer.step(x, x)
        lines.put(step)
        yield


def busy_uneven_loader(_):
    """Now and then a batch is late, and eight are ready."""
    batches, (trainer, x) = queue.Queue(8), busy_trainer()

    def produce():
        for i in itertools.count():
            time.sleep(0.060 if i % 16 == 0 else 0.002)
            batches.put(i)

    threading.Thread(target=produce, daemon=True).start()
    while True:
        batches.get()
        trainer.step(x, x)
        yield


def busy_late_loss(_):
    """The loss of the step before is read while this one runs."""
    (trainer, x), before = busy_trainer(), None
    while True:
        loss = torch.empty((), dtype=DTYPE, pin_memory=not SMALL)
        loss.copy_(trainer.step(x, x), non_blocking=True)
        done = None if SMALL else torch.cuda.Event()
        if done:
            done.record()
        if before:
            before[1].synchronize()
            float(before[0])
        before = done and (loss, done)
        yield


def busy_shallow_waits(_):
    """Waits for each step to be done; a step is long, the way back is short."""
    trainer, x = Trainer(8), tokens(BATCH * 4)
    while True:
        trainer.step(x, x)
        wait()
        yield


KINDS = {function.__name__: function for function in (
    gzip_in_step, exceptions_in_parser, lists_of_words, async_server, lock_over_fsync, flag_of_process, eight_environments,
    name_each_step, queue_of_one, window_of_server, workers_of_each_epoch, pinned_in_step, models_in_turn, evaluated_each_step,
    one_sample_at_a_time, logged_layers, average_on_host, statistics_first, two_gzip_rest, two_environments_parser,
    busy_log_behind, busy_uneven_loader, busy_late_loss, busy_shallow_waits)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
