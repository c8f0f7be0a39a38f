/* SPDX-License-Identifier: MIT */
/*
 * Puts records in order by a number, however many there are: what does not fit into memory goes,
 * sorted, to a file without a name (secure_file.h), and such stretches are merged at the end.
 * Records with the same number stay in the order in which they came.
 *
 *     sorter_add(sorter, start_ns, row, bytes, &err);
 *     ...
 *     sorter_each(sorter, write_row, table, &err);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sorter;

/*
 * `memory` bytes of records are held, a few KiB at least. `keep`: only so many with the smallest
 * numbers are wanted; 0: all.
 */
struct sorter *sorter_new(size_t memory, size_t keep);
void sorter_free(struct sorter *sorter);

/* Records with the same number are put in order by their bytes; 0: as they came. */
void sorter_ties(struct sorter *sorter, int (*tie)(const void *a, const void *b));

/* Copies the record, of less than 2^32 bytes. 0 or a negative errno. */
int sorter_add(struct sorter *sorter, uint64_t key, const void *record, size_t bytes,
               struct err *err);

/* Passes each on, once and for all. Ends with what `each` returns where that is not 0. */
int sorter_each(struct sorter *sorter, int (*each)(void *data, const void *record, size_t bytes),
                void *data, struct err *err);
