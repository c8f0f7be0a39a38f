/* SPDX-License-Identifier: MIT */
/*
 * What pauses of a GPU owe to waits of the host for it.
 *
 * A wait that lasts until the GPU has nothing more to do takes the host's lead: without it the host
 * would have been ahead by as long as it waited. Until it is ahead by so much again, pauses in
 * which the GPU waits for the host are the wait's up to that lead, whatever the host did in them.
 * The rest of them is the host's own: it would have come too late in any case.
 */
#pragma once

#include "account/account.h"
#include "account/gpu_time.h"

struct gpu_debt {
	const struct fact_call *call; /* the wait; NULL: no call of CUDA's was */
	enum account_cause cause;
	uint32_t chain, thread;
	uint64_t end_ns; /* when it was over: before the pause, or in it */
	double share;    /* of the pause from then on that is owed to it, 0 to 1 */
};

/* Its segments get the numbers of their debts; rests of threads that waited for it are marked. */
void gpu_find_debts(struct gpu_time *gpu, const struct facts *facts);

/* What each thread asks for between waits for the GPU, after the debts of all GPUs: where that is
 * little. */
void gpu_find_awaited(const struct facts *facts);

/*
 * A kernel of few blocks that runs alone keeps a stream waiting that could use the rest of the GPU:
 * one for which something was asked, and that has nothing else to do. Since when, up to the
 * kernel's end; UINT64_MAX: none waits, or not for longer than what begins by itself takes.
 */
uint64_t gpu_awaited_since(const struct gpu_time *gpu, const struct facts *facts, size_t number);

/* NULL: the pause owes nothing to a wait. */
static inline const struct gpu_debt *gpu_debt_of(const struct gpu_time *gpu,
                                                 const struct gpu_segment *segment)
{
	return segment->debt ? &gpu->debts[segment->debt - 1] : NULL;
}

/* Within it work begins that was asked for before, and times of stretches are no better. */
uint64_t gpu_queue_ns(const struct facts *facts);
