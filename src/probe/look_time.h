/* SPDX-License-Identifier: MIT */
/*
 * The time that looks at what processes have mapped, and at their threads, take of the capture, an
 * account (account.h) for each user but root, of each kind of them. A process can have 65,530
 * mappings, and map another file each moment: each look goes through all of them. Who has used a
 * half to four seconds of a processor has a small part of the time from then on. On any thread.
 */
#ifndef CUSCOPE_PROBE_LOOK_TIME_H
#define CUSCOPE_PROBE_LOOK_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum look_time {
	LOOK_AT_MAPS,    /* listing them, because one more file is mapped */
	LOOK_INTO_FILES, /* that are new, and hooking them */
	LOOK_FOR_JUMPS,  /* where probes would be */
	LOOK_FOR_NAMES,  /* of what is on stacks */
	LOOK_AT_SYMBOLS, /* of the files that these are in */
	LOOK_AT_THREADS, /* which number each has in its pid namespace */
	LOOK_AT_TABLES,  /* by which stacks are walked, of the files that are mapped */
	LOOK_TIMES
};

/* Whether this user's processes are not to be looked at now. */
bool look_time_is_over(enum look_time what, uint64_t person);

/* Whether that has been so of anybody; it costs nothing to ask. */
bool look_time_was_over(enum look_time what);

/* `busy_ns`: as by helper_busy_ns(). */
void look_time_charge(enum look_time what, uint64_t person, uint64_t busy_ns);

#endif
