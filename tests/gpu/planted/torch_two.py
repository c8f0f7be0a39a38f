# SPDX-License-Identifier: MIT
"""PyTorch programs with two problems each; the larger is named first in their names."""

import random
import time

import numpy as np
import steady
import torch
from model import BATCH, DEVICE, DTYPE, LENGTH, PATCH, Trainer, forever, patches, to_gpu, tokens, wait
from torch.utils.data import DataLoader
from torch_calls import gradient_norms, release_memory, upload_volume
from torch_host import Photos, add_noise, edit_distance


def rate_limit():
    time.sleep(0.030)


def two_sleep_items(planted):
    trainer, x = Trainer(8), tokens(4)
    while True:
        trainer.forward_backward(x, x)
        if planted:
            gradient_norms(trainer.model)
            rate_limit()
        trainer.update()
        yield


def two_decode_cache(planted):
    trainer = Trainer(patches=True)
    for batch in forever(DataLoader(Photos(planted), batch_size=BATCH * 3)):
        x, y = to_gpu([part[:BATCH] for part in batch])
        trainer.step(x.to(DTYPE) / 255, y)
        if planted:
            release_memory()
        yield


def two_noise_nap(planted):
    trainer, y = Trainer(patches=True), tokens()
    pictures = np.random.random((BATCH * 2, LENGTH, PATCH))
    x = patches()
    while True:
        if planted:
            x = torch.from_numpy(add_noise(pictures)[:BATCH]).to(DEVICE, DTYPE)
        trainer.step(x, y)
        if planted:
            rest_briefly()
        yield


def rest_briefly():
    time.sleep(0.008)


def two_distance_upload(planted):
    """An edit distance of some 20 ms, and a pageable copy of some 6 ms."""
    trainer, x = Trainer(), tokens()
    said, meant = [[random.randrange(50) for _ in range(400)] for _ in range(2)]
    volume = torch.zeros(48, 1 << 20, dtype=torch.uint8)
    ready = volume[:, :1].to(DEVICE)
    while True:
        if planted:
            ready = upload_volume(volume, ready)
        trainer.step(x, x + ready[0, :1].long())
        if planted:
            edit_distance(said, meant)
        yield


KINDS = {function.__name__: function for function in (two_sleep_items, two_decode_cache, two_noise_nap, two_distance_upload)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
