# SPDX-License-Identifier: MIT
# PyTorch Lightning: an image classifier, its loader without workers, metrics logged each step.
import logging
import pytorch_lightning as pl
import torch
import torch.nn as nn

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        picture = torch.rand(3, 96, 96, generator=g)
        return (self.normalize(picture), i % 10)

    def normalize(self, picture):
        return (picture - picture.mean((1, 2), keepdim=True)) / picture.std((1, 2), keepdim=True)


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


trainer = pl.Trainer(max_time="00:00:00:28", accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Classifier(), torch.utils.data.DataLoader(Pictures(), batch_size=32))
