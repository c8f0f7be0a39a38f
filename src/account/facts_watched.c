// SPDX-License-Identifier: MIT
/*
 * From when on GPUs were measured in each window of GPU times, and up to when threads were watched.
 * At the end of a recording calls and GPU times can come for some hundred milliseconds more than
 * samples and waits do: why a GPU paused then was not measured.
 */
#include "account/facts_inside.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"

/* Of the threads of one process. */
struct watched {
	uint64_t told_ns;  /* the last sample, or end of a wait that is over */
	uint64_t still_ns; /* when those that were not over were asked for; 0: none was */
	bool went_on;      /* the thread of one of these made a call before it was asked for */
};

/* A thread that makes a call does not wait any more. */
static bool rest_went_on(struct fact_thread *thread, const struct fact_rest *rest)
{
	size_t call = facts_call_at(thread, rest->begin_ns);

	if (call < thread->n_calls && thread->calls[call].begin_ns <= rest->begin_ns)
		call++;
	return call < thread->n_calls && thread->calls[call].begin_ns < rest->end_ns;
}

static void watched_add(struct watched *watched, struct fact_thread *thread)
{
	if (thread->n_samples && thread->samples[thread->n_samples - 1].time_ns > watched->told_ns)
		watched->told_ns = thread->samples[thread->n_samples - 1].time_ns;
	for (size_t i = 0; i < thread->n_rests; i++) {
		const struct fact_rest *rest = &thread->rests[i];

		if (rest->how != BLOCKED_STILL) {
			if (rest->end_ns > watched->told_ns)
				watched->told_ns = rest->end_ns;
			continue;
		}
		if (!watched->still_ns || rest->end_ns < watched->still_ns)
			watched->still_ns = rest->end_ns;
		watched->went_on |= rest_went_on(thread, rest);
	}
}

static uint64_t watched_end(const struct watched *watched)
{
	return watched->went_on && watched->told_ns < watched->still_ns ? watched->told_ns
	                                                                : watched->still_ns;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Work that began so long after its call has waited for other work. */
#define WINDOW_QUEUED_NS 100000

ORDER_BY(span_order, struct fact_span, UP(process), UP(begin_ns));

/* Of a process: those spans that it has, of those in order. */
static size_t spans_before(const struct facts *facts, uint64_t process, uint64_t time_ns)
{
	return ARRAY_BEFORE(facts->n_unmeasured, i,
	                    facts->unmeasured[i].process < process ||
	                            (facts->unmeasured[i].process == process &&
	                             facts->unmeasured[i].end_ns <= time_ns));
}

/*
 * What a GPU had been asked for before a window, it still runs in it, and that is in no record. So
 * where the first work of a window had to wait for other work, the window begins with it.
 */
static void windows_begin_late(struct facts *facts)
{
	const struct fact_work **first;

	if (!facts->n_unmeasured)
		return;
	first = xcalloc(facts->n_unmeasured, sizeof(*first));
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i)) {
		const struct fact_work *work = &facts->works[i];
		size_t n = spans_before(facts, work->process->id, work->begin_ns);

		if (n && facts->unmeasured[n - 1].process == work->process->id &&
		    (!first[n - 1] || work->begin_ns < first[n - 1]->begin_ns))
			first[n - 1] = work;
	}
	for (size_t i = 0; i < facts->n_unmeasured; i++) {
		uint32_t thread;
		const struct fact_call *call =
			first[i] ? facts_call_of(facts, first[i], &thread) : NULL;

		if (call && call->begin_ns + WINDOW_QUEUED_NS < first[i]->begin_ns)
			facts->unmeasured[i].end_ns = first[i]->begin_ns;
	}
	free(first);
}

void facts_watched(struct facts *facts)
{
	struct watched *by_id;
	uint32_t most = 0;

	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].process && facts->threads[i].process->id > most)
			most = facts->threads[i].process->id;
	by_id = xcalloc((size_t)most + 1, sizeof(*by_id));
	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].process)
			watched_add(&by_id[facts->threads[i].process->id], &facts->threads[i]);
	SORT(facts->unmeasured, facts->n_unmeasured, span_order);
	windows_begin_late(facts);
	facts->unwatched =
		xcalloc(facts->n_unmeasured + (size_t)most + 1, sizeof(*facts->unwatched));
	for (size_t i = 0; i < facts->n_unmeasured; i++)
		facts->unwatched[facts->n_unwatched++] = facts->unmeasured[i];
	for (uint32_t id = 0; id <= most; id++)
		if (by_id[id].still_ns && watched_end(&by_id[id]) < facts->end_ns)
			facts->unwatched[facts->n_unwatched++] =
				(struct fact_span){ watched_end(&by_id[id]), FACTS_TIME_MAX, id };
	SORT(facts->unwatched, facts->n_unwatched, span_order);
	free(by_id);
}
