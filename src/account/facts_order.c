// SPDX-License-Identifier: MIT
/*
 * Rows of a recording, all there, put in order: each thread's one after the other, wakers as
 * threads, and calls by what work names them. (What facts.h finds is found here.)
 */
#include "account/facts_inside.h"

#include <stdlib.h>
#include <string.h>

#include "account/walk.h"
#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"

#define FACTS_ASKED 64 /* threads of a process that are asked who ran */

/* A call that work can name. */
struct fact_ask {
	uint64_t correlation;
	uint32_t process, thread, index;
};

struct fact_pid {
	uint64_t pid; /* machine_pid() */
	uint32_t thread;
};

/* ---- order ----------------------------------------------------------------------------------- */

/* Calls, samples, rests, sums and ranges: each begins with the time that it is put in order by. */
ORDER_BY(time_order, uint64_t, ORDER_OF(*a, *b));

ORDER_BY(work_order, struct fact_work, UP(gpu), UP(begin_ns));

ORDER_BY(ask_order, struct fact_ask, UP(process), UP(correlation));

#define SORT_ROW   128  /* bytes */
#define SORT_MOVES 8    /* that rows which are nearly in order take each, */
#define SORT_NEAR  1024 /* and one of them at most: a range comes after all that are in it */

/* Each row is put where it belongs among those before. False: that is not near. */
static bool fact_sort_near(struct spill *spill, char *rows, size_t n, size_t bytes,
                           int (*order)(const void *, const void *))
{
	char row[SORT_ROW];
	size_t moves = SORT_MOVES * n;

	for (size_t i = 1; i < n; i = spill_next(spill, i)) {
		size_t to = i;

		while (to && order(rows + (to - 1) * bytes, rows + i * bytes) > 0) {
			to--;
			if (!moves-- || i - to > SORT_NEAR)
				return false;
		}
		if (to == i)
			continue;
		memcpy(row, rows + i * bytes, bytes);
		memmove(rows + (to + 1) * bytes, rows + to * bytes, (i - to) * bytes);
		memcpy(rows + to * bytes, row, bytes);
	}
	return true;
}

/* Where the run ends that begins there: all up to it is in order. */
static size_t run_end(struct spill *spill, const char *rows, size_t n, size_t bytes, size_t from,
                      int (*order)(const void *, const void *))
{
	size_t to = from + 1;

	while (to < n && order(rows + (to - 1) * bytes, rows + to * bytes) <= 0)
		to = spill_next(spill, to);
	return to < n ? to : n;
}

/* Two runs that follow on each other become one. The first is put aside for that. */
static void runs_merge(struct spill *spill, char *rows, size_t middle, size_t n, size_t bytes,
                       char *aside, int (*order)(const void *, const void *))
{
	const char *left = aside, *end = aside + middle * bytes, *right = rows + middle * bytes;
	const char *last = rows + n * bytes;

	if (order(right - bytes, right) <= 0)
		return;
	for (size_t i = 0; i < middle; i = spill_next(spill, i))
		memcpy(aside + i * bytes, rows + i * bytes, bytes);
	for (size_t i = 0; left < end; rows += bytes, i = spill_next(spill, i)) {
		bool of_right = right < last && order(left, right) > 0;

		memcpy(rows, of_right ? right : left, bytes);
		*(of_right ? &right : &left) += bytes;
	}
}

/* Rows of a few that are each in order, one after the other. */
static void fact_sort_runs(struct spill *spill, char *rows, size_t n, size_t bytes,
                           int (*order)(const void *, const void *))
{
	char *aside = spill_make(spill, n * bytes + 1);

	for (bool done = false; !done;) {
		done = true;
		for (size_t from = 0, middle, to; from < n; from = to) {
			middle = run_end(spill, rows, n, bytes, from, order);
			to = middle < n ? run_end(spill, rows, n, bytes, middle, order) : n;
			if (middle == n)
				break;
			runs_merge(spill, rows + from * bytes, middle - from, to - from, bytes,
			           aside, order);
			done &= from == 0 && to == n;
		}
	}
	spill_drop(spill, aside);
}

static void fact_sort(const struct facts *facts, void *rows, size_t n, size_t bytes,
                      int (*order)(const void *, const void *))
{
	if (bytes > SORT_ROW || !fact_sort_near(facts->spill, rows, n, bytes, order))
		fact_sort_runs(facts->spill, rows, n, bytes, order);
}

/* Spans of the same thread that overlap are cut, so that each moment is in one at most. */
static void fact_cut_calls(const struct facts *facts, struct fact_thread *thread)
{
	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i)) {
		struct fact_call *call = &thread->calls[i];

		if (i + 1 < thread->n_calls && call->end_ns > call[1].begin_ns)
			call->end_ns = call[1].begin_ns;
		else if (i + 1 == thread->n_calls && call->open && call->end_ns < facts->end_ns)
			call->end_ns = facts->end_ns;
	}
	for (size_t i = 0; i + 1 < thread->n_rests; i = spill_next(facts->spill, i)) {
		struct fact_rest *rest = &thread->rests[i];

		if (rest->end_ns > rest[1].begin_ns)
			rest->end_ns = rest[1].begin_ns;
		if (rest->ready_ns > rest->end_ns)
			rest->ready_ns = rest->end_ns;
	}
}

/* How much of a stretch of time rests are. */
static uint64_t thread_rested_ns(const struct fact_thread *thread, uint64_t begin_ns,
                                 uint64_t end_ns, size_t *rest)
{
	uint64_t ns = 0;

	while (*rest < thread->n_rests && thread->rests[*rest].end_ns <= begin_ns)
		++*rest;
	for (; *rest < thread->n_rests; ++*rest) {
		const struct fact_rest *row = &thread->rests[*rest];
		uint64_t from_ns = facts_max(row->begin_ns, begin_ns);

		if (from_ns >= end_ns)
			break;
		ns += facts_min(row->end_ns, end_ns) - from_ns;
		if (row->end_ns > end_ns)
			break;
	}
	return ns;
}

/*
 * How much of a stretch of time waits can be in that are in no row: no others, no launches, and no
 * short pauses between calls that have such a row, for they have one at most.
 */
static uint64_t thread_untold_ns(const struct fact_thread *thread, uint64_t begin_ns,
                                 uint64_t end_ns, size_t *call, size_t *rest)
{
	uint64_t ns = 0;

	for (uint64_t to_ns; begin_ns < end_ns; begin_ns = to_ns) {
		const struct fact_call *next;
		uint64_t rested_ns;
		bool in, told;

		while (*call < thread->n_calls && thread->calls[*call].end_ns <= begin_ns)
			++*call;
		next = *call < thread->n_calls ? &thread->calls[*call] : NULL;
		in = next && next->begin_ns <= begin_ns;
		to_ns = !next ? end_ns : in ? next->end_ns : next->begin_ns;
		if (to_ns > end_ns)
			to_ns = end_ns;
		rested_ns = thread_rested_ns(thread, begin_ns, to_ns, rest);
		told = in ? walk_cause_of_call(next) == ACCOUNT_LAUNCHING
		          : rested_ns && *call < thread->n_calls &&
		                       facts_pause_is_short(thread, *call);
		ns += told ? 0 : to_ns - begin_ns - rested_ns;
	}
	return ns;
}

static void fact_order_sums(const struct facts *facts, struct fact_thread *thread)
{
	uint64_t begin_ns = facts->begin_ns;
	size_t rest = 0, call = 0;

	fact_sort(facts, thread->sums, thread->n_sums, sizeof(*thread->sums), time_order);
	for (size_t i = 0; i < thread->n_sums; i++) {
		struct fact_sum *sum = &thread->sums[i];

		if (sum->end_ns > begin_ns)
			sum->untold_ns =
				thread_untold_ns(thread, begin_ns, sum->end_ns, &call, &rest);
		begin_ns = sum->end_ns;
	}
}

struct fact_tid {
	uint64_t tid; /* as machine_pid() */
	uint32_t thread;
	uint64_t first_ns;
};

/* Threads of what runs on other machines may have the same number. */
static uint64_t tid_key(const struct fact_thread *thread, uint32_t tid)
{
	return thread->process ? (uint64_t)thread->process->machine << 32 | tid : tid;
}

ORDER_BY(tid_order, struct fact_tid, UP(tid), UP(first_ns));

/* The thread with this number that was the last to begin before that time. */
static uint32_t tid_find(const struct fact_tid *tids, size_t n, uint64_t tid, uint64_t time_ns)
{
	size_t low = ARRAY_BEFORE(
		n, i, tids[i].tid < tid || (tids[i].tid == tid && tids[i].first_ns <= time_ns));

	if (low && tids[low - 1].tid == tid)
		return tids[low - 1].thread;
	return low < n && tids[low].tid == tid ? tids[low].thread : FACTS_NONE;
}

static void facts_find_wakers(struct facts *facts)
{
	struct fact_tid *tids = xcalloc(facts->n_threads + 1, sizeof(*tids));
	size_t n = 0;

	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].tid)
			tids[n++] = (struct fact_tid){ tid_key(&facts->threads[i],
				                               facts->threads[i].tid),
				                       (uint32_t)i, facts->threads[i].first_ns };
	SORT(tids, n, tid_order);
	for (size_t i = 0; i < facts->n_threads; i++)
		for (size_t k = 0; k < facts->threads[i].n_rests; k = spill_next(facts->spill, k)) {
			struct fact_rest *rest = &facts->threads[i].rests[k];

			if (rest->waker_tid)
				rest->waker = tid_find(tids, n,
				                       tid_key(&facts->threads[i], rest->waker_tid),
				                       rest->end_ns);
		}
	free(tids);
}

ORDER_BY(pid_order, struct fact_pid, UP(pid), UP(thread));

static void facts_find_pids(struct facts *facts)
{
	facts->pids = xcalloc(facts->n_threads + 1, sizeof(*facts->pids));
	for (uint32_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].process)
			facts->pids[facts->n_pids++] =
				(struct fact_pid){ machine_pid(facts->threads[i].process), i };
	SORT(facts->pids, facts->n_pids, pid_order);
}

/* Threads of a process after each other: of each its calls are in order already. */
static struct fact_ask *facts_find_asks(const struct facts *facts, size_t *n)
{
	struct fact_ask *asks = NULL;

	*n = 0;
	for (size_t i = 0; i < facts->n_pids; i++) {
		uint32_t number = facts->pids[i].thread;
		const struct fact_thread *thread = &facts->threads[number];

		for (uint32_t k = 0; k < thread->n_calls; k = (uint32_t)spill_next(facts->spill, k))
			if (thread->calls[k].correlation) {
				*SPILL_ADD(facts->spill, asks, *n) =
					(struct fact_ask){ thread->calls[k].correlation,
					                   thread->process->id, number, k };
			}
	}
	fact_sort(facts, asks, *n, sizeof(*asks), ask_order);
	return asks;
}

#define ASKS_NEAR 8 /* streams of a GPU are ahead of each other by so many, mostly */

/* Around *near, where one of the same process was found before; else it is bisected for. */
static const struct fact_ask *ask_find(const struct fact_ask *asks, size_t n,
                                       const struct fact_ask *key, size_t *near)
{
	size_t at;

	for (size_t i = *near; i < n && i < *near + ASKS_NEAR; i++)
		if (!ask_order(&asks[i], key)) {
			*near = i + 1;
			return &asks[i];
		}
	at = ARRAY_BEFORE(n, i, ask_order(&asks[i], key) < 0);
	if (at == n || ask_order(&asks[at], key))
		return NULL;
	*near = at + 1;
	return &asks[at];
}

/* Into memory of the host that is not pinned a copy has gone when its call returns; from it the
 * call copies to memory that is. */
static void call_worked(struct fact_call *call, const struct fact_work *work)
{
	call->worked = true;
	call->pageable = work->pageable && work->direction == DIRECTION_H2D;
	if (work->pageable && work->direction == DIRECTION_D2H)
		call->blocking = call->waits_all = true;
}

/* What asked for each work. */
static void facts_join(struct facts *facts)
{
	size_t n, near = 0;
	struct fact_ask *asks = facts_find_asks(facts, &n);

	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i)) {
		struct fact_work *work = &facts->works[i];
		struct fact_ask key = { .correlation = work->correlation,
			                .process = work->process->id };
		const struct fact_ask *ask =
			key.correlation ? ask_find(asks, n, &key, &near) : NULL;

		work->thread = ask ? ask->thread : FACTS_NONE;
		work->call = ask ? ask->index : FACTS_NONE;
		if (ask)
			call_worked(&facts->threads[ask->thread].calls[ask->index], work);
	}
	spill_drop(facts->spill, asks);
}

/* From when on nothing is known to have run that it asked for. */
static void thread_find_unworked(const struct facts *facts, struct fact_thread *thread)
{
	thread->unworked_ns = UINT64_MAX;
	for (size_t i = thread->n_calls; i-- > 0 && !thread->calls[i].worked;) {
		if (thread->calls[i].correlation)
			thread->unworked_ns = thread->calls[i].begin_ns;
		spill_next(facts->spill, i);
	}
}

/* The earliest and the latest of all that is known, where the recording does not say. */
static void facts_bound(struct facts *facts)
{
	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].last_ns > facts->end_ns)
			facts->end_ns = facts->threads[i].last_ns;
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i))
		if (facts->works[i].end_ns > facts->end_ns)
			facts->end_ns = facts->works[i].end_ns;
}

void facts_order(struct facts *facts)
{
	const struct run_info *run = facts->run;

	facts->begin_ns = facts_time(run->begin_ns + facts->from_ns);
	facts->end_ns = facts_time(run->end_ns);
	if (facts->to_ns && facts->to_ns < run->end_ns - run->begin_ns)
		facts->end_ns = facts_time(run->begin_ns + facts->to_ns);
	if (facts->end_ns <= facts->begin_ns)
		facts_bound(facts);
	if (facts_of_files(facts))
		facts_tell_once(facts);
	for (size_t i = 0; i < facts->n_threads; i++) {
		struct fact_thread *thread = &facts->threads[i];

		fact_sort(facts, thread->calls, thread->n_calls, sizeof(*thread->calls),
		          time_order);
		fact_sort(facts, thread->samples, thread->n_samples, sizeof(*thread->samples),
		          time_order);
		fact_sort(facts, thread->rests, thread->n_rests, sizeof(*thread->rests),
		          time_order);
		fact_cut_calls(facts, thread);
	}
	facts_rests(facts);
	for (size_t i = 0; i < facts->n_threads; i++)
		fact_order_sums(facts, &facts->threads[i]);
	fact_sort(facts, facts->works, facts->n_works, sizeof(*facts->works), work_order);
	facts_find_wakers(facts);
	facts_find_pids(facts);
	if (facts->n_works)
		facts_join(facts);
	for (size_t i = 0; i < facts->n_threads; i++)
		thread_find_unworked(facts, &facts->threads[i]);
	fact_sort(facts, facts->ranges, facts->n_ranges, sizeof(*facts->ranges), time_order);
}

/* ---- finding --------------------------------------------------------------------------------- */

const struct fact_call *facts_call_of(const struct facts *facts, const struct fact_work *work,
                                      uint32_t *thread)
{
	if (work->thread == FACTS_NONE)
		return NULL;
	*thread = work->thread;
	return &facts->threads[work->thread].calls[work->call];
}

static uint64_t time_of(const uint64_t *first, size_t row_bytes, size_t row)
{
	return *(const uint64_t *)((const char *)first + row * row_bytes);
}

size_t facts_later(const uint64_t *first, size_t row_bytes, size_t n, uint64_t time_ns,
                   size_t *near)
{
	size_t low = 0, high = n, at = *near < n ? *near : n;

	/* in steps that double, away from where it was, until it lies between */
	for (size_t step = 1; at < high; step *= 2) {
		if (time_of(first, row_bytes, at) > time_ns) {
			high = at;
			break;
		}
		low = at + 1;
		at = high - at > step ? at + step : high;
	}
	for (size_t step = 1; at > low && high == at; step *= 2) {
		at = at - low > step ? at - step : low;
		if (time_of(first, row_bytes, at) > time_ns)
			high = at;
		else
			low = at + 1;
	}
	low += ARRAY_BEFORE(high - low, i, time_of(first, row_bytes, low + i) <= time_ns);
	*near = low;
	return low;
}

#define ROW_LATER(thread, rows, time, time_ns, row)                                                \
	((thread)->n_##rows ? facts_later(&(thread)->rows->time, sizeof(*(thread)->rows),          \
	                                  (thread)->n_##rows, time_ns, &(thread)->near.row)        \
	                    : 0)

size_t facts_call_at(struct fact_thread *thread, uint64_t time_ns)
{
	return ROW_LATER(thread, calls, end_ns, time_ns, call);
}

size_t facts_rest_at(struct fact_thread *thread, uint64_t time_ns)
{
	return ROW_LATER(thread, rests, end_ns, time_ns, rest);
}

size_t facts_sum_at(struct fact_thread *thread, uint64_t time_ns)
{
	return ROW_LATER(thread, sums, end_ns, time_ns, sum);
}

size_t facts_sample_at(struct fact_thread *thread, uint64_t time_ns)
{
	return time_ns ? ROW_LATER(thread, samples, time_ns, time_ns - 1, sample) : 0;
}

/* NULL: it does not rest then. */
static const struct fact_rest *thread_rests_at(struct fact_thread *thread, uint64_t time_ns)
{
	size_t at = facts_rest_at(thread, time_ns);

	return at < thread->n_rests && thread->rests[at].begin_ns <= time_ns ? &thread->rests[at]
	                                                                     : NULL;
}

/* The first thread of the process with this number, or of a higher one. */
static size_t pids_at(const struct facts *facts, uint64_t pid)
{
	return ARRAY_BEFORE(facts->n_pids, i, facts->pids[i].pid < pid);
}

uint64_t facts_pid_after(const struct facts *facts, uint64_t pid)
{
	size_t at = pids_at(facts, pid + 1);

	return at < facts->n_pids ? facts->pids[at].pid : 0;
}

uint32_t facts_running(const struct facts *facts, uint64_t pid, uint64_t time_ns,
                       uint32_t but_thread)
{
	size_t low = pids_at(facts, pid), high;
	uint32_t most = FACTS_NONE;

	high = low + FACTS_ASKED < facts->n_pids ? low + FACTS_ASKED : facts->n_pids;
	for (; low < high && facts->pids[low].pid == pid; low++) {
		uint32_t number = facts->pids[low].thread;
		struct fact_thread *thread = &facts->threads[number];

		if (number != but_thread && (thread->n_samples || thread->n_rests) &&
		    thread->first_ns <= time_ns && thread->last_ns > time_ns &&
		    !thread_rests_at(thread, time_ns) &&
		    (most == FACTS_NONE || thread->n_samples > facts->threads[most].n_samples))
			most = number;
	}
	return most;
}

uint32_t facts_host_function(const struct facts *facts, const struct process *process,
                             uint64_t time_ns)
{
	uint64_t pid = machine_pid(process);

	if (!facts_has_host_functions(facts, process))
		return FACTS_NONE;
	for (size_t i = pids_at(facts, pid), n = 0;
	     n < FACTS_ASKED && i < facts->n_pids && facts->pids[i].pid == pid; i++, n++) {
		struct fact_thread *thread = &facts->threads[facts->pids[i].thread];
		const struct fact_rest *rest =
			thread->is_cudas ? thread_rests_at(thread, time_ns) : NULL;

		if (thread->is_cudas && (!rest || rest->for_cuda))
			return facts->pids[i].thread;
	}
	return FACTS_NONE;
}
