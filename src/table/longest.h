/* SPDX-License-Identifier: MIT */
/*
 * The longest of many, or the largest, or whatever comes first in an order: all are shown to it, it
 * keeps copies of the first N. Then those that are alike can be put together, with their number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many a report looks at that groups them, and with how many a row is compared. */
#define LONGEST_GROUPED 1000

/* That a report keeps, with what belongs to each, whatever --top says. */
#define LONGEST_MOST 10000

/* How many a report that groups them keeps, of which `top` are shown. */
static inline size_t longest_looked_at(size_t top)
{
	return top < LONGEST_GROUPED ? LONGEST_GROUPED : top < LONGEST_MOST ? top : LONGEST_MOST;
}

struct longest {
	size_t row_bytes, n, most;
	/* As for qsort: below 0 where `a` stands first; of equal rows the earlier does. */
	int (*order)(const void *a, const void *b);
	struct longest_slot *heap; /* whose root goes first */
	char *rows, *sorted;
	uint64_t seen; /* rows that it was shown */
};

void longest_init(struct longest *longest, size_t row_bytes, size_t most,
                  int (*order)(const void *a, const void *b));
void longest_free(struct longest *longest);

/* All that were kept are forgotten. */
static inline void longest_clear(struct longest *longest)
{
	longest->n = longest->seen = 0;
}

/* The row that goes for the next one that is kept; NULL: there is room. */
const void *longest_last(const struct longest *longest);

/* Whether a row like this one would be kept. */
bool longest_wants(const struct longest *longest, const void *row);

/* Keeps a copy. The row that had to go for it, until the next one is kept; NULL: none. */
const void *longest_keep(struct longest *longest, const void *row);

/* In order, one behind the other, until the next call of this. Owned by `longest`. */
void *longest_rows(struct longest *longest, size_t *n);

/*
 * Of rows that are like one of the first LONGEST_GROUPED that remain only that one remains. Returns
 * how many rows remain; how many each stands for is in `counts`, which has room for `n`.
 */
size_t longest_group(void *rows, size_t n, size_t row_bytes,
                     bool (*alike)(const void *a, const void *b), uint64_t *counts);

/* Whether each of these stands for itself alone. */
bool longest_all_single(const uint64_t *counts, size_t n);
