// SPDX-License-Identifier: MIT
#include "analysis/sketch.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/xalloc.h"

#define BUCKET_BITS 6 /* log2 of SKETCH_BUCKETS */

_Static_assert(SKETCH_BUCKETS == 1 << BUCKET_BITS, "buckets and their bits");
_Static_assert(SKETCH_OCTAVES == 64 - BUCKET_BITS + 1, "octaves reach 2^64");

void sketch_free(struct sketch *sketch)
{
	for (size_t i = 0; i < SKETCH_OCTAVES; i++)
		free(sketch->octave[i]);
	memset(sketch, 0, sizeof(*sketch));
}

/* Octave 0 holds the values below 64, one a bucket; octave n those with n + 6 bits. */
static size_t octave_of(uint64_t value)
{
	return value < SKETCH_BUCKETS ? 0 : 64 - BUCKET_BITS - __builtin_clzll(value);
}

static size_t bucket_of(uint64_t value, size_t octave)
{
	return octave ? (value >> (octave - 1)) % SKETCH_BUCKETS : value;
}

static uint64_t bucket_middle(size_t octave, size_t bucket)
{
	if (!octave)
		return bucket;
	return ((uint64_t)(SKETCH_BUCKETS + bucket) << (octave - 1)) +
	       (((uint64_t)1 << (octave - 1)) >> 1);
}

void sketch_add(struct sketch *sketch, uint64_t value)
{
	size_t octave = octave_of(value);

	if (!sketch->octave[octave])
		sketch->octave[octave] = xcalloc(SKETCH_BUCKETS, sizeof(uint64_t));
	sketch->octave[octave][bucket_of(value, octave)]++;
	if (!sketch->count || value < sketch->min)
		sketch->min = value;
	if (value > sketch->max)
		sketch->max = value;
	sketch->count++;
	sketch->sum += value;
}

void sketch_merge(struct sketch *into, const struct sketch *from)
{
	for (size_t o = 0; o < SKETCH_OCTAVES; o++) {
		if (!from->octave[o])
			continue;
		if (!into->octave[o])
			into->octave[o] = xcalloc(SKETCH_BUCKETS, sizeof(uint64_t));
		for (size_t b = 0; b < SKETCH_BUCKETS; b++)
			into->octave[o][b] += from->octave[o][b];
	}
	if (from->count && (!into->count || from->min < into->min))
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
}

static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

uint64_t sketch_percentile(const struct sketch *sketch, double share)
{
	double exact_rank = share * (double)sketch->count;
	uint64_t rank = number_u64(exact_rank), seen = 0;

	rank += (double)rank < exact_rank;
	if (rank <= 1)
		return sketch->min;
	if (rank >= sketch->count)
		return sketch->max;
	for (size_t o = 0; o < SKETCH_OCTAVES; o++) {
		for (size_t b = 0; sketch->octave[o] && b < SKETCH_BUCKETS; b++) {
			seen += sketch->octave[o][b];
			if (seen >= rank)
				return between(bucket_middle(o, b), sketch->min, sketch->max);
		}
	}
	return sketch->max;
}

double sketch_average(const struct sketch *sketch)
{
	return sketch->count ? (double)sketch->sum / (double)sketch->count : 0;
}
