/* SPDX-License-Identifier: MIT */
/*
 * Arrays that may be larger than memory should be: beyond a bound what was added goes, piece by
 * piece, to a file without a name (secure_file.h) that is mapped in its place, so that it is used
 * as any other. The kernel writes out what it has no room for; and where much of it is in the
 * process's memory, those that go through them let that go (spill_next), to be mapped again when it
 * is used. Where there is no such file, or no room in it, they are memory as before.
 *
 * They hold what is used by and large from the begin to the end, not what is jumped about in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct spill;

/* How much of all arrays of one may be in memory, in this process: 640 MiB before it is said. */
void spill_keep(size_t bytes);

struct spill *spill_new(void);
void spill_free(struct spill *spill); /* arrays are dropped before; NULL: nothing */

/* Whether there is no file, or no room in it, so that what is added is memory. */
bool spill_is_memory(const struct spill *spill);

/*
 * An array of `n` elements of so many bytes, NULL where there are none, with room for one more. As
 * with vec_room() of base/vec.h what it has room for follows from how many it has: it is filled
 * from the begin, by this function alone. What was added may still be changed.
 */
void *spill_room(struct spill *spill, void *array, size_t n, size_t bytes);

/* As VEC_ADD(): the next element, one more then. */
#define SPILL_ADD(spill, array, n)                                                                 \
	({                                                                                         \
		(array) = spill_room(spill, array, n, sizeof(*(array)));                           \
		&(array)[(n)++];                                                                   \
	})

/* One that is as long from the begin on, and has anything in it: to be filled in some order. */
void *spill_make(struct spill *spill, size_t bytes);

/* Lets what is mapped go, where that is much. */
void spill_look(struct spill *spill);

#define SPILL_PASSED 2048 /* rows, of which the largest are some 100 bytes, and lead to as many */

/* The row after this one, of a pass over many. */
static inline size_t spill_next(struct spill *spill, size_t row)
{
	if (row % SPILL_PASSED == 0)
		spill_look(spill);
	return row + 1;
}

void spill_drop(struct spill *spill, void *array); /* NULL: nothing */
