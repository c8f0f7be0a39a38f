# SPDX-License-Identifier: MIT
"""PyTorch programs with a problem in what the main thread does between its steps."""

import gc
import itertools
import json
import mmap
import os
import random
import re
import subprocess
import sys
import time

import numpy as np
import steady
import torch
from model import BATCH, DEVICE, DTYPE, LENGTH, PATCH, SMALL, VOCAB, Model, Trainer, forever, patches, to_gpu, tokens, wait
from torch.utils.data import DataLoader, Dataset

SAMPLES = 256


class Photos(Dataset):
    """Pictures that are kept as runs of equal pixels."""

    def __init__(self, packed):
        self.runs = [(random.randrange(1, 8), random.randrange(256)) for _ in range(LENGTH * PATCH // 3)]
        self.ready = None if packed else self.decode_picture(0)

    def __len__(self):
        return SAMPLES

    def decode_picture(self, index):
        pixels = bytearray()
        for count, value in self.runs:
            pixels.extend(bytes((value ^ index & 15,)) * count)
        return torch.frombuffer(pixels.ljust(LENGTH * PATCH)[:LENGTH * PATCH], dtype=torch.uint8).view(LENGTH, PATCH)

    def __getitem__(self, index):
        picture = self.ready if self.ready is not None else self.decode_picture(index)
        return picture, torch.zeros(LENGTH, dtype=torch.int64)


def slow_getitem(planted):
    trainer = Trainer(patches=True)
    for batch in forever(DataLoader(Photos(planted), batch_size=BATCH)):
        x, y = to_gpu(batch)
        trainer.step(x.to(DTYPE) / 255, y)
        yield


class Sentences(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return [(index * 31 + i * 7) % VOCAB for i in range(LENGTH - index % 16)]


def pad_sequences(sentences):
    """All to the same length, with a mask and positions, and the words that come next."""
    rows, targets = [], []
    for sentence in sentences:
        row, target = [], []
        for position in range(LENGTH):
            known = position < len(sentence)
            row.append(sentence[position] if known else 0)
            follows = position + 1 < len(sentence)
            weight = 1.0 / (1 + abs(position - len(sentence) / 2)) if known else 0.0
            target.append(sentence[position + 1] if follows and weight > 0 else 0)
        for _ in range(3):
            row = [max(0, min(VOCAB - 1, word)) for word in row]
        rows.append(row)
        targets.append(target)
    return torch.tensor(rows), torch.tensor(targets)


def slow_collate(planted):
    trainer = Trainer()
    loader = DataLoader(Sentences(), batch_size=BATCH, collate_fn=pad_sequences)
    ready = next(iter(loader))
    for batch in forever(loader) if planted else itertools.repeat(ready):
        x, y = to_gpu(batch)
        trainer.step(x, y)
        yield


WORD = re.compile(r"'s|'t|'re| ?[a-z]+| ?[0-9]+| ?[^\sa-z0-9]+|\s+", re.I)


class Tokenizer:
    def __init__(self):
        self.numbers = {}

    def tokenize(self, text):
        found = []
        for match in WORD.finditer(text):
            word = match.group(0).strip().lower()
            found.append(self.numbers.setdefault(word, len(self.numbers) % VOCAB))
        return found


def tokenize_in_step(planted):
    trainer, tokenizer, x = Trainer(), Tokenizer(), tokens()
    text = " ".join(random.choice(["it's", "a", "model", "of", "2026,", "trained", "(slowly)", "on", "words."]) for _ in range(6000))
    while True:
        if planted:
            found = tokenizer.tokenize(text)
            x = torch.tensor(found[:BATCH * LENGTH]).view(BATCH, LENGTH).to(DEVICE, non_blocking=True)
        trainer.step(x, x)
        yield


def add_noise(pictures):
    noisy = pictures + np.random.normal(0, 0.1, pictures.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)


def numpy_noise(planted):
    trainer, y = Trainer(patches=True), tokens()
    pictures = np.random.random((BATCH, LENGTH, PATCH))
    x = patches()
    while True:
        if planted:
            x = torch.from_numpy(add_noise(pictures)).to(DEVICE, DTYPE)
        trainer.step(x, y)
        yield


def loop_sleep(planted):
    trainer, x = Trainer(), tokens()
    while True:
        trainer.step(x, x)
        if planted:
            time.sleep(0.012)  # @sleeps
        yield


class Sample:
    def __init__(self, number):
        self.number, self.words, self.next = number, [number, number + 1], None


def free_memory():
    gc.collect()


def collect_each_step(planted):
    trainer, x = Trainer(), tokens()
    history = [Sample(i) for i in range(10000)]
    while True:
        trainer.step(x, x)
        history[0].next = history[-1]
        if planted:
            free_memory()
        yield


class Journal:
    """One line for each sample, which are not to be lost."""

    def __init__(self, safe):
        self.file, self.safe = open(os.path.join(steady.folder(), f"journal-{os.getpid()}"), "w", encoding="utf-8"), safe

    def append_record(self, record):
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()
        if self.safe:
            os.fsync(self.file.fileno())


def fsync_journal(planted):
    trainer, x, journal = Trainer(), tokens(), Journal(planted)
    for step in itertools.count():
        trainer.step(x, x)
        for i in range(BATCH * 12):
            journal.append_record({"step": step, "sample": i, "words": LENGTH})
        yield


def read_temperature():
    """As others ask for it by a tool."""
    said = subprocess.run([sys.executable, "-S", "-E", "-c", "print(40 + sum(range(100000)) % 30)"], capture_output=True, text=True,
                          check=True)
    return int(said.stdout)


def tool_each_step(planted):
    trainer, x = Trainer(), tokens()
    while True:
        trainer.step(x, x)
        if planted:
            read_temperature()
        yield


def save_checkpoint(trainer, path):
    torch.save({"model": trainer.model.state_dict()}, path)


def checkpoint_often(planted):
    trainer, x = Trainer(), tokens()
    path = os.path.join(steady.folder(), f"checkpoint-{os.getpid()}.pt")
    for step in itertools.count():
        trainer.step(x, x)
        if planted and step % 5 == 0:
            save_checkpoint(trainer, path)
        yield


def edit_distance(said, meant):
    row = list(range(len(meant) + 1))
    for i, word in enumerate(said, 1):
        left, row[0] = row[0], i
        for j, other in enumerate(meant, 1):
            left, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, left + (word != other))
    return row[-1]


def error_rate_each_step(planted):
    trainer, x = Trainer(), tokens()
    said, meant = [[random.randrange(50) for _ in range(260)] for _ in range(2)]
    while True:
        trainer.step(x, x)
        if planted:
            edit_distance(said, meant)
        yield


def assemble_batch(sample, count):
    whole = np.empty((count, *sample.shape), sample.dtype)
    for i in range(count):
        whole[i] = sample
    return whole


def fresh_memory(planted):
    trainer, x = Trainer(), tokens()
    sample = np.ones((64, 64, 1024), np.float32)
    while True:
        if planted:
            assemble_batch(sample, 6)
        trainer.step(x, x)
        yield


ROW = 4096


class Table:
    """Rows in a file, larger than what is to be in memory."""

    def __init__(self, megabytes=16 if SMALL else 256):
        self.path = os.path.join(steady.folder(), "table")
        if not os.path.exists(self.path):
            block = os.urandom(1 << 20)
            with open(self.path + f".{os.getpid()}", "wb") as file:
                for _ in range(megabytes):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            os.rename(self.path + f".{os.getpid()}", self.path)
        self.file = open(self.path, "rb")
        self.rows = os.path.getsize(self.path) // ROW

    def forget(self):
        """As where other files have taken the memory meanwhile."""
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class MappedTable(Table):
    def __init__(self):
        super().__init__()
        self.map = mmap.mmap(self.file.fileno(), 0, prot=mmap.PROT_READ)
        self.map.madvise(mmap.MADV_RANDOM)

    def look_up_rows(self, numbers):
        found = [self.map[number * ROW:number * ROW + 64] for number in numbers]
        self.map.madvise(mmap.MADV_DONTNEED)
        self.forget()
        return found


def cold_map(planted):
    trainer, x, table = Trainer(), tokens(), MappedTable()
    while True:
        if planted:
            table.look_up_rows([random.randrange(table.rows) for _ in range(800)])
        trainer.step(x, x)
        yield


class FileTable(Table):
    def __init__(self):
        super().__init__()
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)

    def read_rows(self, numbers):
        found = [os.pread(self.file.fileno(), ROW, number * ROW) for number in numbers]
        self.forget()
        return found


def cold_reads(planted):
    trainer, x, table = Trainer(), tokens(), FileTable()
    while True:
        if planted:
            table.read_rows([random.randrange(table.rows) for _ in range(800)])
        trainer.step(x, x)
        yield


def one_cpu_for_all(planted):
    """Pinned to one CPU, as by a container's limit, with others there."""
    trainer, x = Trainer(), tokens()
    one = {max(os.sched_getaffinity(0))}
    if planted:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), one)
        for _ in range(4):
            subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"])
    while True:
        trainer.step(x, x)
        yield


def compiled_for_each_length(planted):
    import torch._dynamo

    for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit", "accumulated_cache_size_limit"):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 1 << 20)
    torch._dynamo.config.automatic_dynamic_shapes = False
    torch._dynamo.config.assume_static_by_default = True
    model = Model(2).to(DEVICE, DTYPE)
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    x = tokens(BATCH * 4)
    for step in itertools.count():
        length = LENGTH - (1 + step % (LENGTH // 2) if planted else 0)
        with torch.no_grad():
            compiled(x[:, :length])  # @recompiles
        yield


class OffloadedAdam:
    """Keeps its state, and computes, in the host's memory."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.copies = [parameter.detach().float().cpu() for parameter in parameters]
        self.adam = torch.optim.Adam(self.copies, lr=1e-4, foreach=False)

    def offloaded_update(self):
        for copy, parameter in zip(self.copies, self.parameters):
            copy.grad = parameter.grad.float().cpu()
        self.adam.step()
        with torch.no_grad():
            for copy, parameter in zip(self.copies, self.parameters):
                parameter.copy_(copy)
        for parameter in self.parameters:
            parameter.grad = None


def offloaded_optimizer(planted):
    trainer, x = Trainer(2), tokens()
    offloaded = OffloadedAdam(list(trainer.model.parameters()))
    while True:
        trainer.forward_backward(x, x)
        if planted:
            offloaded.offloaded_update()
        else:
            trainer.update()
        yield


def sample_top_p(logits, limit=0.9):
    order = np.argsort(-logits)
    shares = np.exp(logits[order] - logits[order[0]])
    shares /= shares.sum()
    kept = order[:int(np.searchsorted(np.cumsum(shares), limit)) + 1]
    return int(np.random.choice(kept))


def sampled_on_host(planted):
    """Words one after the other, each chosen from 128,000."""
    model = Model(8).to(DEVICE, DTYPE)
    head = torch.nn.Linear(VOCAB, 128000).to(DEVICE, DTYPE)
    x = tokens(BATCH)
    while True:
        with torch.no_grad():
            logits = head(model(x)[0, -1])
            if planted:
                x[0, -1] = sample_top_p(logits.float().cpu().numpy()) % VOCAB
            else:
                x[0, -1] = logits.argmax() % VOCAB
        yield


KINDS = {function.__name__: function for function in (
    slow_getitem, slow_collate, tokenize_in_step, numpy_noise, loop_sleep, collect_each_step, fsync_journal, tool_each_step,
    checkpoint_often, error_rate_each_step, fresh_memory, cold_map, cold_reads, one_cpu_for_all, compiled_for_each_length,
    offloaded_optimizer, sampled_on_host)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
