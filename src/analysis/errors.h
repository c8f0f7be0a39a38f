/* SPDX-License-Identifier: MIT */
/*
 * Which calls failed, how, how often and when. A poll that came too early is no error, nor is the
 * inner half of a call that failed for the same reason.
 */
#pragma once

#include "trace/event.h"

/* Functions with their codes; further ones, which no real library has, are one of
 * code INT32_MAX. */
#define ERRORS_MAX 4096

/*
 * When something was seen, as far as an estimate asks. Of a trace that was measured in windows of
 * time, what was seen in several of them goes on all the time: its number can be multiplied. What
 * was seen in one or two, such as at the begin and the end, may have been all that there was.
 */
struct recurrence {
	uint64_t last_ns;
	uint64_t times; /* with a pause before each */
};
#define RECURRENCE_PAUSE_NS 250000000ull /* windows are 2 s apart, and shorter than most of it */
#define RECURRENCE_TIMES    3

static inline void recurrence_note(struct recurrence *seen, uint64_t time_ns)
{
	seen->times += !seen->times || time_ns > seen->last_ns + RECURRENCE_PAUSE_NS;
	seen->last_ns = time_ns;
}

static inline bool recurrence_is(const struct recurrence *seen)
{
	return seen->times >= RECURRENCE_TIMES;
}

struct error_row {
	const struct function *function; /* where two libraries have it, the first seen */
	int32_t code;
	uint64_t count;
	uint64_t first_ns, last_ns;    /* when the calls ended */
	struct recurrence seen;        /* of two libraries the one that was seen more often */
	const struct process *process; /* of the first */
	uint32_t tid;
};

struct consumer *errors_new(void);

/* Most frequent first. Owned by `errors`, until the next event. */
const struct error_row *errors_rows(struct consumer *errors, size_t *n);
