# SPDX-License-Identifier: MIT
"""metrics_load.py bf16|fp32|add SECONDS READY: one kind of work on the first GPU, over and over; READY is made when it is steady."""

import sys
import time

import torch

SIZE = 8192


def load(name):
    torch.backends.cuda.matmul.allow_tf32 = False
    if name == "add":
        values = torch.zeros(1 << 28, device="cuda")
        return lambda: values.add_(1)
    kind = torch.bfloat16 if name == "bf16" else torch.float32
    left, right = (torch.randn(SIZE, SIZE, device="cuda", dtype=kind) for _ in range(2))
    out = torch.empty_like(left)
    return lambda: torch.matmul(left, right, out=out)


def main():
    name, seconds, ready = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    step = load(name)
    step()
    torch.cuda.synchronize()
    with open(ready, "w", encoding="utf-8"):
        pass
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            step()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
