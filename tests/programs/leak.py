# SPDX-License-Identifier: MIT
"""leak.py [ROUNDS [MILLISECONDS [stay]]]: a program in Python that leaks, with nothing but ctypes. Each round a cache grows by
memory that nobody frees, a buffer is borrowed and given back, and a kernel is launched and waited for. With "stay" it says
"done" then and is there until its input ends. A comment "at NAME" marks a line that tests ask for."""
import ctypes
import sys
import time

PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry tick() { ret; }\n"
cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    if result:
        sys.exit(f"CUDA said {result}")


class Cache:
    def fill_cache(self):
        memory = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))  # at fill_cache


def borrow():
    memory = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)))  # at borrow
    return memory


def give_back(memory):
    check(cuda.cuMemFree_v2(memory))  # at give_back


def train(kernel):
    check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None))  # at train


def wait():
    check(cuda.cuStreamSynchronize(None))  # at wait


def prepare():
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"tick"))
    return kernel


def main():
    rounds, pause = [int(word) for word in sys.argv[1:3]] + [100, 10][len(sys.argv) - 1:]
    kernel = prepare()
    cache = Cache()
    for _ in range(rounds):
        cache.fill_cache()
        memory = borrow()
        train(kernel)
        wait()
        give_back(memory)
        time.sleep(pause / 1000)
    if "stay" in sys.argv:
        print("done", flush=True)
        sys.stdin.read()


main()
