/* SPDX-License-Identifier: MIT */
/*
 * How values are spread: count, sum, least, most, average, standard deviation, all exact, and
 * percentiles, exact for up to SPREAD_EXACT values and from a sketch beyond that. A zeroed struct
 * is an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- sketch -------------------------------------------------------------------------------- */

/*
 * Percentiles of a stream of numbers in bounded memory: a histogram whose buckets are 1/64 of a
 * power of two wide. Count, sum, least and most are exact; a percentile is within SKETCH_ERROR of
 * the value that sorting all numbers would give. A zeroed `struct sketch` is empty.
 */

/* Half a bucket: 1/128, relative. Values below 128 are exact. */
#define SKETCH_ERROR (1.0 / 128)

#define SKETCH_BUCKETS 64 /* for each power of two */
#define SKETCH_OCTAVES 59

struct sketch {
	uint64_t count, sum, min, max;
	uint64_t *
		octave[SKETCH_OCTAVES]; /* made when first needed: 512 bytes each, 30 KiB at most */
};

void sketch_free(struct sketch *sketch);
void sketch_add(struct sketch *sketch, uint64_t value);

/* The value that a `share` (0 to 1) of all values do not exceed; 0 where there are none. */
uint64_t sketch_percentile(const struct sketch *sketch, double share);

/* ---- spread -------------------------------------------------------------------------------- */

#define SPREAD_EXACT 1024

struct spread {
	uint64_t count, sum, min, max;
	unsigned __int128 squares; /* sum of them, modulo 2^128: see spread_deviation() */
	uint64_t *values;          /* those that are not in the sketch, unordered */
	uint32_t room, waiting;    /* in values: room, and how many there are */
	struct sketch *sketch;     /* NULL while there are at most SPREAD_EXACT */
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
