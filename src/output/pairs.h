/* SPDX-License-Identifier: MIT */
/*
 * Calls that asked for GPU work, and the work: which belong together. Either may come first: a
 * kernel ends after its launch returned, a copy that its caller waits for ends before; and what ran
 * is known up to seconds later.
 *
 * What waits for its other half is kept in a table of bounded size. Where it is full, the older
 * half has to leave: then it has no other, or 65,536 calls were made meanwhile; 262,144 where
 * activities come.
 * Private to src/output.
 */
#ifndef CUSCOPE_OUTPUT_PAIRS_H
#define CUSCOPE_OUTPUT_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct pairs;

/* A half that waits: what the format needs of it stands behind this, see pairs_new(). */
struct half {
	uint64_t correlation; /* 0: the place is free */
	uint32_t process;     /* its id */
	bool call;            /* else an activity */
	bool met;             /* a call that an activity was found for; more may come */
};

/*
 * `bytes`: of a struct that begins with a struct half. `leave` is told of each half that no other
 * came for, before its place is given to another, and at pairs_end().
 */
struct pairs *pairs_new(size_t bytes, void (*leave)(void *data, const struct half *half),
                        void *data);
void pairs_free(struct pairs *pairs);

/* There are activities, which come late: so many calls more are kept. */
void pairs_expect_late(struct pairs *pairs);

/* The half that waits for this correlation, NULL where there is none. */
void *pairs_find(struct pairs *pairs, uint32_t process, uint64_t correlation);

/* A place for a half that was not found; the rest of the struct is zeroed. */
void *pairs_add(struct pairs *pairs, uint32_t process, uint64_t correlation, bool call);

/* It need not wait any longer; `leave` is not told. */
void pairs_remove(void *half);

/* Everything that still waits leaves. */
void pairs_end(struct pairs *pairs);

/* Whether a call asks for work that would show as an activity; of nested calls the outer one does.
 */
bool call_asks_for_work(const struct call *call);

#endif
