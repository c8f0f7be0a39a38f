# SPDX-License-Identifier: MIT
"""A program of Python 3.11 or later, deep in a function whose table of lines has 16 KiB: each stack is another, and each
of its instructions is at the end of that table."""

import random
import sys
import threading
import time

ENTRY = bytes([0x80 | 15 << 3])  # one instruction, of no line
SOURCE = "\n".join(["def dive(n, ways):", "  if ways is None:", *["    a = n"] * 9000,
                    "  if not n: rest()", "  elif ways & 1: dive(n - 1, ways >> 1)", "  else: dive(n - 1, ways >> 1)"])
DEPTH = 480


def rest():
    until = time.monotonic() + 0.002
    while time.monotonic() < until:
        pass


def run(dive):
    while True:
        dive(DEPTH, random.getrandbits(DEPTH))


space = {"rest": rest}
exec(SOURCE, space)
space["dive"].__code__ = space["dive"].__code__.replace(co_linetable=ENTRY * (16 << 10))
sys.setrecursionlimit(10 * DEPTH)
threading.Thread(target=run, args=(space["dive"],), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
