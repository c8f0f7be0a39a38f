# SPDX-License-Identifier: MIT
"""The training step that bench/step measures: a 6-layer transformer, forward, backward, AdamW.

    model.py SOCKET

Connects to a Unix socket and answers each line "steps SIZE N" with {"ms": M}, the milliseconds of
one of N steps. One process serves bare and traced windows alike. "profiler on" and "profiler off"
run PyTorch's own profiler (what ran on the GPU only) around steps. Sizes: small, which waits for
launches, and large, which waits for the GPU.
"""

import gc
import json
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
    def __init__(self, width, heads, batch, length, dtype):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0,
                                                 batch_first=True)
        self.model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.model.to("cuda", dtype)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.x = torch.randn(batch, length, width, device="cuda", dtype=dtype)

    def step(self):
        self.optimizer.zero_grad()
        self.model(self.x).square().mean().backward()
        self.optimizer.step()

    def measure(self, steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / steps


def switch(profiler, on):
    """Starts PyTorch's profiler, or ends the one that runs and throws its events away."""
    if on:
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        profiler.start()
        return profiler
    profiler.stop()
    return None


def main():
    trainings = {name: Training(*size) for name, size in SIZES.items()}
    for training in trainings.values():
        training.measure(WARM_UP)
    gc.collect()
    gc.disable()
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(sys.argv[1])
        lines = peer.makefile("rw")
        print(json.dumps({"torch": torch.__version__}), file=lines, flush=True)
        profiler = None
        for line in lines:
            if line.startswith("profiler"):
                profiler = switch(profiler, line.split()[1] == "on")
                print("{}", file=lines, flush=True)
                continue
            _, size, steps = line.split()
            print(json.dumps({"ms": trainings[size].measure(int(steps))}), file=lines, flush=True)


if __name__ == "__main__":
    main()
