# SPDX-License-Identifier: MIT
"""JAX programs with one planted problem each, and healthy ones."""

import functools
import itertools
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import steady  # noqa: E402

SMALL = os.environ.get("PLANTED_DEVICE") == "cpu"
WIDTH = 64 if SMALL else 2048
ROWS = 32 if SMALL else 4096
LAYERS = 6


def wait():
    (jax.device_put(0.0) + 1).block_until_ready()


def make_parameters(layers=LAYERS, width=WIDTH):
    keys = jax.random.split(jax.random.PRNGKey(1), layers)
    return [jax.random.normal(key, (width, width), jnp.bfloat16) * 0.02 for key in keys]


def layer(x, weights):
    return x + jax.nn.gelu(x @ weights)


def predict(parameters, x):
    for weights in parameters:
        x = layer(x, weights)
    return x


def loss_of(parameters, x, y):
    return jnp.mean((predict(parameters, x) - y) ** 2)


@jax.jit
def update(parameters, x, y):
    gradients = jax.grad(loss_of)(parameters, x, y)
    return [weights - 0.001 * gradient for weights, gradient in zip(parameters, gradients)]


def inputs(rows=ROWS):
    return jnp.ones((rows, WIDTH), jnp.bfloat16)


run_layer = jax.jit(layer)


def check_layer(x, planted):
    return jax.block_until_ready(x) if planted else x


def jax_block_each_layer(planted):
    """Of many small layers, to see the time of each."""
    parameters, x = make_parameters(60), inputs(ROWS // 2)
    while True:
        out = x
        for weights in parameters:
            out = check_layer(run_layer(out, weights), planted)
        if not planted:
            jax.block_until_ready(out)
        yield


def keep_activations(x):
    return np.asarray(x)


def jax_activations_to_host(planted):
    parameters, x = make_parameters(), inputs()
    forward = jax.jit(predict)
    while True:
        out = forward(parameters, x)
        if planted:
            keep_activations(out)
        else:
            out.block_until_ready()
        yield


@functools.partial(jax.jit, static_argnums=1)
def crop_and_score(x, length):
    return jnp.sum(jax.nn.softmax(x[:length].astype(jnp.float32), axis=-1))


def jax_traced_for_each_length(planted):
    parameters, x = make_parameters(), inputs()
    for step in itertools.count():
        parameters = update(parameters, x, x)
        crop_and_score(x, ROWS - (step % (ROWS - 1) if planted else 0))  # @traces
        yield


def look_up_on_host(numbers):
    total = np.zeros(numbers.shape, np.float32)
    for i, number in enumerate(np.asarray(numbers).tolist()):
        total[i] = sum(divmod(int(number) * 31 + i, 7)) % 5
    return total


@jax.jit
def add_looked_up(x, numbers):
    found = jax.pure_callback(look_up_on_host, jax.ShapeDtypeStruct(numbers.shape, jnp.float32), numbers)
    return x + found.mean().astype(x.dtype)


def jax_host_callback(planted):
    parameters, x, numbers = make_parameters(), inputs(), jnp.arange(40000)
    forward = jax.jit(predict)
    while True:
        seen = add_looked_up(x, numbers) if planted else x
        forward(parameters, seen).block_until_ready()
        yield


def polynomial_features(x):
    total = jnp.zeros_like(x)
    for power in range(120):
        total = total + jnp.sin(x * power) * 0.5 ** power
    return total


def jax_without_jit(planted):
    parameters, x = make_parameters(), inputs()
    small = jnp.ones((64, 64), jnp.float32)
    features = polynomial_features if planted else jax.jit(polynomial_features)
    while True:
        features(small)
        parameters = update(parameters, x, x)
        yield


def make_batch(rng):
    rows = rng.normal(0, 1, (ROWS // 8, WIDTH // 2))
    return (rows - rows.mean(0)) / rows.std(0)


def jax_batches_by_numpy(planted):
    parameters, x, rng = make_parameters(), inputs(), np.random.default_rng(1)
    batch = make_batch(rng)
    while True:
        if planted:
            batch = make_batch(rng)
        scale = jnp.asarray(batch[:1, :1], jnp.bfloat16)
        parameters = update(parameters, x * (1 + 0 * scale), x)
        yield


def jax_fed_training(_):
    """A step is asked for while the one before still runs."""
    parameters, x = make_parameters(12), inputs(ROWS * 2)
    for step in itertools.count():
        parameters = update(parameters, x, x)
        if step % 4 == 3:
            parameters[0].block_until_ready()
        yield


@jax.jit
def many_steps(parameters, x):
    return jax.lax.fori_loop(0, 8, lambda _, weights: update(weights, x, x), parameters)


def jax_loop_on_gpu(_):
    parameters, x = make_parameters(), inputs()
    before = parameters
    while True:
        now = many_steps(parameters, x)
        jax.block_until_ready(before)
        before, parameters = parameters, now
        yield


KINDS = {function.__name__: function for function in (
    jax_block_each_layer, jax_activations_to_host, jax_traced_for_each_length, jax_host_callback, jax_without_jit,
    jax_batches_by_numpy, jax_fed_training, jax_loop_on_gpu)}

if __name__ == "__main__":
    steady.main(KINDS, wait)
