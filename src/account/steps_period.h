/* SPDX-License-Identifier: MIT */
/* How launches repeat, and which of them begin what is repeated (steps.h). */
#pragma once

#include "account/steps.h"

/*
 * Shorter ones are taken for a part of the step, a layer of a network, where a longer one is there:
 * thirty layers and a head look as fifty steps and an evaluation do.
 */
#define STEPS_PART_NS 1000000u

struct steps_period {
	size_t launches;  /* from one begin to the next, mostly */
	uint64_t mean_ns; /* the same */
	/* a begin has this hash of so many keys, its own the last; 0: it comes after a pause */
	unsigned keys;
	uint64_t context;
	uint64_t pause_ns; /* of at least that; by keys, of that on average */
};

/* By what is launched. A period of one launch is told only where there is no other, and then it is
 * not short. */
bool steps_period_of_keys(const struct step_launch *launches, size_t n,
                          struct steps_period *period);

/* By long pauses, each so many launches. */
bool steps_period_of_pauses(const struct step_launch *launches, size_t n,
                            struct steps_period *period);

/* Whether a step has so many. */
bool steps_period_is_usual(const struct steps_period *period, size_t launches);

/* Whether launch `i` can be a begin. */
bool steps_period_begins(const struct steps_period *period, const struct step_launch *launches,
                         size_t i);
