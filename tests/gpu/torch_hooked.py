# SPDX-License-Identifier: MIT
"""Calls cuBLAS, cuDNN and NCCL a known number of times, by way of PyTorch, and prints how often as a line of JSON."""

import json
import os
import sys

import torch

PRODUCTS, CONVOLUTIONS, SUMS, ELEMENTS = 30, 20, 10, 1000
# One process is a group as well, and NCCL must not use multicast here: see its manual.
ALONE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29541", "RANK": "0", "WORLD_SIZE": "1", "NCCL_NVLS_ENABLE": "0"}


def main():
    os.environ.update(ALONE)
    torch.backends.cudnn.benchmark = False
    torch.distributed.init_process_group("nccl")
    a, image = torch.randn(512, 512, device="cuda"), torch.randn(8, 16, 64, 64, device="cuda")
    convolution = torch.nn.Conv2d(16, 32, 3).cuda().requires_grad_(False)
    for _ in range(PRODUCTS):
        torch.mm(a, a)
    for _ in range(CONVOLUTIONS):
        convolution(image)
    numbers = torch.ones(ELEMENTS, device="cuda")
    for _ in range(SUMS):
        torch.distributed.all_reduce(numbers)
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()
    print(json.dumps({"products": PRODUCTS, "convolutions": CONVOLUTIONS, "sums": SUMS, "bytes": ELEMENTS * 4}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
