# SPDX-License-Identifier: MIT
# A training with a DataLoader of two workers, autocast, gradient accumulation, a scheduler, clipping, logging, a checkpoint now and then.
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randint(0, 8000, (257,), generator=g)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8000, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, dropout=0.1)
        self.body = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(768, 8000)

    def forward(self, x):
        return self.head(self.body(self.embed(x)))


def train(until):
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 0.0001)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    loss_of = nn.CrossEntropyLoss()
    step = 0
    begin = time.time()
    for batch in DataLoader(Words(), batch_size=16, num_workers=2, pin_memory=True):
        batch = batch.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()) / 2
        loss.backward()
        step += 1
        if step % 2 == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        if step % 20 == 0:
            print(step, loss.item(), f"{(time.time() - begin) / step * 1000.0:.1f} ms a micro-batch", flush=True)
        if step % 400 == 0:
            torch.save(model.state_dict(), "/tmp/checkpoint.pt")
        if time.time() > until:
            break


train(time.time() + 33)
