// SPDX-License-Identifier: MIT
#include "capture/gpu/unrecorded.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define OPEN_LEAST 64
#define OPEN_MOST  ((size_t)1 << 18) /* both powers of two */

static uint64_t *at(const struct unrecorded *u, size_t i)
{
	return &u->open[(u->first + i) & (u->capacity - 1)];
}

static void drop_first(struct unrecorded *u)
{
	u->first = (u->first + 1) & (u->capacity - 1);
	u->count--;
}

static void grow(struct unrecorded *u)
{
	size_t capacity = u->capacity ? 2 * u->capacity : OPEN_LEAST;
	uint64_t *more = xcalloc(capacity, sizeof(*more));

	for (size_t i = 0; i < u->count; i++)
		more[i] = *at(u, i);
	free(u->open);
	u->open = more;
	u->first = 0;
	u->capacity = capacity;
}

static bool was_told_early(struct unrecorded *u, uint64_t number)
{
	for (size_t i = 0; i < UNRECORDED_EARLY; i++) {
		if (u->early[i] == number)
			return true;
	}
	return false;
}

void unrecorded_launched(struct unrecorded *u, uint64_t number)
{
	size_t slot;

	if (!number || was_told_early(u, number))
		return;
	if (u->count == OPEN_MOST)
		drop_first(u);
	if (u->count == u->capacity)
		grow(u);
	/* nearly always the last: a number that was reserved comes a little later */
	for (slot = u->count++; slot && *at(u, slot - 1) >> 1 > number; slot--)
		*at(u, slot) = *at(u, slot - 1);
	*at(u, slot) = number << 1;
}

void unrecorded_told(struct unrecorded *u, uint64_t number)
{
	size_t low = 0, high = u->count;

	if (!number) {
		u->unmatched++;
		return;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*at(u, middle) >> 1 < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == u->count)
		u->early[u->earlies++ % UNRECORDED_EARLY] = number;
	else if (*at(u, low) >> 1 == number)
		*at(u, low) |= 1;
	while (u->count && *at(u, 0) & 1)
		drop_first(u);
}

uint64_t unrecorded_end(struct unrecorded *u)
{
	uint64_t left = 0;

	for (size_t i = 0; i < u->count; i++)
		left += !(*at(u, i) & 1);
	left = left > u->unmatched ? left - u->unmatched : 0;
	free(u->open);
	memset(u, 0, sizeof(*u));
	return left;
}
