# SPDX-License-Identifier: MIT
"""The training step that bench/step measures: a 6-layer transformer, forward, backward, AdamW.

    model.py SOCKET

Connects to a Unix socket and answers each line by one of JSON. One process serves bare and traced windows alike.

    steps SIZE N [SKIP]     N steps, after SKIP that do not count: {"ms": of one step, "cpu_ms": of that, the processor time of all threads
                            that were there at the start, without the wait for the GPU at the end, "others_ms": that of all later threads}
    micro LIBRARY PASSES    loops of single calls (micro.c): {function: [ns a call, ...]}
    profiler on|off         PyTorch's own profiler (what ran on the GPU only)
    cupti LIBRARY on|off    CUPTI's kernel activities alone (bench/gpu/raw.c): {"status": 0 if that worked}

Sizes: small, which waits for launches, and large, which waits for the GPU.
"""

import ctypes
import gc
import json
import os
import socket
import sys
import time

import torch

LAYERS, WARM_UP = 6, 20
#               width heads batch length type
SIZES = {
    "small": (256, 4, 8, 64, torch.float32),
    "large": (2048, 16, 16, 1024, torch.bfloat16),
}


class Training:
    def __init__(self, width, heads, batch, length, dtype, layers=LAYERS, wrap=lambda model: model):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0,
                                                 batch_first=True)
        model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.model = wrap(model.to("cuda", dtype))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.x = torch.randn(batch, length, width, device="cuda", dtype=dtype)

    def step(self):
        """One step; the loss, which is not waited for."""
        self.optimizer.zero_grad()
        loss = self.model(self.x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def measure(self, steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / steps


class Threads:
    """Processor time of this process's threads: of those that were there when this was made, and of the others."""

    def __init__(self):
        self.first = set(self.now())

    @staticmethod
    def now():
        return [int(name) for name in os.listdir("/proc/self/task")]

    @staticmethod
    def clock(tid):
        """A thread's clock, as pthread_getcpuclockid makes it."""
        return (~tid << 3) | 6

    def times(self):
        sums = {True: 0, False: 0}
        for tid in self.now():
            try:
                sums[tid in self.first] += time.clock_gettime_ns(self.clock(tid))
            except OSError:  # it ended
                pass
        return sums


def window(training, threads, steps, skip):
    """As "steps" answers. Processor time is read before the last wait, in which the thread would spin."""
    for _ in range(skip):
        training.step()
    torch.cuda.synchronize()
    before, begin = threads.times(), time.perf_counter()
    for _ in range(steps):
        training.step()
    after = threads.times()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - begin) * 1e3 / steps
    return {"ms": ms, "cpu_ms": (after[True] - before[True]) / 1e6 / steps, "others_ms": (after[False] - before[False]) / 1e6 / steps}


def micro(path, passes):
    """ns a call of each function, once a pass."""
    library = ctypes.CDLL(path)
    library.micro_name.restype = ctypes.c_char_p
    library.micro_ns.restype = ctypes.c_double
    names = [library.micro_name(i).decode() for i in range(library.micro_open())]
    samples = {name: [] for name in names}
    for _ in range(passes):
        for i, name in enumerate(names):
            samples[name].append(library.micro_ns(i))
    return samples


def switch(profiler, on):
    """Starts PyTorch's profiler, or ends the one that runs and throws its events away."""
    if on:
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        profiler.start()
        return profiler
    profiler.stop()
    return None


def serve(path, trainings, about):
    """Answers what comes through the socket until it is closed."""
    for training in trainings.values():
        training.measure(WARM_UP)
    gc.collect()
    gc.disable()
    threads, profiler = Threads(), None
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        lines = peer.makefile("rw")
        print(json.dumps({"torch": torch.__version__, "pid": os.getpid(), **about}), file=lines, flush=True)
        for line in lines:
            what, *words = line.split()
            answer = {}
            if what == "profiler":
                profiler = switch(profiler, words[0] == "on")
            elif what == "cupti":
                library = ctypes.CDLL(words[0])
                answer = {"status": library.raw_begin() if words[1] == "on" else library.raw_end()}
            elif what == "micro":
                answer = micro(words[0], int(words[1]))
            else:
                answer = window(trainings[words[0]], threads, int(words[1]), int((words[2:] or [0])[0]))
            print(json.dumps(answer), file=lines, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], {name: Training(*size) for name, size in SIZES.items()}, {})
