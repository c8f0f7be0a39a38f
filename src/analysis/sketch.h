/* SPDX-License-Identifier: MIT */
/*
 * Percentiles of a stream of numbers in bounded memory: a histogram whose buckets are 1/64 of a
 * power of two wide. Count, sum, least and most are exact; a percentile is within SKETCH_ERROR of
 * the value that sorting all numbers would give. A zeroed `struct sketch` is empty.
 */
#ifndef CUSCOPE_ANALYSIS_SKETCH_H
#define CUSCOPE_ANALYSIS_SKETCH_H

#include <stdint.h>

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
void sketch_merge(struct sketch *into, const struct sketch *from);

/* The value that a `share` (0 to 1) of all values do not exceed; 0 where there are none. */
uint64_t sketch_percentile(const struct sketch *sketch, double share);

double sketch_average(const struct sketch *sketch);

#endif
