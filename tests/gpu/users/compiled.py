# SPDX-License-Identifier: MIT
# A vision-like training under torch.compile with CUDA graphs; the augmentation is done on the host.
import time
import torch
import torch.nn as nn


def blocks():
    c = 3
    for n in (64, 128, 256, 512):
        yield nn.Conv2d(c, n, 3, stride=2, padding=1)
        yield nn.BatchNorm2d(n)
        yield nn.ReLU()
        c = n


model = nn.Sequential(*blocks(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
compiled = torch.compile(model, mode="reduce-overhead")
images = torch.randint(0, 255, (64, 3, 160, 160), dtype=torch.uint8)
labels = torch.randint(0, 1000, (64,)).cuda()


def augment(x):
    x = x.float().div_(255)
    if torch.rand(()) < 0.5:
        x = x.flip(3)
    return x.sub_(0.45).div_(0.22)


def train(until):
    while time.time() < until:
        x = augment(images).cuda()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(compiled(x), labels).backward()
        optimizer.step()


train(time.time() + 45)
