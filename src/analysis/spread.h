/* SPDX-License-Identifier: MIT */
/*
 * How values are spread: count, sum, least, most, average, standard deviation, all exact, and
 * percentiles, exact for up to SPREAD_EXACT values and from a sketch beyond that. A zeroed struct
 * is an empty one.
 */
#ifndef CUSCOPE_ANALYSIS_SPREAD_H
#define CUSCOPE_ANALYSIS_SPREAD_H

#include <stdbool.h>

#include "analysis/sketch.h"

#define SPREAD_EXACT 1024

struct spread {
	uint64_t count, sum, min, max;
	unsigned __int128 squares; /* sum of them, modulo 2^128: see spread_deviation() */
	uint64_t *values;          /* while there are at most SPREAD_EXACT, unordered */
	uint32_t room;             /* in values */
	struct sketch sketch;      /* of all values when there are more */
};

void spread_free(struct spread *spread);
void spread_add(struct spread *spread, uint64_t value);

/* Adds all that `from` has; `from` is left empty. */
void spread_take(struct spread *into, struct spread *from);

/* All are 0 where there are no values. */
double spread_average(const struct spread *spread);
double spread_deviation(const struct spread *spread); /* of a sample: by count - 1 */

/* The median of an even number of exact values is the middle of the two in the middle. */
double spread_median(struct spread *spread);

/* The value that a `share` (0 to 1) of all values do not exceed. */
uint64_t spread_percentile(struct spread *spread, double share);

/* Whether median and percentiles are exact; else they are within SKETCH_ERROR. */
bool spread_is_exact(const struct spread *spread);

#endif
