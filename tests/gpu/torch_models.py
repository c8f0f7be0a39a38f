# SPDX-License-Identifier: MIT
"""Training steps of the two models of bench/step, always the same; the large one with twice the batch,
so that also a slow host keeps the GPU busy.

    torch_models.py small|large STEPS [FILE]    with FILE under PyTorch's own profiler: {kernel: [ns, ...]}
"""

import collections
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "step"))
from model import SIZES, Training  # noqa: E402


def main():
    size, steps, *file = sys.argv[1:]
    width, heads, batch, *rest = SIZES[size]
    training = Training(width, heads, batch * 2 if size == "large" else batch, *rest)
    if not file:
        training.measure(int(steps))
        return
    path = file[0]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        training.measure(int(steps))
    profiler.export_chrome_trace(path + ".trace")
    with open(path + ".trace") as trace:
        events = json.load(trace)["traceEvents"]
    os.unlink(path + ".trace")
    kernels = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "kernel":
            kernels[event["name"]].append(round(event["dur"] * 1000))
    with open(path, "w") as out:
        json.dump(kernels, out)


if __name__ == "__main__":
    main()
