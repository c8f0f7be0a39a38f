# SPDX-License-Identifier: MIT
"""What bench/profile/attach attaches to: a training by PyTorch on the CPU that has large libraries mapped and calls the CUDA driver.

    LD_LIBRARY_PATH=build/simcuda/push:build/simcuda python3 bench/profile/mapped.py [--llvm LIBLLVM] LIBRARY...

Libraries that cannot be loaded are said and left out. With --llvm a thread reads and writes LLVM IR by that library, 50 times a second, so
that it is in stacks, too. Says "ready PID" and runs until it is ended.
"""
import argparse
import ctypes
import os
import sys
import threading
import time

import torch

PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry tick() { ret; }\n"
POINTER = ctypes.c_void_p


def check(result):
    if result:
        sys.exit(f"CUDA said {result}")


def load(paths):
    for path in paths:
        try:
            ctypes.CDLL(path)
        except OSError as error:
            print(f"not loaded: {error}", file=sys.stderr)


def compile_for_ever(path):
    llvm = ctypes.CDLL(path)
    for name in ("LLVMContextCreate", "LLVMCreateMemoryBufferWithMemoryRangeCopy", "LLVMPrintModuleToString"):
        getattr(llvm, name).restype = POINTER
    lines = [f"%v{i} = add i32 %v{i - 1}, {i}\n" for i in range(1, 400)]
    text = ("define i32 @f(i32 %v0) {\n" + "".join(lines) + "ret i32 %v399\n}\n").encode()
    while True:
        context = POINTER(llvm.LLVMContextCreate())
        buffer = POINTER(llvm.LLVMCreateMemoryBufferWithMemoryRangeCopy(text, len(text), b"f"))
        module, error = POINTER(), POINTER()
        if llvm.LLVMParseIRInContext(context, buffer, ctypes.byref(module), ctypes.byref(error)):
            sys.exit("LLVM reads no IR")
        llvm.LLVMDisposeMessage(POINTER(llvm.LLVMPrintModuleToString(module)))
        llvm.LLVMDisposeModule(module)
        llvm.LLVMContextDispose(context)
        time.sleep(0.02)


def prepare(cuda):
    context, module, kernel = POINTER(), POINTER(), POINTER()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"tick"))
    return kernel


def train(cuda, kernel):
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        loss = model(torch.randn(32, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for _ in range(20):
            check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
        check(cuda.cuCtxSynchronize())
        time.sleep(0.005)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llvm")
    parser.add_argument("libraries", nargs="*")
    options = parser.parse_args()
    load(options.libraries)
    cuda = ctypes.CDLL("libcuda.so.1")
    kernel = prepare(cuda)
    if options.llvm:
        threading.Thread(target=compile_for_ever, args=(options.llvm,), daemon=True).start()
    print("ready", os.getpid(), flush=True)
    train(cuda, kernel)


main()
