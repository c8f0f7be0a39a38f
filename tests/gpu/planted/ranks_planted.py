# SPDX-License-Identifier: MIT
"""PyTorch trainings of two ranks on two GPUs, or of PLANTED_RANKS on as many, started from one process; one rank has a problem.

Where there is one GPU both share it: NCCL takes them for ranks of two machines, and sends what they exchange through the loopback.

The first process says what rank 0 says, so that both are seen as one program: -p of it is of all.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time

import steady
import torch
import torch.distributed as dist
from model import BATCH, DEVICE, DTYPE, SMALL, Model, Trainer, forever, to_gpu, tokens, wait
from torch.nn.parallel import DistributedDataParallel
from torch_feed import Augmented, loader
from torch_host import edit_distance, save_checkpoint

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("PLANTED_RANKS", "2"))
SHARED = not SMALL and torch.cuda.device_count() < 2
GPU = 0 if SHARED else RANK
HANGS_AFTER_SECONDS = 3


def trainer_of_ranks(**more):
    return Trainer(wrap=lambda model: DistributedDataParallel(model, device_ids=None if SMALL else [GPU]), **more)


def fetch_late():
    time.sleep(0.008)


def ranks_sleep(planted):
    trainer, x = trainer_of_ranks(), tokens()
    while True:
        if planted and RANK == 1:
            fetch_late()
        trainer.step(x, x)
        yield


def ranks_slow_loader(planted):
    trainer = trainer_of_ranks(patches=True)
    for batch in forever(loader(Augmented(planted and RANK == 1))):
        x, y = to_gpu(batch)
        trainer.step(x.to(DTYPE), y)
        yield


def uneven_batch(trainer, x):
    trainer.step(x, x)


def ranks_more_kernels(planted):
    """Long sentences all came to rank 1."""
    yield from more_kernels(trainer_of_ranks(), planted)


def more_kernels(trainer, planted):
    """More of them where ranks share a GPU, as what they exchange takes long there."""
    x = tokens(BATCH * (16 if SHARED else 4) if planted and RANK == 1 else BATCH)
    while True:
        uneven_batch(trainer, x)
        yield


def score_words(said, meant):
    return edit_distance(said, meant)


def ranks_score_on_one(planted):
    """Rank 1 computes on the host before all gather what they predict."""
    model, x = Model(4).to(DEVICE, DTYPE), tokens(BATCH * 2)
    words = [[random.randrange(50) for _ in range(200)] for _ in range(2)]
    got = [torch.empty(BATCH * 2, device=DEVICE, dtype=torch.int64) for _ in range(RANKS)]
    while True:
        with torch.no_grad():
            best = model(x)[:, -1].argmax(-1)
        if planted and RANK == 1:
            score_words(*words)
        dist.all_gather(got, best)
        yield


def write_history(trainer):
    save_checkpoint(trainer, os.path.join(steady.folder(), f"history-{os.getpid()}.pt"))


def ranks_checkpoint_on_first(planted):
    """Rank 0 writes what it has each four steps, and rank 1 waits for it."""
    trainer, x, steps = trainer_of_ranks(), tokens(), 0
    while True:
        trainer.step(x, x)
        steps += 1
        if planted and RANK == 0 and steps % 4 == 0:
            write_history(trainer)
        yield


def ranks_healthy(_):
    trainer, x = trainer_of_ranks(layers=8), tokens(BATCH * 2)
    while True:
        trainer.step(x, x)
        yield


def sharded_trainer(**more):
    """Parameters in shards, gathered while kernels of the layer before run."""
    from torch.distributed.fsdp import fully_shard

    def shard(model):
        for block in model.blocks:
            fully_shard(block)
        return fully_shard(model)

    return Trainer(wrap=shard, **more)


def ranks_sharded(_):
    trainer, x = sharded_trainer(layers=8), tokens(BATCH * 4)
    while True:
        trainer.step(x, x)
        yield


def sharded_sleep(planted):
    trainer, x = sharded_trainer(), tokens()
    while True:
        if planted and RANK == 1:
            fetch_late()
        trainer.step(x, x)
        yield


def sharded_slow_loader(planted):
    trainer = sharded_trainer(patches=True)
    for batch in forever(loader(Augmented(planted and RANK == 1))):
        x, y = to_gpu(batch)
        trainer.step(x.to(DTYPE), y)
        yield


def sharded_more_kernels(planted):
    yield from more_kernels(sharded_trainer(), planted)


def wait_for_more_data():
    while True:
        time.sleep(1)


def ranks_hang(planted):
    """Rank 1 leaves the loop."""
    trainer, x, begin = trainer_of_ranks(), tokens(), time.monotonic()
    while True:
        if planted and RANK == 1 and time.monotonic() > begin + HANGS_AFTER_SECONDS:
            wait_for_more_data()
        trainer.step(x, x)
        yield


KINDS = {function.__name__: function for function in (
    ranks_sleep, ranks_slow_loader, ranks_more_kernels, ranks_score_on_one, ranks_checkpoint_on_first, ranks_healthy,
    ranks_sharded, sharded_sleep, sharded_slow_loader, sharded_more_kernels, ranks_hang)}


def run_rank(options):
    """Rank 0 decides for all when it is over."""
    steady.hold(options)
    if not SMALL:
        torch.cuda.set_device(GPU)
    dist.init_process_group("gloo" if SMALL else "nccl", rank=RANK, world_size=RANKS)
    steps = KINDS[options.kind](not options.without)
    if RANK == 0:
        steady.run_steps(steps, wait, options.seconds, options.early)
    else:
        for _ in steps:
            pass
    steady.leave()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start_ranks(options):
    """All import before they are let go, and what rank 0 says then is said here."""
    words = [sys.executable, *(argument for argument in sys.argv if argument != "--hold"), "--hold"]
    env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(RANKS)}
    if SHARED:
        env["NCCL_SOCKET_IFNAME"] = "lo"
    ranks = [subprocess.Popen(words, env={**env, "RANK": str(rank), **({"NCCL_HOSTID": f"rank{rank}"} if SHARED else {})},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
    for rank in ranks:
        rank.stdout.readline()
    steady.hold(options)
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, _: ranks[0].send_signal(number))
    for rank in ranks:
        rank.stdin.write("go\n")
        rank.stdin.flush()
    for line in ranks[0].stdout:
        steady.say(line.strip())
    for rank in ranks[1:]:
        rank.kill()
    sys.exit(ranks[0].wait())


if __name__ == "__main__":
    OPTIONS = steady.arguments(KINDS)
    run_rank(OPTIONS) if "RANK" in os.environ else start_ranks(OPTIONS)
