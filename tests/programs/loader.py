# SPDX-License-Identifier: MIT
"""loader.py [STEPS [MODE [MILLISECONDS]]]: a training loop in Python that waits for its data, with nothing but ctypes. Each step gets a batch
and launches a kernel; MODE says how slow the batch is: work (30 ms on a CPU, or as said), wait (for a thread that takes as long) or fast. A
comment "at NAME" marks a line that tests ask for."""
import ctypes
import queue
import sys
import threading
import time

PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry tick() { ret; }\n"
cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    if result:
        sys.exit(f"CUDA said {result}")


def prepare():
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"tick"))
    return kernel


class Loader:
    def __init__(self, steps, mode, seconds):
        self.mode, self.seconds, self.batches = mode, seconds, queue.Queue(1)
        if mode == "wait":
            threading.Thread(target=self.fill, args=(steps,), daemon=True).start()

    def fill(self, steps):
        for step in range(steps):
            time.sleep(self.seconds)  # at late
            self.batches.put(step)

    def next_batch(self):
        if self.mode == "wait":
            return self.batches.get()  # at wait
        return self.decode() if self.mode == "work" else 0

    def decode(self):
        end, value = time.monotonic() + self.seconds, 0
        while time.monotonic() < end:
            value = (value * 31 + 7) % 65521  # at work
        return value


def train(kernel, loader, steps):
    for _ in range(steps):
        loader.next_batch()
        check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None))  # at launch
    check(cuda.cuStreamSynchronize(None))  # at end


def main():
    arguments = sys.argv[1:] + ["60", "work", "30"][len(sys.argv) - 1:]
    steps = int(arguments[0])
    train(prepare(), Loader(steps, arguments[1], int(arguments[2]) / 1000), steps)


main()
