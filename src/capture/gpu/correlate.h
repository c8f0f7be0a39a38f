/* SPDX-License-Identifier: MIT */
/*
 * Which call asked for an activity. Of each launch, copy and set, agents tell the number that CUPTI
 * gave it, its thread, begin and end. That interval lies within one call that the eBPF programs
 * saw, or around it if only the driver's call is hooked. Either of the two may come first:
 *
 *   correlate_call         a call is passed on: the number that it is to have
 *   correlate_agent_call   what an agent said of a call
 *   correlate_find         the number of CUPTI's number
 *
 * Everything is bounded: the oldest is forgotten, and what asks for it finds nothing. It is the
 * oldest of who has most, so that a user's flood of calls forgets nobody else's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct correlate;

struct correlate *correlate_new(void);
void correlate_free(struct correlate *correlate);

/* A call, as either side sees it; tids as the initial pid namespace counts. */
struct correlate_span {
	uint32_t pid, tid;
	uint64_t begin_ns;
	uint64_t end_ns; /* 0: only its entry is known */
	bool work;       /* a launch, copy or set: the agent's call may lie around it */
	uint64_t person; /* whose the process is (probe/person.h): users share what there is */
};

/*
 * A call that no other traced call made, in order of its end (or entry, where there is no end).
 * Returns the number that was reserved for it or, where there is none, `next`.
 */
uint64_t correlate_call(struct correlate *correlate, const struct correlate_span *call,
                        uint64_t next);

/* Time of a thread that was the agent's, within a call that comes later; and how much of it a call
 * holds. Only the last few hundred are kept. */
void correlate_own_time(struct correlate *correlate, const struct correlate_span *own);
uint64_t correlate_own_ns(const struct correlate *correlate, const struct correlate_span *call);

/*
 * What an activity carries: CUPTI's number, which begins anew with each program and each time that
 * CUPTI was left, and a number that tells these apart.
 */
struct correlate_id {
	uint32_t agent, number;
};

/* All calls that ended before have come, as far as they were seen. */
void correlate_passed(struct correlate *correlate, uint64_t passed_ns);

/* A call that an agent tells of, in order of its end within its thread. False, and left out, where
 * it would wait behind one that ended later: no thread's calls do. */
bool correlate_agent_call(struct correlate *correlate, const struct correlate_span *call,
                          struct correlate_id id);

enum correlate_answer {
	CORRELATE_UNKNOWN, /* no agent told of this number, so far */
	CORRELATE_WAITS,   /* the call that it belongs to has not come yet */
	CORRELATE_KNOWN,
	CORRELATE_NONE, /* no call was seen that it belongs to */
};

/* What is known of CUPTI's number; *number and *begin_ns (when the call began) are set with */
/* CORRELATE_KNOWN, *begin_ns with WAITS and NONE as well. */
enum correlate_answer correlate_find(struct correlate *correlate, struct correlate_id id,
                                     uint64_t *number, uint64_t *begin_ns);

/* Of what waits: the thread that called, and when. False where it waits no longer. */
bool correlate_waits(const struct correlate *correlate, struct correlate_id id, uint32_t *tid,
                     uint64_t *begin_ns);

/*
 * Whether a call that waits is not awaited in vain. Calls are passed on in the order of their ends,
 * and one may last: its begin says nothing of when it comes.
 */
bool correlate_may_come(const struct correlate *correlate, struct correlate_id id);

/*
 * Ends the waiting. With `next`, which is not 0, that number is reserved for the call that will
 * come, unless it is one that was entered only: then it is the latest that began before. Without,
 * none but the latter. Sets *number, 0 for none; true when `next` was taken.
 */
bool correlate_reserve(struct correlate *correlate, struct correlate_id id, uint64_t next,
                       uint64_t *number);

/* The process ended, or became another program at this time: its threads are new ones. */
void correlate_forget(struct correlate *correlate, uint32_t pid, uint64_t time_ns);
