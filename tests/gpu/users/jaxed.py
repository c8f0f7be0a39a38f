# SPDX-License-Identifier: MIT
# JAX: a jitted step, batches made with numpy, the loss looked at each step.
import jax
import jax.numpy as jnp
import numpy as np
import time


def init(key, sizes):
    return [(jax.random.normal(k, (a, b)) / a ** 0.5, jnp.zeros(b)) for k, a, b in zip(jax.random.split(key, len(sizes)), sizes, sizes[1:])]


def loss_of(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


@jax.jit
def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return (jax.tree.map(lambda p, g: p - 0.001 * g, params, grads), loss)


def batches(until):
    rng = np.random.default_rng(0)
    while time.time() < until:
        yield (rng.standard_normal((2048, 1024), dtype=np.float32), rng.standard_normal((2048, 16), dtype=np.float32))


def train(until):
    params, losses = (init(jax.random.key(0), [1024] + [4096] * 6 + [16]), [])
    for x, y in batches(until):
        params, loss = update(params, x, y)
        losses.append(float(loss))


train(time.time() + 33)
