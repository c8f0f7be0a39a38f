/* SPDX-License-Identifier: MIT */
/*
 * What one process did in functions that users hook (--hook): a row for each name, as many as
 * TOP_HOOKS_MAX, and one for all others. Private to top_counts.c.
 */
#ifndef CUSCOPE_TOP_TOP_HOOKS_H
#define CUSCOPE_TOP_TOP_HOOKS_H

#include "top/top_counts.h"

struct hook_row;

struct hook_rows {
	struct hook_row *rows; /* hash by name */
	struct hook_row *last;
	struct hook_row *others; /* NULL: all have rows */
};

/* One call. True where that made a row; without `room` none is made. */
bool hook_rows_count(struct hook_rows *rows, const struct call *call, bool room);

void hook_rows_tick(struct hook_rows *rows, double seconds);

/* Adds those of a process that is no longer told apart. How many rows that made. */
size_t hook_rows_merge(struct hook_rows *into, const struct hook_rows *from, size_t room);

/* Frees them, and says how many they were, without that of the others. */
size_t hook_rows_forget(struct hook_rows *rows);

void hook_rows_copy(const struct hook_rows *rows, struct top_process *into);

#endif
