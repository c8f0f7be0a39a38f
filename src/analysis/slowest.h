/* SPDX-License-Identifier: MIT */
/*
 * The longest calls, with what they were called with. Calls made inside others are left out, since
 * their time is the outer call's.
 */
#pragma once

#include "trace/event.h"

struct slow_call {
	struct call call; /* a copy: its text is owned by this */
	const struct process *process;
	uint32_t tid;
};

struct consumer *slowest_new(size_t most);

/* Calls that have no end, so that their place is not known. */
uint64_t slowest_unfinished(const struct consumer *slowest);

/* Longest first; of equal ones, the earliest. Owned by `slowest`, until the next call of this. */
const struct slow_call *slowest_rows(struct consumer *slowest, size_t *n);
