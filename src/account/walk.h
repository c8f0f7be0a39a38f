/* SPDX-License-Identifier: MIT */
/*
 * What a thread did in a stretch of time, as parts of an account: in calls of CUDA, on a CPU,
 * ready without one, blocked; and blocked time as what the thread did that ended it.
 */
#pragma once

#include "account/parts.h"

struct walk {
	const struct facts *facts;
	struct parts *parts;
	uint64_t *budget; /* stretches and samples that may still be looked at; then all is not
	                     known */
	double scale;     /* so much of each stretch is meant, */
	double share;     /* and of that: see parts_add() */
	bool alone;       /* GPU times are not known: who waits for the GPU waits for its work */
	enum account_cause whole; /* calls that are this have all of their time; 0: none */
	bool computes;            /* and what the thread itself computes has it */
	double *whole_ns;         /* gets theirs; NULL: nobody asks */
};

/* All of each stretch. */
static inline struct walk walk_of(const struct facts *facts, struct parts *parts, uint64_t *budget)
{
	return (struct walk){ facts, parts, budget, .scale = 1, .share = 1 };
}

/* From begin_ns to before end_ns; `via`: the waits that led there, 0: none. */
void walk_thread(const struct walk *walk, uint32_t thread, uint64_t begin_ns, uint64_t end_ns,
                 uint32_t via);

/*
 * Waits that were not told by themselves lie anywhere in the time of their sum that they can be in,
 * and are taken to be as the nearest that was told: how much of a stretch without calls they are.
 */
struct walk_untold {
	uint64_t blocked_ns, ready_ns;
	const struct fact_rest *like; /* NULL: none is near */
};

/* `next_call`: the thread's first that ends later. */
struct walk_untold walk_untold(struct fact_thread *thread, uint64_t begin_ns, uint64_t end_ns,
                               size_t next_call);

/* What time in such a call is. */
enum account_cause walk_cause_of_call(const struct fact_call *call);
