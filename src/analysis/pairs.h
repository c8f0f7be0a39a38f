/* SPDX-License-Identifier: MIT */
/*
 * Calls that asked for GPU work, and the work: which belong together. Either may come first: a
 * kernel ends after its launch returned, a copy that its caller waits for ends before; and what ran
 * is known up to seconds later.
 *
 * A half waits for its other half until that comes, however many calls are made meanwhile: what
 * bounds the table is how much waits. Where it is full, room is made by the oldest call that has
 * met its work, kept for more of it (a graph's nodes); where there is none, by the oldest that
 * waits of its kind: activities have an eighth of the table. Halves that came in vain after their
 * other had to leave are counted.
 */
#ifndef CUSCOPE_ANALYSIS_PAIRS_H
#define CUSCOPE_ANALYSIS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/work.h"

/* What a table takes at most, where activities come: of a file, and beside other things while a
 * program is traced. */
#define PAIRS_BYTES      (48u << 20)
#define PAIRS_BYTES_LIVE (24u << 20)

struct pairs;

/* A half that waits: what its user needs of it stands behind this, see pairs_new(). */
struct half {
	uint64_t correlation;  /* 0: the place is free */
	uint32_t process;      /* its id */
	uint32_t chain;        /* places: of the same hash, */
	uint32_t newer, older; /* of those that wait, or of those that have met */
	bool call;             /* else an activity */
	bool met;              /* a call that an activity was found for; more may come */
};

/*
 * `bytes`: of a struct that begins with a struct half. `leave` is told of each half that no other
 * came for, before its place is given to another, and at pairs_end(); it may be NULL.
 */
struct pairs *pairs_new(size_t bytes, void (*leave)(void *data, const struct half *half),
                        void *data);
void pairs_free(struct pairs *pairs);

/* There are activities, which come late: as much as fits in so many bytes may wait. */
void pairs_expect_late(struct pairs *pairs, size_t bytes);

/* The half that waits for this correlation, NULL where there is none. Valid until the next is
 * added. */
void *pairs_find(struct pairs *pairs, uint32_t process, uint64_t correlation);

/* A place for a half; the rest of the struct is zeroed. One of that number that is there leaves. */
void *pairs_add(struct pairs *pairs, uint32_t process, uint64_t correlation, bool call);

/* An activity came for which there is no half: where its call had to leave, that is counted. */
void pairs_missed(struct pairs *pairs, uint32_t process, uint64_t correlation);

/* A call's work has come; more may. */
void pairs_meet(struct pairs *pairs, void *half);

/* It need not wait any longer; `leave` is not told. */
void pairs_remove(struct pairs *pairs, void *half);

/* Everything that still waits leaves. */
void pairs_end(struct pairs *pairs);

/* Halves whose other one had left before for want of room. */
uint64_t pairs_unjoined(const struct pairs *pairs);

#endif
