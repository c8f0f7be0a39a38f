# SPDX-License-Identifier: MIT
"""CuPy programs with one planted problem each, and healthy ones."""

import itertools

import cupy
import numpy as np
import steady

SIDE = 6144


def wait():
    cupy.cuda.Device().synchronize()


def field(side=SIDE):
    return cupy.random.random((side, side), dtype=cupy.float32)


def work(x, weights):
    """Some milliseconds of products."""
    for _ in range(6):
        cupy.matmul(x, weights)


def half(side=4096):
    return cupy.ones((side, side), dtype=cupy.float16)


def download_field(x):
    return x.get()


def cupy_get_each_step(planted):
    x, a = field(4096), half()
    while True:
        work(a, a)
        if planted:
            download_field(x)
        yield


def relax_rows(x):
    for i in range(1, 700):
        x[i] = (x[i - 1] + x[i]) * 0.5


relax_at_once = cupy.RawKernel(r"""
extern "C" __global__ void relax(float *x, int rows, int width)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < width)
        for (int i = 1; i < rows; i++)
            x[i * width + column] = (x[(i - 1) * width + column] + x[i * width + column]) * 0.5f;
}""", "relax")


def cupy_row_by_row(planted):
    x, a = field(2048), half()
    while True:
        work(a, a)
        if planted:
            relax_rows(x)
        else:
            relax_at_once((16,), (128,), (x, np.int32(700), np.int32(2048)))
        yield


SOURCE = r"""
extern "C" __global__ void scale(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * %ff + 1.0f;
}"""


def build_kernel(factor):
    kernel = cupy.RawKernel(SOURCE % factor, "scale")
    kernel.compile()
    return kernel


def cupy_kernel_for_each_step(planted):
    x, a = cupy.zeros(1 << 20, dtype=cupy.float32), half()
    kernel = build_kernel(0.5)
    for step in itertools.count():
        work(a, a)
        if planted:
            kernel = build_kernel(0.5 + SEED + step * 1e-6)
        kernel((4096,), (256,), (x, np.int32(x.size)))
        yield


# Else CuPy would find on its disk what an earlier run compiled.
SEED = float(np.random.default_rng().integers(1, 1000)) * 1e-3


def filter_image(x):
    blurred = (x[1:-1] + x[:-2] + x[2:]) / 3
    edges = cupy.abs(x[1:-1] - blurred)
    return cupy.where(edges > 0.1, edges, blurred * 0.5) + edges


def cupy_without_pool(planted):
    x, a = field(4096), half()
    if planted:
        cupy.cuda.set_allocator(None)
    while True:
        cupy.matmul(a, a)
        for _ in range(2):
            filter_image(x)
        yield


def checked(x):
    cupy.cuda.Stream.null.synchronize()
    return x


def cupy_wait_after_each(planted):
    x = field(2048)
    see = checked if planted else lambda x: x
    while True:
        for _ in range(60):
            y = see(x * 2)
            y = see(y + x)
            y = see(cupy.sqrt(y))
            see(y.sum(axis=0))
        yield


def residual(x, y):
    return float(cupy.abs(x - y).max())


def cupy_residual_each_round(planted):
    """Asked after each of many short rounds whether it is done."""
    x, y = field(2048), field(2048)
    scale = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = 0.999f * x + 0.001f * y", "mix")
    while True:
        for i in range(50):
            for _ in range(4):
                x = scale(x, y)
            if (planted or i == 49) and residual(x, y) < 0:
                return
        yield


def host_median(x):
    return np.median(cupy.asnumpy(x))


def cupy_median_by_numpy(planted):
    x, a = cupy.random.random(1_200_000, dtype=cupy.float32), half()
    while True:
        work(a, a)
        if planted:
            host_median(x)
        yield


def cupy_fed_products(_):
    a = half(8192)
    rounds = 0
    while True:
        cupy.matmul(a, a)
        rounds += 1
        if rounds % 8 == 0:
            cupy.cuda.Stream.null.synchronize()
        yield


def cupy_fed_transforms(_):
    x = cupy.ones((64, 1 << 20), dtype=cupy.complex64)
    event = cupy.cuda.Event()
    while True:
        cupy.fft.fft(x, axis=1)
        event.synchronize()
        event.record()
        yield


KINDS = {function.__name__: function for function in (
    cupy_get_each_step, cupy_row_by_row, cupy_kernel_for_each_step, cupy_without_pool, cupy_wait_after_each,
    cupy_residual_each_round, cupy_median_by_numpy, cupy_fed_products, cupy_fed_transforms)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
