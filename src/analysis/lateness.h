/* SPDX-License-Identifier: MIT */
/*
 * How late ranks are, while they run: what their calls of collectives say, added up by rank.
 *
 * A collective can begin when all ranks have called it and the one before it in its communicator
 * has begun. By how much later that is for the last rank's sake alone is what that rank is late by,
 * and what it is not for others' sake they have waited for. Time in which a rank's GPU was
 * certainly busy with what had been asked for before does not count: a wait of the host for the GPU
 * that began before the call, or was for an event recorded before it, ended then. So the sums are
 * the most that GPUs can have waited, and no more than the time that passed. What kernels took is
 * not known here: a rank that is late by its GPU is not late by its calls.
 *
 * Calls of ranks elsewhere are not seen: each is judged among those that are.
 */
#pragma once

#include "analysis/collectives.h"

#define LATENESS_LEAST_NS 10000 /* who comes less than this behind the one before is not late */

struct lateness;

/* By rank of `collectives`, whose row has the same number. */
struct lateness_rank {
	uint64_t n, n_last;  /* collectives with others; that it came last to */
	uint64_t late_ns;    /* the others, for it alone */
	uint64_t waited_ns;  /* it, for others */
	uint64_t missing_ns; /* all others that are seen have called what it has not, for so long
	                        now */
};

struct lateness *lateness_new(size_t calls_most);
void lateness_free(struct lateness *lateness);

/* Calls, and ends of processes, in their order. */
void lateness_event(struct lateness *lateness, const struct event *event);

/* Calls were lost. */
void lateness_distrust(struct lateness *lateness);

/* Adds up what is older than a few seconds: waits that show that a GPU was busy end later. */
void lateness_turn(struct lateness *lateness, uint64_t now_ns);

const struct collectives *lateness_collectives(const struct lateness *lateness);
const struct lateness_rank *lateness_of(const struct lateness *lateness, size_t rank);

/* Calls that are matched with nobody's. */
struct lateness_unmatched {
	uint64_t unknown, uncounted, lost, unlike;
};

struct lateness_unmatched lateness_unmatched(const struct lateness *lateness);
