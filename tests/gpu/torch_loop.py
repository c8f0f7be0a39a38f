# SPDX-License-Identifier: MIT
"""The PyTorch programs that are traced.

    torch_loop.py known            operations of which each makes a known number of calls; writes
                                   what they should be to SAMPLE_COUNTS
    torch_loop.py model [FILE]     training steps of a small model, always the same; with FILE under
                                   PyTorch's own profiler, whose kernels go there
    torch_loop.py serve            does on demand, a line on standard input each, answered by one:
                                   launch N, busy SECONDS, graph SECONDS: replays of one graph that
                                   was captured when this was first asked for
"""

import json
import os
import sys
import time

import torch

ADDS, MULTIPLIES, COPIES, STEPS = 1000, 500, 10, 5


def known():
    x = torch.ones(1 << 20, device="cuda")
    y = torch.empty_like(x)
    host = torch.arange(4096, dtype=torch.float32)
    for _ in range(ADDS):
        x.add_(1)
    for _ in range(MULTIPLIES):
        x.mul_(2)
    for _ in range(COPIES):
        host.to("cuda")
        x[:1000].cpu()
        y.copy_(x)
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    counts = {
        # By a part of the kernel's name; the last is what torch.ones fills with.
        "kernels": {"CUDAFunctorOnSelf_add<float>": ADDS, "MulFunctor<float>": MULTIPLIES,
                    "FillFunctor<float>": 1},
        "copies": {"H2D": [COPIES, COPIES * 4096 * 4], "D2H": [COPIES, COPIES * 1000 * 4],
                   "D2D": [COPIES, COPIES * (4 << 20)]},
        "mallocs": [stats["num_device_alloc"], stats["reserved_bytes.all.allocated"]],
    }
    with open(os.environ["SAMPLE_COUNTS"], "w") as out:
        json.dump(counts, out)


def train(steps):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(8, 32, 128, device="cuda")
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()


def model(profile=None):
    if not profile:
        train(STEPS)
        return
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        train(STEPS)
    profiler.export_chrome_trace(profile + ".trace")
    with open(profile + ".trace") as trace:
        events = json.load(trace)["traceEvents"]
    os.unlink(profile + ".trace")
    with open(profile, "w") as out:
        json.dump([[e["name"], e["args"]["grid"], e["args"]["block"]]
                   for e in events if e.get("cat") == "kernel"], out)


def captured(x):
    """A graph of ten additions."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            x.add_(1)
    return graph


def serve():
    x = torch.ones(1024, device="cuda")
    graph = None
    x.add_(1)
    torch.cuda.synchronize()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        what, amount = line.split()
        if what == "graph" and not graph:
            graph = captured(x)
        launches, begin = 0, time.monotonic()
        while launches < int(amount) if what == "launch" else time.monotonic() - begin < float(amount):
            if what == "graph":
                graph.replay()
            else:
                x.add_(1)
            launches += 1
        torch.cuda.synchronize()
        print(json.dumps({"launches": launches, "seconds": time.monotonic() - begin}), flush=True)


if __name__ == "__main__":
    {"known": known, "model": model, "serve": serve}[sys.argv[1]](*sys.argv[2:])
