/* SPDX-License-Identifier: MIT */
/* What the target of `cut` and those who divert it share: one mapping, made before the fork. */
#ifndef CUSCOPE_TESTS_CUT_H
#define CUSCOPE_TESTS_CUT_H

#include <stdatomic.h>
#include <stdint.h>

#define CUT_FUNCTIONS 1024
#define CUT_THREADS   500

struct cut_shared {
	/* to the target */
	uint64_t near_start, near_end, bytes; /* an area, when `asked` is raised */
	uint32_t original[CUT_FUNCTIONS];     /* offsets in it, 0: none */
	uint32_t functions;
	atomic_uint asked, stop;
	/* by the target */
	uint64_t area, thunk[CUT_FUNCTIONS];
	atomic_uint answered, ready;
	atomic_ulong calls;       /* of the one that is counted */
	atomic_ulong others;      /* calls of the others */
	atomic_ulong wrong;       /* answers that were not right */
	atomic_ulong interrupted; /* waits that said EINTR */
	atomic_ulong forks, signals, waits, exceptions, not_thrown, loads;
	_Atomic uint64_t diverted[CUT_FUNCTIONS]; /* calls that came to a thunk */
};

struct cut_options {
	const char *library;
	int threads;
	int signals, forks, throws, loads; /* whether there are such */
};

/* 1: an exception thrown in a callback came out of the function that called it; 0: it did not; -1:
 * none was thrown, since somebody's return probe was on that function. */
int cut_throws(int (*calls_back)(void (*)(void *), void *));

/* The target: calls functions of the library until it is told to stop. */
_Noreturn void cut_target(struct cut_shared *shared, const struct cut_options *options);

#endif
