/* SPDX-License-Identifier: MIT */
/*
 * Rows that are found by the bytes with which they begin. They lie one after the other in the order
 * in which they came, and so cost no more than they are: millions of look-ups are made in some ten
 * thousand of them, which a table of pointers makes a wait for memory each.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct keyed_slot {
	uint32_t hash, row; /* the row and 1; 0: free */
};

struct keyed {
	char *rows;
	size_t n;
	size_t row_bytes, key_bytes; /* the caller's */
	struct keyed_slot *slots;
	size_t n_slots; /* a power of two */
	size_t last;    /* row that was asked for: often it is again */
};

/* The row with this key, where it is not there a new one, zeroed but for its key; NULL: that would
 * be more than `most`. It may move with the next new one. */
void *keyed_row(struct keyed *keyed, const void *key, size_t most);

/* The same where keys have a dense id, without a bound: the last row of the id is looked at first,
 * which it mostly is again. Zeros at first; the caller frees `row`. */
struct keyed_last {
	uint32_t *row; /* and 1, by id */
	size_t n;
};

void *keyed_row_of(struct keyed *keyed, struct keyed_last *last, uint32_t id, const void *key);

/* By the number, in the order in which they came. */
static inline void *keyed_at(const struct keyed *keyed, size_t number)
{
	return keyed->rows + number * keyed->row_bytes;
}

static inline size_t keyed_number(const struct keyed *keyed, const void *row)
{
	return (size_t)((const char *)row - keyed->rows) / keyed->row_bytes;
}

/* The rows in another order; none can be asked for by its key any more, until keyed_keep(). */
static inline void keyed_sort(struct keyed *keyed, int (*order)(const void *, const void *))
{
	if (keyed->n)
		qsort(keyed->rows, keyed->n, keyed->row_bytes, order);
}

/* Only the first so many, of those that there are. What belongs to the others is the caller's. */
void keyed_keep(struct keyed *keyed, size_t n);

void keyed_empty(struct keyed *keyed);
void keyed_free(struct keyed *keyed);
