# SPDX-License-Identifier: MIT
"""PyTorch programs that keep the GPU busy, and one that nobody asks anything."""

import socket

import steady
import torch
from model import BATCH, DEVICE, DTYPE, SMALL, WIDTH, Model, Trainer, forever, to_gpu, tokens, wait
from torch_calls import captured
from torch_feed import Pictures, loader


def fed_training(_):
    trainer, x = Trainer(8), tokens(BATCH * 2)
    while True:
        trainer.step(x, x)
        yield


def fed_by_workers(_):
    """With pinned batches that are read ahead."""
    trainer = Trainer(8, patches=True)
    for batch in forever(loader(Pictures(False))):
        x, y = to_gpu(batch)
        x, y = torch.cat([x, x]), torch.cat([y, y])
        trainer.step(x.to(DTYPE), y)
        yield


def loss_now_and_then(_):
    """Read each fifty steps, as one should."""
    trainer, x, steps = Trainer(8), tokens(BATCH * 2), 0
    while True:
        loss = trainer.step(x, x)
        steps += 1
        if steps % 50 == 0:
            loss.item()
        yield


def graph_of_inference(_):
    model, x = Model(8).to(DEVICE, DTYPE), tokens()
    graph, before = captured(lambda: model(x)), torch.cuda.Event()
    while True:
        graph.replay()
        before.synchronize()
        before.record()
        yield


def big_inference(_):
    model, x = Model(8).to(DEVICE, DTYPE), tokens(BATCH * 4)
    while True:
        with torch.no_grad():
            model(x)
        yield


def compiled_training(_):
    trainer = Trainer(2)
    trainer.model = torch.compile(trainer.model)
    x = tokens(BATCH * 4)
    while True:
        trainer.step(x, x)
        yield


def copies_overlapped(_):
    """The next volume is copied while kernels run, and is needed later than they end."""
    trainer, x = Trainer(8), tokens(BATCH * 2)
    volume = torch.zeros(4 if SMALL else 96, 1 << 20, dtype=torch.uint8).pin_memory()
    here, side = volume.to(DEVICE), torch.cuda.Stream()
    while True:
        with torch.cuda.stream(side):
            here.copy_(volume, non_blocking=True)
        trainer.step(x, x)
        torch.cuda.current_stream().wait_stream(side)
        side.wait_stream(torch.cuda.current_stream())
        yield


def single_precision(_):
    """Large products of float32 without TF32: the tensor cores have nothing to do."""
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.randn(WIDTH * 2, WIDTH * 2, device=DEVICE) for _ in range(2))
    while True:
        for _ in range(12):
            torch.mm(a, b)
        yield


def bound_by_memory(_):
    x = torch.zeros(1 << (16 if SMALL else 28), device=DEVICE)
    while True:
        for _ in range(8):
            x.add_(1)
        yield


def idle_server(_):
    """Has a model, and waits for a question."""
    model, x = Model(4).to(DEVICE, DTYPE), tokens()
    with torch.no_grad():
        model(x)
    wait()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)
    while True:
        try:
            server.accept()
        except TimeoutError:
            pass
        yield


KINDS = {function.__name__: function for function in (
    fed_training, fed_by_workers, loss_now_and_then, graph_of_inference, big_inference, compiled_training, copies_overlapped,
    single_precision, bound_by_memory, idle_server)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
