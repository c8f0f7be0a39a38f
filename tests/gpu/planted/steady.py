# SPDX-License-Identifier: MIT
"""How the programs of this folder run: a warm-up, `ready`, then steps until the time is over or SIGTERM comes.

    FILE.py KIND [--without] [--hold] [--early SECONDS] SECONDS

--without: without the problem. --hold: says `loaded` when all is imported, and waits for a line before it uses a GPU.
--early: says `early N step_us U` of the first so many seconds, and `late N step_us U` of as many after SIGUSR1. A kind is a
generator function of whether the problem is planted: it yields after each step.
"""

import argparse
import contextlib
import os
import signal
import sys
import time

WARM_SECONDS = 1.0
WARM_STEPS = 6


def say(*words):
    print(*words, flush=True)


class Meter:
    def __init__(self, wait):
        self.wait = wait
        wait()
        self.start, self.steps = time.monotonic(), 0

    def seconds(self):
        return time.monotonic() - self.start

    def told(self):
        self.wait()
        return f"{self.steps} step_us {1e6 * self.seconds() / max(self.steps, 1):.0f}"


def run_steps(steps, wait, seconds, early):
    """`wait` ends when the GPU has done all that it was asked."""
    start, warm = time.monotonic(), 0
    while warm < WARM_STEPS or time.monotonic() - start < WARM_SECONDS:
        next(steps)
        warm += 1
    ended, asked = [], []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    meter, parts = Meter(wait), {}
    if early:
        parts["early"] = Meter(wait)
    say("ready")
    while not ended and meter.seconds() < seconds:
        next(steps)
        meter.steps += 1
        for name, part in list(parts.items()):
            part.steps += 1
            if part.seconds() > early:
                say(name, parts.pop(name).told())
        if asked and early:
            parts["late"] = Meter(wait)
            asked.clear()
    say("steps", meter.told())


def arguments(kinds):
    parser = argparse.ArgumentParser(description="programs with one planted problem each")
    parser.add_argument("kind", choices=sorted(kinds), metavar="KIND")
    parser.add_argument("--without", action="store_true")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--early", type=float, default=0, metavar="SECONDS")
    parser.add_argument("seconds", type=float, metavar="SECONDS")
    return parser.parse_args()


def hold(options):
    if options.hold:
        say("loaded")
        if not sys.stdin.readline():
            os._exit(0)


def main(kinds, wait):
    options = arguments(kinds)
    hold(options)
    run_steps(kinds[options.kind](not options.without), wait, options.seconds, options.early)
    leave()


def leave():
    """At once: a kind's threads need not be waited for, and what it started ends with it."""
    sys.stdout.flush()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/task/{task}/children", encoding="utf-8") as children:
            for child in children.read().split():
                os.kill(int(child), signal.SIGKILL)
    os._exit(0)


def folder():
    """Where files may be made that a disk has."""
    path = os.environ.get("PLANTED_DIR", "/var/tmp/planted")
    os.makedirs(path, exist_ok=True)
    return path
