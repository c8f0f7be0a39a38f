# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch, for trying the scripts of tests/gpu and bench where there is no GPU: as much of it as they use, on the
simulated driver. A step makes some hundred calls, half of them in a second thread, as PyTorch's backward does. Losses are numbers
that depend on the seed and on all steps before.

    PYTHONPATH=tests/gpu/stand-in LD_LIBRARY_PATH=build/simcuda/push:build/simcuda tests/gpu/run ...
"""

import concurrent.futures
import contextlib
import ctypes
import os
import types

__version__ = "stand-in"
float32, bfloat16 = "float32", "bfloat16"
PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry add(.param .u64 p) { ret; }\n"
KERNELS_A_LAYER, GETTERS_A_KERNEL = 8, 6

driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")
state = {"loss": 1.0}


def must(code):
    if code:
        raise RuntimeError(f"CUDA error {code}")


class Kernel:
    """One kernel, launched by the driver."""

    def __init__(self):
        must(runtime.cudaSetDevice(0))
        must(runtime.cudaFree(None))
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        must(driver.cuModuleLoadData(ctypes.byref(module), PTX))
        must(driver.cuModuleGetFunction(ctypes.byref(self.function), module, b"add"))
        self.backward = concurrent.futures.ThreadPoolExecutor(1, initializer=lambda: must(runtime.cudaSetDevice(0)))

    def launch(self, times):
        device, pointer = ctypes.c_int(), ctypes.c_void_p()
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        for _ in range(times):
            for _ in range(GETTERS_A_KERNEL):
                must(runtime.cudaGetDevice(ctypes.byref(device)))
            must(driver.cuLaunchKernel(self.function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None))
            must(runtime.cudaGetLastError())


kernel = Kernel()


class Tensor:
    def __init__(self, layers=1):
        self.layers = layers

    def __sub__(self, _other):
        return self

    def square(self):
        return self

    def mean(self):
        self.loss = state["loss"]
        return self

    def add_(self, _value):
        kernel.launch(1)
        return self

    def item(self):
        synchronize()
        return self.loss

    def backward(self):
        kernel.backward.submit(kernel.launch, self.layers * KERNELS_A_LAYER).result()
        state["loss"] = state["loss"] * 0.999 + 0.0001


class TransformerEncoderLayer:
    def __init__(self, *_sizes, **_options):
        pass


class TransformerEncoder:
    def __init__(self, _layer, layers, **_options):
        self.layers = layers

    def to(self, *_where):
        return self

    def parameters(self):
        return self.layers

    def __call__(self, _x):
        kernel.launch(self.layers * KERNELS_A_LAYER)
        return Tensor(self.layers)


class AdamW:
    def __init__(self, layers):
        self.layers = layers

    def zero_grad(self):
        pass

    def step(self):
        kernel.launch(self.layers * 2)


def synchronize():
    must(runtime.cudaDeviceSynchronize())


def manual_seed(seed):
    state["loss"] = 1.0 + seed


def randn(*_sizes, **_options):
    return Tensor()


def ones(*_sizes, **_options):
    return Tensor()


def use_deterministic_algorithms(_on, **_options):
    pass


def ignore(*_words, **_options):
    return None


class Profile(contextlib.nullcontext):
    def start(self):
        pass

    def stop(self):
        pass


cuda = types.SimpleNamespace(synchronize=synchronize, set_device=ignore,
                             device_count=lambda: int(os.environ.get("STAND_IN_GPUS", "1")), is_available=lambda: True)
nn = types.SimpleNamespace(
    TransformerEncoderLayer=TransformerEncoderLayer, TransformerEncoder=TransformerEncoder,
    parallel=types.SimpleNamespace(DistributedDataParallel=lambda model, **_options: model))
optim = types.SimpleNamespace(AdamW=AdamW)
distributed = types.SimpleNamespace(init_process_group=ignore, destroy_process_group=ignore, barrier=ignore)
profiler = types.SimpleNamespace(profile=Profile, ProfilerActivity=types.SimpleNamespace(CUDA=0))
