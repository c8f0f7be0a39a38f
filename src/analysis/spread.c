// SPDX-License-Identifier: MIT
#include "analysis/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/order.h"
#include "base/xalloc.h"

/* ---- sketch -------------------------------------------------------------------------------- */

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

static void sketch_merge(struct sketch *into, const struct sketch *from)
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

static uint64_t sketch_between(uint64_t value, uint64_t least, uint64_t most)
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
				return sketch_between(bucket_middle(o, b), sketch->min,
				                      sketch->max);
		}
	}
	return sketch->max;
}

/* ---- spread -------------------------------------------------------------------------------- */

#define ROOM_FIRST 4  /* rows of a report are many, and most have few values */
#define WAITING    64 /* values that go into a sketch together: its lines are asked for once */

void spread_free(struct spread *spread)
{
	free(spread->values);
	if (spread->sketch)
		sketch_free(spread->sketch);
	free(spread->sketch);
	memset(spread, 0, sizeof(*spread));
}

bool spread_is_exact(const struct spread *spread)
{
	return spread->count <= SPREAD_EXACT;
}

/* The values that are not in a sketch yet. */
static void values_into(struct spread *spread, struct sketch *sketch)
{
	for (uint32_t i = 0; i < spread->waiting; i++)
		sketch_add(sketch, spread->values[i]);
	spread->waiting = 0;
}

static void values_room(struct spread *spread, uint32_t room)
{
	spread->values = xrealloc(spread->values, room * sizeof(*spread->values));
	spread->room = room;
}

/* With too many, all go into the sketch, some at a time. */
static void make_room(struct spread *spread)
{
	if (spread->room < (spread->sketch ? WAITING : SPREAD_EXACT)) {
		values_room(spread, spread->room ? 2 * spread->room : ROOM_FIRST);
		return;
	}
	if (!spread->sketch) {
		spread->sketch = xcalloc(1, sizeof(*spread->sketch));
		values_into(spread, spread->sketch);
		values_room(spread, WAITING);
	}
	values_into(spread, spread->sketch);
}

/* Asks for no line of memory but those of the spread and the value, mostly. */
static void keep(struct spread *spread, uint64_t value)
{
	if (spread->waiting == spread->room)
		make_room(spread);
	spread->values[spread->waiting++] = value;
}

/* Of one that is not exact, with all its values in it. */
static const struct sketch *whole_sketch(struct spread *spread)
{
	values_into(spread, spread->sketch);
	return spread->sketch;
}

void spread_add(struct spread *spread, uint64_t value)
{
	keep(spread, value);
	if (!spread->count || value < spread->min)
		spread->min = value;
	if (value > spread->max)
		spread->max = value;
	spread->count++;
	spread->sum += value;
	spread->squares += (unsigned __int128)value * value;
}

/* `from` has a sketch: `into` takes it over, and its own values go into it. */
static void take_sketch(struct spread *into, struct spread *from)
{
	whole_sketch(from);
	if (into->sketch) {
		sketch_merge(into->sketch, from->sketch);
		return;
	}
	values_into(into, from->sketch);
	into->sketch = from->sketch;
	from->sketch = NULL;
}

void spread_take(struct spread *into, struct spread *from)
{
	if (spread_is_exact(from)) {
		for (uint64_t i = 0; i < from->count; i++)
			spread_add(into, from->values[i]);
	} else {
		take_sketch(into, from);
		if (!into->count || from->min < into->min)
			into->min = from->min;
		if (from->max > into->max)
			into->max = from->max;
		into->count += from->count;
		into->sum += from->sum;
		into->squares += from->squares;
	}
	spread_free(from);
}

double spread_average(const struct spread *spread)
{
	return spread->count ? (double)((long double)spread->sum / (long double)spread->count) : 0;
}

/*
 * The textbook's sum of squares minus square of the sum loses all digits where values are large
 * and close together. Let q be the average rounded down, and r what is left over. The sum of
 * (x-q)^2 fits into an integer, so it is exact even when single terms overflow. It is only r^2/n
 * away from the sum of the squared distances from the true average.
 */
double spread_deviation(const struct spread *spread)
{
	uint64_t n = spread->count, q, r;
	unsigned __int128 around_q;
	long double squares;

	if (n < 2)
		return 0;
	q = spread->sum / n;
	r = spread->sum % n;
	around_q = spread->squares - (unsigned __int128)q * spread->sum * 2 +
	           (unsigned __int128)q * q * n;
	squares = (long double)around_q - (long double)r * r / n;
	return squares > 0 ? (double)sqrtl(squares / (n - 1)) : 0;
}

ORDER_BY(compare, uint64_t, ORDER_OF(*a, *b));

static const uint64_t *sorted(struct spread *spread)
{
	SORT(spread->values, spread->count, compare);
	return spread->values;
}

double spread_median(struct spread *spread)
{
	uint64_t n = spread->count;
	const uint64_t *values;

	if (!n)
		return 0;
	if (!spread_is_exact(spread))
		return (double)sketch_percentile(whole_sketch(spread), 0.5);
	values = sorted(spread);
	if (n % 2)
		return (double)values[n / 2];
	return ((double)values[n / 2 - 1] + (double)values[n / 2]) / 2;
}

uint64_t spread_percentile(struct spread *spread, double share)
{
	uint64_t rank;

	if (!spread->count)
		return 0;
	if (!spread_is_exact(spread))
		return sketch_percentile(whole_sketch(spread), share);
	rank = number_u64(ceil(share * (double)spread->count));
	return sorted(spread)[rank ? rank - 1 : 0];
}
