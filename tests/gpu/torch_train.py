# SPDX-License-Identifier: MIT
"""A training with a seed that goes on as it is told, for comparing losses to the last digit.

    torch_train.py [RANK PORT]     RANK 0 or 1: one of two processes of a distributed training, each on a GPU of its own

Prints {"pid": N}, then answers each "train N" by the losses of N steps, as hexadecimal numbers.
"""

import json
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else sums may be in another order from run to run

import torch  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "step"))
from model import SIZES, Training  # noqa: E402


class Seeded(Training):
    """Learns numbers from others that are new at each step, so that the loss does not come to rest."""

    def step(self):
        self.optimizer.zero_grad()
        x, y = torch.randn(*self.shape, device="cuda"), torch.randn(*self.shape, device="cuda")
        loss = (self.model(x) - y).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss


def deterministic():
    torch.use_deterministic_algorithms(True, warn_only=True)
    for name in ("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_cudnn_sdp"):
        if hasattr(getattr(getattr(torch, "backends", None), "cuda", None), name):
            getattr(torch.backends.cuda, name)(False)


def distributed(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
    return lambda model: torch.nn.parallel.DistributedDataParallel(model)


def main():
    wrap = distributed(int(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else lambda model: model
    deterministic()
    width, heads, batch, length, dtype = SIZES["small"]
    training = Seeded(width, heads, batch, length, dtype, wrap=wrap)
    training.shape = batch, length, width
    training.measure(20)
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        losses = [training.step() for _ in range(int(line.split()[1]))]
        print(json.dumps([float(loss.item()).hex() for loss in losses]), flush=True)
    if len(sys.argv) > 2:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
