# SPDX-License-Identifier: MIT
"""PyTorch programs with a problem in what they ask of the GPU."""

import itertools
import random

import steady
import torch
from model import BATCH, DEVICE, DTYPE, SMALL, VOCAB, WIDTH, Block, Model, Trainer, tokens, wait


def release_memory():
    torch.cuda.empty_cache()


def empty_cache_each_step(planted):
    trainer, x = Trainer(), tokens()
    while True:
        trainer.step(x, x)
        if planted:
            release_memory()
        yield


def gradient_norms(model):
    return [parameter.grad.norm().item() for parameter in model.parameters()]


def item_of_each_gradient(planted):
    trainer, x = Trainer(8), tokens(4)
    while True:
        trainer.forward_backward(x, x)
        if planted:
            for _ in range(2):
                gradient_norms(trainer.model)
        trainer.update()
        yield


def keep_predictions(logits):
    return logits.cpu()


def logits_to_host(planted):
    model = Model(4).to(DEVICE, DTYPE)
    x = tokens(BATCH * 2)
    while True:
        with torch.no_grad():
            logits = model(x)
            if planted:
                keep_predictions(logits)
        yield


def upload_volume(volume, _):
    return volume.to(DEVICE)


def pageable_upload(planted):
    trainer, x = Trainer(), tokens()
    volume = torch.zeros(4 if SMALL else 64, 1 << 20, dtype=torch.uint8)
    ready = volume.to(DEVICE)
    while True:
        if planted:
            ready = upload_volume(volume, ready)
        trainer.step(x, x + ready[0, :1].long())
        yield


def pinned_in_turn(planted):
    """The copy and the kernels could run at the same time."""
    trainer, x = Trainer(8), tokens()
    volume = torch.zeros(4 if SMALL else 320, 1 << 20, dtype=torch.uint8)
    here = volume.to(DEVICE)
    if not SMALL:
        volume = volume.pin_memory()
    side = None if planted or SMALL else torch.cuda.Stream()
    while True:
        if planted:
            copy_in(here, volume)
        elif side:
            with torch.cuda.stream(side):
                copy_in(here, volume)
        trainer.step(x, x)
        if side:
            torch.cuda.current_stream().wait_stream(side)
            side.wait_stream(torch.cuda.current_stream())
        yield


def copy_in(here, volume):
    here.copy_(volume, non_blocking=True)


def update_parameters(optimizer):
    optimizer.step()


class ManySmall(torch.nn.Module):
    """Hundreds of small parameters beside the others, as of adapters."""

    def __init__(self, count=400):
        super().__init__()
        self.model = Model(4)
        self.small = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(64)) for _ in range(count))

    def forward(self, x):
        return self.model(x) + torch.stack(list(self.small)).sum()


def adam_for_each(planted):
    more = {"foreach": False} if planted else {} if SMALL else {"fused": True}
    trainer = Trainer(model=ManySmall(), optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-4, **more))
    x = tokens()
    while True:
        trainer.forward_backward(x, x)
        update_parameters(trainer.optimizer)
        trainer.optimizer.zero_grad()
        yield


def move_targets(targets):
    return [target.to(DEVICE) for target in targets]


def many_small_copies(planted):
    trainer, x = Trainer(), tokens()
    boxes = [torch.zeros(1 + i % 20, 4) for i in range(800)]
    while True:
        if planted:
            move_targets(boxes)
        trainer.step(x, x)
        yield


def select_valid(scores, limits):
    return [scores[i][scores[i] > limits[i]] for i in range(len(scores))]


def masks_of_each_sample(planted):
    trainer, x = Trainer(), tokens()
    scores, limits = torch.rand(160, 4096, device=DEVICE), torch.rand(160, device=DEVICE)
    while True:
        trainer.step(x, x)
        if planted:
            select_valid(scores, limits)
        yield


def pad_batch(longest):
    return torch.empty(longest, device=DEVICE, dtype=torch.uint8)


def memory_nearly_full(planted):
    """Batches of other sizes each time, with no room to keep blocks of them all."""
    trainer, x = Trainer(2), tokens()
    trainer.step(x, x)
    if not SMALL:
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (3 << 30)) / whole)
    while True:
        for _ in range(6):
            size = random.randrange(1600, 2600) if planted else 2600
            room = pad_batch(size << (10 if SMALL else 20))
            room[:1 << 10].zero_()
            del room
        trainer.step(x, x)
        yield


class TimedBlocks(torch.nn.Module):
    def __init__(self, planted):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(WIDTH) for _ in range(4 if SMALL else 40))
        self.planted = planted

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            if self.planted:
                time_layer()
        return x


def time_layer():
    wait()


def wait_for_each_layer(planted):
    model = TimedBlocks(planted).to(DEVICE, DTYPE)
    x = torch.randn(4, 512, WIDTH, device=DEVICE, dtype=DTYPE)
    while True:
        with torch.no_grad():
            model(x)
        yield


def decode_word(model, x):
    return model(x)[:, -1].argmax(-1, keepdim=True)


def words_one_by_one(planted):
    """Eight words of one sentence a step: of each layer some ten kernels of few microseconds."""
    model = Model(8).to(DEVICE, DTYPE)
    word = tokens(1, length=1)
    graph = None
    if not planted and not SMALL:
        graph = captured(lambda: word.copy_(decode_word(model, word)))
    with torch.no_grad():
        while True:
            for _ in range(8):
                if graph:
                    graph.replay()
                else:
                    word = decode_word(model, word)
            yield


def captured(function):
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            function()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        function()
    return graph


def average_parameters(averages, model, kept):
    """An exponential average, kept one parameter after the other."""
    with torch.no_grad():
        for average, parameter in zip(averages, model.parameters()):
            average.mul_(kept)
            average.add_(parameter.detach() * (1 - kept))


def average_one_by_one(planted):
    trainer, x = Trainer(8), tokens(4)
    averages = {kept: [parameter.detach().clone() for parameter in trainer.model.parameters()] for kept in (0.9, 0.99, 0.999, 0.9999)}
    while True:
        trainer.step(x, x)
        if planted:
            for kept, average in averages.items():
                average_parameters(average, trainer.model, kept)
        yield


def embed_sample(model, sample):
    return model(sample.unsqueeze(0)).mean(1)


def samples_one_by_one(planted):
    """A batch of short samples, each asked by itself."""
    model = Model(4).to(DEVICE, DTYPE)
    x = tokens(32, length=16)
    while True:
        with torch.no_grad():
            if planted:
                torch.cat([embed_sample(model, sample) for sample in x])
            else:
                model(x).mean(1)
        yield


def check_finite(model):
    for parameter in model.parameters():
        if not torch.isfinite(parameter.grad).all():
            raise ValueError("a gradient is not finite")


def check_of_each_gradient(planted):
    trainer, x = Trainer(8), tokens(4)
    while True:
        trainer.forward_backward(x, x)
        if planted:
            check_finite(trainer.model)
        trainer.update()
        yield


def new_mask(words):
    """Built on the host each time, though it is always the same."""
    mask = torch.full((words, words), float("-inf"))
    return torch.triu(mask, diagonal=1).to(DEVICE)


def mask_from_host(planted):
    trainer, x = Trainer(), tokens()
    kept = new_mask(2048)
    for _ in itertools.count():
        mask = new_mask(2048) if planted else kept
        trainer.step(x, (x + (mask[0, 0] != 0).long()) % VOCAB)
        yield


KINDS = {function.__name__: function for function in (
    empty_cache_each_step, item_of_each_gradient, logits_to_host, pageable_upload, pinned_in_turn, adam_for_each,
    many_small_copies, masks_of_each_sample, memory_nearly_full, wait_for_each_layer, words_one_by_one, average_one_by_one,
    samples_one_by_one, check_of_each_gradient, mask_from_host)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
