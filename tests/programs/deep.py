# SPDX-License-Identifier: MIT
"""Spends its time so many functions deep, until standard input ends."""

import sys
import threading

over = threading.Event()


def spin():
    while not over.is_set():
        pass


def dive(levels):
    if levels:
        dive(levels - 1)
    else:
        spin()


def outermost():
    dive(int(sys.argv[1]))


def wait_for_the_end():
    sys.stdin.read()
    over.set()


sys.setrecursionlimit(5000)
threading.Thread(target=wait_for_the_end).start()
print("ready", flush=True)
outermost()
