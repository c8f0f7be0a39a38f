/* SPDX-License-Identifier: MIT */
/*
 * Rows of time spent, by category, in bins that are all equally long. Neither begin nor end need be
 * known before. When a time does not fit, the bins become twice as long, to the left or to the
 * right. So memory depends on their number, and never on the length of what they show.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analysis/category.h"

struct time_bins;

struct time_bins *time_bins_new(size_t bins); /* even */
void time_bins_free(struct time_bins *bins);

/* Adds a row and returns its number, from 0. */
size_t time_bins_row(struct time_bins *bins);

/* An interval of at least 1 ns. One that lies years away from the first is ignored. */
void time_bins_add(struct time_bins *bins, size_t row, enum category category, uint64_t begin_ns,
                   uint64_t end_ns);

/*
 * What a row has between two times, in `columns` parts: out[column * CATEGORY_COUNT + category] in
 * ns. All intervals must be between the two. Times are off by half a bin at most.
 */
void time_bins_read(const struct time_bins *bins, size_t row, uint64_t from_ns, uint64_t to_ns,
                    size_t columns, double *out);
