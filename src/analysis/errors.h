/* SPDX-License-Identifier: MIT */
/*
 * Which calls failed, how, how often and when. A poll that came too early is no error, nor is the
 * inner half of a call that failed for the same reason.
 */
#ifndef CUSCOPE_ANALYSIS_ERRORS_H
#define CUSCOPE_ANALYSIS_ERRORS_H

#include "trace/event.h"

/* Functions with their codes; further ones, which no real library has, are one of
 * code INT32_MAX. */
#define ERRORS_MAX 4096

struct error_row {
	const struct function *function; /* where two libraries have it, the first seen */
	int32_t code;
	uint64_t count;
	uint64_t first_ns, last_ns;    /* when the calls ended */
	const struct process *process; /* of the first */
	uint32_t tid;
};

struct consumer *errors_new(void);

/* Most frequent first. Owned by `errors`, until the next event. */
const struct error_row *errors_rows(struct consumer *errors, size_t *n);

#endif
