# SPDX-License-Identifier: MIT
"""The transformer that the PyTorch programs train or ask: a step of some milliseconds on a large GPU."""

import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("PLANTED_DEVICE", "cuda")  # "cpu" for trying out the programs themselves
SMALL = DEVICE == "cpu"
DTYPE = torch.float32 if SMALL else torch.bfloat16
VOCAB, PATCH = 4096, 96
WIDTH = 64 if SMALL else int(os.environ.get("PLANTED_WIDTH", "2048"))
LENGTH = 16 if SMALL else 512
BATCH = 8


def wait():
    if not SMALL:
        torch.cuda.synchronize()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = width // 64
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    """Of tokens (integers) or of patches of pictures (PATCH numbers each)."""

    def __init__(self, layers=2, width=WIDTH, patches=False):
        super().__init__()
        self.first = nn.Linear(PATCH, width) if patches else nn.Embedding(VOCAB, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Trainer:
    def __init__(self, layers=2, patches=False, model=None, optimizer=None, wrap=None):
        torch.manual_seed(1)
        self.model = (model or Model(layers, patches=patches)).to(DEVICE, DTYPE)
        if wrap:
            self.model = wrap(self.model)
        make = optimizer or (lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, **({} if SMALL else {"fused": True})))
        self.optimizer = make(list(self.model.parameters()))

    def forward_backward(self, x, y):
        logits = self.model(x)
        loss = F.cross_entropy(logits.view(-1, VOCAB), y.view(-1))
        loss.backward()
        return loss.detach()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self, x, y):
        loss = self.forward_backward(x, y)
        self.update()
        return loss


def tokens(batch=BATCH, device=DEVICE, length=LENGTH):
    return torch.randint(0, VOCAB, (batch, length), device=device)


def patches(batch=BATCH, device=DEVICE):
    return torch.randn(batch, LENGTH, PATCH, device=device, dtype=DTYPE)


def forever(loader):
    while True:
        yield from loader


def to_gpu(batch):
    return [part.to(DEVICE, non_blocking=True) for part in batch]
