# SPDX-License-Identifier: MIT
"""JAX programs that no rule of `cuscope why` was written against: HELD_OUT of kinds.py."""

import jax_planted as base  # first: it sets what JAX reads when it is imported
import jax
import jax.numpy as jnp
import steady


@jax.jit
def move_particles(positions, speeds):
    return positions + 0.01 * speeds, speeds * 0.999 - 0.01 * positions


@jax.jit
def move_often(positions, speeds):
    return jax.lax.fori_loop(0, 400, lambda _, both: move_particles(*both), (positions, speeds))


def simulate(positions, speeds):
    """Four hundred small steps, each asked for by itself."""
    for _ in range(400):
        positions, speeds = move_particles(positions, speeds)
    return positions, speeds


def jax_small_steps(planted):
    both = jnp.ones((256, 3)), jnp.ones((256, 3))
    while True:
        both = (simulate if planted else move_often)(*both)
        both[0].block_until_ready()
        yield


def read_scores(scores):
    return [float(scores[i]) for i in range(60)]


def jax_scores_one_by_one(planted):
    parameters, x = base.make_parameters(), base.inputs()
    score = jax.jit(lambda weights, rows: base.predict(weights, rows).astype(jnp.float32).mean(axis=1))
    while True:
        scores = score(parameters, x)
        if planted:
            read_scores(scores)
        else:
            scores.block_until_ready()
        yield


KINDS = {function.__name__: function for function in (jax_small_steps, jax_scores_one_by_one)}

if __name__ == "__main__":
    steady.main(KINDS, base.wait)
