/* SPDX-License-Identifier: MIT */
/*
 * Keeps the cost of tracing within bounds, in the order of what tells least:
 *
 *   1. getters and polls (hooked under --all-calls only) are unhooked, the most frequent first;
 *   2. with an explicit limit: frequent functions lose their returns, so durations and results;
 *   3. with an explicit limit: everything is measured in windows, and counts become estimates.
 *
 * Without an explicit limit only the first is done, above 3 %, and the rest is said.
 * Cost is hits times the measured cost of one, as a share of the busiest thread's time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/cost.h"
#include "probe/modules.h"

#define GOVERNOR_DEFAULT_PERCENT 3.0

struct governor;

struct governor_options {
	struct modules *modules;
	struct programs *programs;
	struct hit_cost cost;
	double max_percent;  /* 0: the default, not explicit */
	uint64_t patient_ns; /* before that time a cost is not worth a word: it may pass */
	uint64_t getters_ns; /* and before this one no getter is given up for it */
	bool returns;
};

struct governor *governor_new(const struct governor_options *options, uint64_t now_ns);
void governor_free(struct governor *governor);

void governor_hit(struct governor *governor, const struct wire_call *call);

/* The same of a call that was recorded inside its process. `met`: its probe is before the jump. */
void governor_told(struct governor *governor, const struct wire_call *call, bool met);

/*
 * To be called often; acts a few times a second. Returns a sentence for the user when there is
 * something new to say (static until the next call), else NULL.
 */
const char *governor_tick(struct governor *governor, uint64_t now_ns);

/* What counts are to be multiplied with: 1, or more once measuring in windows. */
double governor_scale(const struct governor *governor, uint64_t now_ns);

/* The share of the busiest thread's time over the last interval, in percent. */
/*
 * What tracing cost the busiest thread over the run so far, in percent of its own time: on average,
 * and in the worst quarter of a second. Windows of time are not in it.
 */
void governor_cost(const struct governor *governor, double *percent, double *most_percent);

double governor_percent(const struct governor *governor);
