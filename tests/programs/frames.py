# SPDX-License-Identifier: MIT
"""Goes through chains of calls that are known, each for some milliseconds, until standard input ends: what the stacks of a
profile are compared with. Runs on Python 3.6 and later. A comment "at NAME" marks the line of the call that leads
on; see test_profile_python.py."""
import asyncio
import ctypes
import functools
import hashlib
import sys
import threading
import time

over = False
data = b"x" * (8 << 20)


def spin(ms=15):
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end:
        for _ in range(200):
            pass
    return 1


class Layer:
    def scale(self, value):
        return spin()  # at Layer.scale


class Model:
    def __init__(self):
        self.layer = Layer()

    def step(self, value):
        return self.layer.scale(value)  # at Model.step


def methods():
    return Model().step(3)  # at methods


def in_lambda():
    return (lambda: spin())()  # at in_lambda and <lambda>


def inner_generator():
    for i in range(2):
        yield spin()  # at inner_generator


def outer_generator():
    yield from inner_generator()  # at outer_generator


def generators():
    for value in outer_generator():  # at generators
        value += 1


def recursion(depth):
    if not depth:
        return spin()  # at recursion end
    return recursion(depth - 1)  # at recursion


def deep():
    return recursion(60)  # at deep


def compare(a, b):
    return spin()  # at compare


def key(value):
    return compare(value, 1)  # at key


def by_key():
    return sorted([2, 1], key=key)  # at by_key


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
called_back = CALLBACK(compare)
libc = ctypes.CDLL(None)


def by_ctypes():
    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, called_back)  # at by_ctypes


async def inner_coroutine():
    return spin()  # at inner_coroutine


async def outer_coroutine():
    return await inner_coroutine()  # at outer_coroutine


def coroutines():
    asyncio.new_event_loop().run_until_complete(outer_coroutine())  # at coroutines


def wrapped(function):
    @functools.wraps(function)
    def wrapper():
        return function()  # at wrapper
    return wrapper


@wrapped
def decorated():
    return spin()  # at decorated


def größe():
    return spin()  # at größe


def reduced():
    return functools.reduce(compare, [1, 2])  # at reduced


def without_the_lock():
    """The interpreter's lock is given up while the library works."""
    return hashlib.sha256(data).digest()  # at without_the_lock


def raising():
    try:
        raise ValueError
    except ValueError:
        return spin()  # at raising


def in_thread():
    spin()  # at in_thread


def threads():
    all_of_them = [threading.Thread(target=in_thread) for _ in range(2)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()


CHAINS = (methods, in_lambda, generators, deep, by_key, by_ctypes, coroutines, decorated, größe, reduced,
          without_the_lock, raising, threads)


def wait_for_the_end():
    global over
    sys.stdin.read()
    over = True


def main():
    threading.Thread(target=wait_for_the_end, daemon=True).start()
    print("ready", flush=True)
    while not over:
        for chain in CHAINS:
            chain()  # at main


if __name__ == "__main__":
    main()  # at <module>
