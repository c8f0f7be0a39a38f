// SPDX-License-Identifier: MIT
/*
 * What waits were for, as those beside them tell: a wait whose limit was over and that goes on, one
 * that a stop of the process broke off, and those for Python's lock of which no stack was walked.
 */
#include "account/facts_inside.h"

#include <stdlib.h>

#include "analysis/by_id.h"

#define GIL_AGAIN_NS 300000 /* Python's lock is waited for again so soon after each 5 ms */

/* ---- Python's lock --------------------------------------------------------------------------- */

/* Waits of a process for a lock whose limit was over, as far as their stacks are known. */
struct timed {
	uint64_t gil, other;
	uint64_t longest_ns; /* of those for the GIL */
};

static bool rest_is_timed(const struct fact_rest *rest)
{
	return rest->how == BLOCKED_INTERRUPT && rest->wait == WAIT_LOCK && !rest->waker_tid;
}

static uint64_t rest_ns(const struct fact_rest *rest)
{
	return rest->end_ns - rest->begin_ns;
}

static void timed_count(struct timed *timed, const struct fact_rest *rest)
{
	if (!rest->chain || !rest_is_timed(rest))
		return;
	if (!rest->gil) {
		timed->other++;
		return;
	}
	timed->gil++;
	timed->longest_ns = facts_max(timed->longest_ns, rest_ns(rest));
}

/* One without a stack is for what most are that are as long. */
static bool timed_is_gil(const struct timed *timed, const struct fact_rest *rest)
{
	return !rest->chain && rest_is_timed(rest) && timed->gil > timed->other &&
	       rest_ns(rest) <= timed->longest_ns;
}

static void facts_find_gil(struct facts *facts)
{
	struct timed *timed = NULL; /* by process */
	size_t n = 0;

	for (size_t i = 0; i < facts->n_threads; i++) {
		const struct fact_thread *thread = &facts->threads[i];

		for (size_t k = 0; k < thread->n_rests; k++)
			timed_count(BY_ID(timed, n, thread->process->id), &thread->rests[k]);
	}
	for (size_t i = 0; i < facts->n_threads; i++) {
		struct fact_thread *thread = &facts->threads[i];

		for (size_t k = 0; k < thread->n_rests; k++)
			thread->rests[k].gil |=
				timed_is_gil(&timed[thread->process->id], &thread->rests[k]);
	}
	free(timed);
}

/* ---- waits that go on ------------------------------------------------------------------------ */

/* It has a limit, and may be waited for once more when that is over. */
static bool rest_is_limited(const struct fact_rest *rest)
{
	return rest->wait == WAIT_LOCK || rest->wait == WAIT_SLEEP || rest->wait == WAIT_PIPE ||
	       rest->wait == WAIT_NETWORK || rest->wait == WAIT_EVENTS;
}

/* The GIL is waited for in rounds, until it is there. Not all of their stacks are walked. */
static bool rest_can_be_for_gil(const struct fact_rest *rest)
{
	return rest->gil || (!rest->chain && rest->wait == WAIT_LOCK);
}

static bool rest_is_again(const struct fact_rest *rest)
{
	return ((rest->gil || rest[1].gil) && rest_can_be_for_gil(rest) &&
	        rest_can_be_for_gil(&rest[1])) ||
	       (rest->chain && rest->chain == rest[1].chain && rest_is_limited(rest) &&
	        rest_is_limited(&rest[1]));
}

static bool rest_goes_on(const struct fact_rest *rest)
{
	return rest->how == BLOCKED_INTERRUPT && rest_is_again(rest) &&
	       rest[1].begin_ns - rest->end_ns < GIL_AGAIN_NS;
}

/* Threads alone let go of locks and write to pipes: else it is a limit that was over. */
static bool rest_is_for_a_time(const struct fact_rest *rest)
{
	return rest->how == BLOCKED_INTERRUPT && !rest->waker_tid && !rest->gil &&
	       (rest->wait == WAIT_LOCK || rest->wait == WAIT_PIPE);
}

/* It was stopped meanwhile, as to be looked into, and then let go on. */
static bool rest_was_stopped(const struct fact_rest *rest)
{
	return rest->wait != WAIT_STOP && rest[1].wait == WAIT_STOP &&
	       rest->waker_tid == rest[1].waker_tid &&
	       rest[1].begin_ns - rest->end_ns < GIL_AGAIN_NS &&
	       rest[2].begin_ns - rest[1].end_ns < GIL_AGAIN_NS;
}

/* Who waits again as soon as his time is over, or a stop of his process is, was woken by the one
 * who woke him in the end. */
static void thread_pass_on_wakers(struct fact_thread *thread)
{
	for (size_t i = thread->n_rests; i-- > 1;) {
		struct fact_rest *rest = &thread->rests[i - 1];

		if (!rest->waker_tid && rest[1].wait != WAIT_SLEEP && rest_goes_on(rest)) {
			rest->waker_tid = rest[1].waker_tid;
			rest->wait = rest[1].wait;
		}
		if (i + 1 >= thread->n_rests || !rest_was_stopped(rest))
			continue;
		rest->waker_tid = rest[2].waker_tid;
		if (rest[2].wait == WAIT_CALL) { /* the system call that is begun again */
			rest[2].wait = rest->wait;
			rest[2].chain = rest->chain;
		}
	}
	for (size_t i = 0; i < thread->n_rests; i++)
		if (rest_is_for_a_time(&thread->rests[i]))
			thread->rests[i].wait = WAIT_SLEEP;
}

void facts_rests(struct facts *facts)
{
	facts_find_gil(facts);
	for (size_t i = 0; i < facts->n_threads; i++)
		thread_pass_on_wakers(&facts->threads[i]);
}
