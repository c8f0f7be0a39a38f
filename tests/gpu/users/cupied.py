# SPDX-License-Identifier: MIT
# CuPy: a relaxation of a grid, its residual asked for each round.
import cupy as cp
import time


def relax(u, f):
    new = u.copy()
    new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1])
    return new


def residual(u, new):
    return float(cp.abs(new - u).max())


def solve(until):
    u, f, rounds = (cp.zeros((1024, 1024)), cp.random.rand(1024, 1024), 0)
    while time.time() < until:
        new = relax(u, f)
        if residual(u, new) < 1e-12:
            break
        u = new
        rounds += 1
    print(rounds, "rounds")


solve(time.time() + 28)
