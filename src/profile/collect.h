/* SPDX-License-Identifier: MIT */
/*
 * A profile from events: samples as they come, and the time of what ran on GPUs under the stacks of
 * the calls that asked for it, by correlation and never by time.
 *
 * Calls of functions that users hook, with WEIGHT_HOOK, are taken alike, by the hook.
 *
 * Where only some launches were walked, what ran for the others goes to the stacks of the same
 * kernel, in proportion to what is known: each kernel's time is exact, its split is estimated.
 */
#pragma once

#include "analysis/work.h"
#include "profile/profile.h"

#define COLLECT_PAIRS_MAX (256u << 10) /* of a kernel or copy, and a stack: 100 bytes each */

struct collect_options {
	struct profile_options profile;
	unsigned kinds; /* bits 1 << enum weight_kind that are collected; of hooks where that is the
	                   only one */
	/* Stands in front of it and is fed first: work_consumer(). Not needed for samples alone. */
	struct work *work;
};

/* What `profile` of it has is whole after its end(); the profile is its own. */
struct consumer *collect_new(const struct collect_options *options);
const struct profile *collect_profile(const struct consumer *collect);

struct collect_figures {
	uint32_t processes;
	uint64_t gpu_ns;         /* of all that ran; or, of hooks, that calls took */
	uint64_t gpu_walked_ns;  /* of that, for calls whose stack was walked */
	uint64_t gpu_guessed_ns; /* for calls whose stack was not, and another's of the same kernel
	                            was */
	uint64_t pairs_refused;  /* activities that had no room to be kept by their stack */
	uint64_t samples;
	bool hooks;              /* it is of hooks: */
	uint64_t no_end;         /* calls of hooks whose return was not seen: they have no time */
	struct run_stacks asked; /* these and what follows: known after its end() */
	uint64_t lost[LOST_COUNT];
	uint64_t begin_ns, duration_ns; /* of the run, since 1970 */
};

void collect_figures(const struct consumer *collect, struct collect_figures *figures);
