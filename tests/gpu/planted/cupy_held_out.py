# SPDX-License-Identifier: MIT
"""CuPy programs that no rule of `cuscope why` was written against: HELD_OUT of kinds.py."""

import cupy
import cupy_planted as base
import steady


def walk_path(following, count=150):
    """Where to go next is on the GPU, and is asked for there one by one."""
    at = 0
    for _ in range(count):
        at = int(following[at])
    return at


def cupy_path_one_by_one(planted):
    following, a = cupy.arange(1, 100001) % 100000, base.half()
    while True:
        base.work(a, a)
        if planted:
            walk_path(following)
        yield


def load_samples(samples):
    return cupy.asarray(samples, dtype=cupy.float32)


def cupy_from_lists(planted):
    """Python's numbers become an array in each step."""
    samples, a = [i * 0.5 for i in range(500000)], base.half()
    ready = load_samples(samples)
    while True:
        if planted:
            ready = load_samples(samples)
        base.work(a, a)
        ready *= 0.5
        yield


KINDS = {function.__name__: function for function in (cupy_path_one_by_one, cupy_from_lists)}

if __name__ == "__main__":
    steady.main(KINDS, base.wait)
