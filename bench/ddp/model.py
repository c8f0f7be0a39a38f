# SPDX-License-Identifier: MIT
"""One of the two processes of a distributed training that bench/ddp measures: a transformer of 8 layers, gradients summed by NCCL.

    model.py SOCKET         RANK, MASTER_ADDR, MASTER_PORT and DDP_BACKEND (nccl) in the environment

Answers as bench/step/model.py does; its one size is ddp. All processes have to be asked for the same steps.
"""

import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "step"))
from model import SIZES, Training, serve  # noqa: E402

LAYERS, PROCESSES = 8, 2


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group(os.environ.get("DDP_BACKEND", "nccl"), rank=rank, world_size=PROCESSES)
    training = Training(*SIZES["small"], layers=LAYERS, wrap=torch.nn.parallel.DistributedDataParallel)
    serve(sys.argv[1], {"ddp": training}, {"rank": rank})


if __name__ == "__main__":
    main()
