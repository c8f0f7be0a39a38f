# SPDX-License-Identifier: MIT
"""Decodes tokens one after the other with a small transformer: as CUDA graphs do it, as torch.compile's reduce-overhead mode does, or eagerly.

    torch_decode.py graph|compile|eager SECONDS [BEFORE]

Captures after BEFORE seconds (0), so that a tracer can come before or after it. Says `captured`, `ready`, and `steps N step_us U` at its end.
Its longest kernels sort the vocabulary, in penalize_history.
"""

import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "planted"))
import model as parts  # noqa: E402

WORDS, LAYERS, WIDTH = 1 << 18, 4, 1024


def penalize_history(scores):
    order = torch.argsort(scores, dim=-1, descending=True)
    return scores.scatter(-1, order[:, :64], 0.0)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = parts.Model(LAYERS, WIDTH)
        self.scores = torch.nn.Linear(parts.VOCAB, WORDS)

    def forward(self, word):
        return penalize_history(self.scores(self.body(word)[:, -1])).argmax(-1, keepdim=True) % parts.VOCAB


def step_of(way, before=0):
    """A function that decodes one token, without gradients."""
    decoder = Decoder().to("cuda", torch.bfloat16).eval()
    word = torch.zeros(1, 1, device="cuda", dtype=torch.int64)
    decoder(word)
    torch.cuda.synchronize()
    time.sleep(before)
    if way == "graph":
        for _ in range(3):
            decoder(word)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            word.copy_(decoder(word))
        return graph.replay
    run = torch.compile(decoder, mode="reduce-overhead") if way == "compile" else decoder
    return lambda: word.copy_(run(word))


def main():
    way, seconds = sys.argv[1], float(sys.argv[2])
    with torch.no_grad():
        step = step_of(way, float(sys.argv[3]) if len(sys.argv) > 3 else 0)
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        print("captured", flush=True)
        print("ready", flush=True)
        begin, steps = time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            step()
            steps += 1
            if steps % 8 == 0:
                torch.cuda.synchronize()  # a token goes to its user
        torch.cuda.synchronize()
    print(f"steps {steps} step_us {1e6 * (time.monotonic() - begin) / steps:.0f}", flush=True)


if __name__ == "__main__":
    main()
