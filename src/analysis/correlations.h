/* SPDX-License-Identifier: MIT */
/*
 * A set of calls by process and correlation, with up to four marks each: which calls of a trace
 * have work, and which work has its call. Correlations count up from 1, so half a byte is enough
 * for a call, and those of ten million calls are 6 MB. Numbers that lie far apart, as in a damaged
 * file, take more; there is a bound, and what is beyond it is not in the set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum correlation_mark {
	CORRELATION_CALL = 1, /* a call that asks for work */
	CORRELATION_WORK = 2, /* work */
	CORRELATION_MET = 4,  /* for whoever goes through a trace again */
};

struct correlations;

struct correlations *correlations_new(void);
void correlations_free(struct correlations *set);

/* False where the set is full: the mark is not kept. */
bool correlations_mark(struct correlations *set, uint32_t process, uint64_t correlation,
                       enum correlation_mark mark);

/* All marks of one; 0: none. */
unsigned correlations_marks(struct correlations *set, uint32_t process, uint64_t correlation);
