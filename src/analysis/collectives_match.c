// SPDX-License-Identifier: MIT
/* In the end: which kernel each call has, which number, and which calls are one collective. */
#include <stdlib.h>
#include <string.h>

#include "analysis/collectives_inside.h"
#include "base/array.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define TOLD_HEED 256 /* of a process in a communicator: RAS is asked a dozen times */

ORDER_BY(kernels_by_call, struct collective_kernel, UP(process), UP(correlation), UP(begin_ns));

static void kernels_join(struct collectives *collectives)
{
	struct collectives_own *own = collectives->own;

	SORT(own->kernels, own->n_kernels, kernels_by_call);
	for (size_t i = 0; i < collectives->n_calls; i++) {
		struct collective_call *call = &collectives->calls[i];
		uint32_t process = collectives->ranks[call->rank].process->id;
		size_t low = 0, high = own->n_kernels;

		while (call->correlation && low < high) {
			size_t middle = low + (high - low) / 2;
			const struct collective_kernel *run = &own->kernels[middle];

			if (run->process < process ||
			    (run->process == process && run->correlation < call->correlation))
				low = middle + 1;
			else
				high = middle;
		}
		if (!call->correlation || low == own->n_kernels ||
		    own->kernels[low].process != process ||
		    own->kernels[low].correlation != call->correlation)
			continue;
		call->gpu_begin_ns = own->kernels[low].begin_ns;
		call->gpu_end_ns = own->kernels[low].end_ns;
	}
}

/* They come late at times, and not in their order. */
ORDER_BY(calls_by_begin, struct collective_call, UP(rank), UP(kind), UP(begin_ns), UP(end_ns));

int calls_in_order(const void *x, const void *y)
{
	return calls_by_begin(x, y);
}

ORDER_BY(told_by_rank, struct told_counts, UP(process), UP(id[0]), UP(id[1]));
ORDER_BY(told_by_time, struct told_counts, UP(process), UP(id[0]), UP(id[1]), UP(begin_ns));

void told_sort(struct collectives *collectives)
{
	struct collectives_own *own = collectives->own;

	SORT(own->told, own->n_told, told_by_time);
}

/*
 * Of those of one rank and kind: how many came before the first, by what RAS counted. It counts a
 * call somewhere between its begin and its end, at a time between question and answer, so each
 * answer leaves some numbers possible; false: all of them leave none, or more than one. Before the
 * first call that was seen and after the last there may be others.
 */
bool calls_before(const struct collectives *collectives, const struct collective_call *calls,
                  size_t n, uint64_t *before)
{
	const struct collectives_own *own = collectives->own;
	const struct collective_rank *rank = &collectives->ranks[calls->rank];
	const uint64_t *id = rank->ras_id[0] ? rank->ras_id : collectives->comms[rank->comm].id;
	uint64_t least = 0, most = UINT64_MAX;

	const struct told_counts wanted = { .id = { id[0], id[1] }, .process = rank->process->id };
	size_t first = ARRAY_BEFORE(own->n_told, k, told_by_rank(&own->told[k], &wanted) < 0);

	for (size_t i = first; i < own->n_told && i < first + TOLD_HEED; i++) {
		const struct told_counts *told = &own->told[i];
		uint64_t count, ended, begun;

		if (calls->kind >= COLLECTIVES_TOLD || told_by_rank(told, &wanted))
			break;
		if (rank->number >= 0 && told->number != rank->number)
			continue;
		if (told->begin_ns < calls[0].begin_ns || told->end_ns > calls[n - 1].end_ns)
			continue;
		count = told->counts[calls->kind];
		if (count == UINT64_MAX)
			continue;
		ended = ARRAY_BEFORE(n, k, calls[k].end_ns <= told->begin_ns);
		begun = ARRAY_BEFORE(n, k, calls[k].begin_ns <= told->end_ns);
		if (count < ended)
			return false;
		if (count - ended < most)
			most = count - ended;
		if (count > begun && count - begun > least)
			least = count - begun;
	}
	*before = least;
	return least == most;
}

/* Calls of one rank and kind of which none was lost. */
struct proven {
	uint64_t before; /* how many came before the first of all */
	size_t first, n;
};

/* A count while none of them was under way: so many had come before the first, if none was lost
 * since. */
static void proven_add(struct proven *best, struct proven *run, uint64_t before, size_t seen)
{
	if (before != run->before)
		*run = (struct proven){ before, seen, 0 };
	run->n = seen - run->first;
	if (run->n > best->n)
		*best = *run;
}

/*
 * Where calls were lost: the most that lie between two counts that say the same. A rank that was
 * seen to be made counts from nothing.
 */
static struct proven calls_proven(const struct collectives *collectives,
                                  const struct collective_call *calls, size_t n)
{
	const struct collectives_own *own = collectives->own;
	const struct collective_rank *rank = &collectives->ranks[calls->rank];
	struct proven best = { 0 }, run = { .before = rank->made ? 0 : UINT64_MAX };
	const struct told_counts wanted = { .id = { rank->ras_id[0], rank->ras_id[1] },
		                            .process = rank->process->id };
	size_t first = ARRAY_BEFORE(own->n_told, k, told_by_rank(&own->told[k], &wanted) < 0);
	size_t whole = 0; /* that returned: whether one that did not is counted nobody knows */

	if (!rank->ras_id[0] || calls->kind >= COLLECTIVES_TOLD)
		return best;
	while (whole < n && calls[whole].end_ns > calls[whole].begin_ns)
		whole++;
	for (size_t i = first; i < own->n_told && i < first + TOLD_HEED; i++) {
		const struct told_counts *told = &own->told[i];
		uint64_t count = told->counts[calls->kind], ended, begun;

		if (told_by_rank(told, &wanted))
			break;
		ended = ARRAY_BEFORE(n, k, calls[k].end_ns <= told->begin_ns);
		begun = ARRAY_BEFORE(n, k, calls[k].begin_ns <= told->end_ns);
		if (rank->number >= 0 && told->number != rank->number)
			continue;
		if (count != UINT64_MAX && ended == begun && begun <= whole && count >= ended)
			proven_add(&best, &run, count - ended, ended);
	}
	return best;
}

static void rank_prove(struct collectives *collectives, struct collective_call *calls, size_t n)
{
	struct collective_rank *rank = &collectives->ranks[calls->rank];
	struct proven proven;

	if (rank->comm == COLLECTIVES_NONE || calls->kind >= COLLECTIVE_COUNTED)
		return;
	proven = calls_proven(collectives, calls, n);
	rank->first[calls->kind] = proven.before;
	rank->uncounted[calls->kind] = !proven.n;
	if (rank->lost || proven.n)
		rank->partly[calls->kind] = collectives->comms[rank->comm].partly = true;
	for (size_t i = 0; i < n; i++)
		calls[i].settled = i - proven.first < proven.n;
}

/* Where answers contradict each other some calls were not seen, as of a library that was hooked
 * late. */
static void rank_count(struct collectives *collectives, struct collective_call *calls, size_t n)
{
	struct collective_rank *rank = &collectives->ranks[calls->rank];

	if (rank->made || rank->comm == COLLECTIVES_NONE || calls->kind >= COLLECTIVE_COUNTED)
		return;
	if (!calls_before(collectives, calls, n, &rank->first[calls->kind]))
		rank_prove(collectives, calls, n);
}

static void calls_number(struct collectives *collectives)
{
	struct collective_call *calls = collectives->calls;

	told_sort(collectives);
	SORT(calls, collectives->n_calls, calls_in_order);
	for (size_t first = 0, n; first < collectives->n_calls; first += n) {
		for (n = 1; first + n < collectives->n_calls &&
		            calls[first + n].rank == calls[first].rank &&
		            calls[first + n].kind == calls[first].kind;
		     n++)
			;
		if (collectives->ranks[calls[first].rank].lost)
			rank_prove(collectives, &calls[first], n);
		else
			rank_count(collectives, &calls[first], n);
	}
	for (size_t i = 0; i < collectives->n_calls; i++) {
		bool begins = !i || calls[i].rank != calls[i - 1].rank ||
		              calls[i].kind != calls[i - 1].kind;

		if (calls[i].kind < COLLECTIVE_COUNTED)
			calls[i].number =
				begins ? collectives->ranks[calls[i].rank].first[calls[i].kind]
				       : calls[i - 1].number + 1;
	}
}

/* The communicator by which a call is one with others. */
static uint32_t call_comm(const struct collectives *collectives, const struct collective_call *call)
{
	const struct collective_rank *rank = &collectives->ranks[call->rank];

	if (call->kind < COLLECTIVE_COUNTED &&
	    (rank->uncounted[call->kind] || (rank->partly[call->kind] && !call->settled)))
		return COLLECTIVES_NONE;
	return rank->comm;
}

/* By what makes them one; those of communicators that are not known come last. */
struct order_row {
	struct collective_call call;
	uint32_t comm;
};

ORDER_BY(calls_together, struct order_row, UP(comm), UP(call.kind), UP(call.number), UP(call.rank));

static void calls_sort(struct collectives *collectives)
{
	size_t n = collectives->n_calls;
	struct order_row *rows = xcalloc(n + 1, sizeof(*rows));

	for (size_t i = 0; i < n; i++)
		rows[i] = (struct order_row){ collectives->calls[i],
			                      call_comm(collectives, &collectives->calls[i]) };
	SORT(rows, n, calls_together);
	for (size_t i = 0; i < n; i++)
		collectives->calls[i] = rows[i].call;
	free(rows);
}

uint64_t collective_arrival_ns(const struct collective *collective,
                               const struct collective_call *call)
{
	return collective->by_gpu ? call->gpu_begin_ns : call->begin_ns;
}

static bool calls_are_one(const struct collectives *collectives, const struct collective_call *a,
                          const struct collective_call *b)
{
	return a->kind == b->kind && a->number == b->number && a->kind < COLLECTIVE_COUNTED &&
	       call_comm(collectives, a) != COLLECTIVES_NONE &&
	       call_comm(collectives, a) == call_comm(collectives, b);
}

/* Sizes of an all-to-all may differ; all others say the same. */
bool calls_agree(const struct collective_call *calls, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (calls[i].bytes != calls[0].bytes)
			return false;
	return true;
}

void collective_fill(struct collective *one, const struct collective_call *calls)
{
	one->by_gpu = true;
	for (uint32_t i = 0; i < one->n; i++)
		one->by_gpu &= calls[i].gpu_begin_ns != 0;
	one->first_ns = UINT64_MAX;
	for (uint32_t i = 0; i < one->n; i++) {
		uint64_t time_ns = collective_arrival_ns(one, &calls[i]);

		if (time_ns < one->first_ns)
			one->first_ns = time_ns;
		if (i && time_ns <= one->last_ns)
			continue;
		one->last_ns = time_ns;
		one->last = one->first + i;
	}
	for (uint32_t i = 0; one->by_gpu && i < one->n; i++)
		if (!one->end_ns || calls[i].gpu_end_ns < one->end_ns)
			one->end_ns = calls[i].gpu_end_ns;
}

static const struct collective_comm *comm_of(const struct collectives *collectives,
                                             const struct collective_call *call)
{
	return &collectives->comms[collectives->ranks[call->rank].comm];
}

static void collectives_match(struct collectives *collectives, uint32_t first, uint32_t n)
{
	const struct collective_call *calls = &collectives->calls[first];
	struct collective one = { .comm = collectives->ranks[calls->rank].comm,
		                  .first = first,
		                  .n = n,
		                  .kind = calls->kind };
	struct collective_comm *comm = &collectives->comms[one.comm];

	if (calls->kind != COLLECTIVE_ALL_TO_ALL && !calls_agree(calls, n)) {
		comm->unlike++;
		return;
	}
	comm->matched++;
	collective_fill(&one, calls);
	*VEC_ADD(collectives->all, collectives->n_all) = one;
}

/* One whose ranks say different things has lost some of their calls: no number of it is right. */
static void collectives_drop_unlike(struct collectives *collectives)
{
	size_t n = 0;

	for (size_t i = 0; i < collectives->n_all; i++) {
		const struct collective *one = &collectives->all[i];

		if (!collectives->comms[one->comm].unlike)
			collectives->all[n++] = *one;
	}
	collectives->n_all = n;
}

ORDER_BY(told_by_number, struct collective_told, UP(id[0]), UP(id[1]), UP(person), UP(number),
         UP(file));
ORDER_BY(collectives_by_time, struct collective, UP(comm), UP(last_ns), UP(first));

void collectives_end(struct collectives *collectives, const struct run_info *run)
{
	static const enum lost_reason calls_lost[] = { LOST_RING_FULL, LOST_THREADS_FULL,
		                                       LOST_NOT_RUN, LOST_QUEUE };
	uint32_t n;

	for (size_t i = 0; i < sizeof(calls_lost) / sizeof(calls_lost[0]); i++)
		collectives->lost |= run->lost[calls_lost[i]] != 0;
	collectives->lost |= run->damaged_chunks != 0;
	ranks_lose(collectives, run);
	claims_find(collectives);
	SORT(collectives->told, collectives->n_told, told_by_number);
	kernels_join(collectives);
	calls_number(collectives);
	calls_sort(collectives);
	for (size_t i = 0; i < collectives->n_ranks; i++)
		if (collectives->ranks[i].comm != COLLECTIVES_NONE)
			collectives->comms[collectives->ranks[i].comm].n_ranks++;
	for (uint32_t first = 0; first < collectives->n_calls; first += n) {
		const struct collective_call *call = &collectives->calls[first];

		for (n = 1;
		     first + n < collectives->n_calls && calls_are_one(collectives, call, call + n);
		     n++)
			;
		if (call->kind >= COLLECTIVE_COUNTED)
			collectives->unpaired += n;
		else if (collectives->ranks[call->rank].comm == COLLECTIVES_NONE)
			collectives->unknown += n;
		else if (call_comm(collectives, call) == COLLECTIVES_NONE)
			collectives->uncounted += n;
		else if (n < 2 || (comm_of(collectives, call)->partly &&
		                   n < comm_of(collectives, call)->n_ranks))
			collectives->alone++;
		else
			collectives_match(collectives, first, n);
	}
	collectives_drop_unlike(collectives);
	SORT(collectives->all, collectives->n_all, collectives_by_time);
}
