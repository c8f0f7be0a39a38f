// SPDX-License-Identifier: MIT
#include "report/launches/launch_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/memory.h"
#include "analysis/thread_ids.h"
#include "table/longest.h"

struct thread_state {
	struct gap_row row;
	struct gap now; /* since its last launch; begin_ns 0: it has not launched yet */
};

struct launch_gaps {
	struct thread_ids *ids;
	struct thread_state **threads; /* by id */
	size_t n_threads;
	struct longest longest; /* struct gap */
	struct gap_row **rows;
};

static int longer(const void *left, const void *right)
{
	const struct gap *a = left, *b = right;
	uint64_t one = a->end_ns - a->begin_ns, other = b->end_ns - b->begin_ns;

	return (one < other) - (one > other);
}

struct launch_gaps *launch_gaps_new(void)
{
	struct launch_gaps *gaps = xcalloc(1, sizeof(*gaps));

	gaps->ids = thread_ids_new();
	longest_init(&gaps->longest, sizeof(struct gap), GAPS_LONGEST, longer);
	return gaps;
}

static struct thread_state *thread_of(struct launch_gaps *gaps, const struct event *event)
{
	uint32_t id = thread_ids_of(gaps->ids, event);
	struct thread_state *thread;

	gaps->threads = by_id_room(gaps->threads, &gaps->n_threads, sizeof(*gaps->threads), id);
	thread = gaps->threads[id];
	if (thread)
		return thread;
	thread = gaps->threads[id] = xcalloc(1, sizeof(*thread));
	thread->row.process = event->process;
	thread->row.tid = id == THREAD_ID_OTHERS ? 0 : event->tid;
	return thread;
}

/* ---- one gap ------------------------------------------------------------------------------- */

static void begin_gap(struct thread_state *thread, uint64_t at_ns)
{
	struct gap *gap = &thread->now;

	gap->begin_ns = at_ns;
	gap->cuda_ns = gap->other_calls = gap->other_ns = 0;
	gap->n_calls = 0;
}

static void add_call(struct gap *gap, const struct call *call)
{
	uint64_t ns = call_duration_ns(call);
	size_t i;

	gap->cuda_ns += ns;
	for (i = 0; i < gap->n_calls && gap->call[i].function != call->function; i++)
		;
	if (i == GAP_CALLS) {
		gap->other_calls++;
		gap->other_ns += ns;
		return;
	}
	if (i == gap->n_calls)
		gap->call[gap->n_calls++] = (struct gap_call){ .function = call->function };
	gap->call[i].calls++;
	gap->call[i].ns += ns;
}

static int by_time(const void *left, const void *right)
{
	const struct gap_call *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->function->name, b->function->name);
}

static void end_gap(struct launch_gaps *gaps, struct thread_state *thread, uint64_t at_ns)
{
	struct gap *gap = &thread->now;

	gap->end_ns = at_ns > gap->begin_ns ? at_ns : gap->begin_ns;
	gap->process = thread->row.process;
	gap->tid = thread->row.tid;
	thread->row.cuda_ns += gap->cuda_ns;
	spread_add(&thread->row.gaps, gap->end_ns - gap->begin_ns);
	longest_keep(&gaps->longest, gap);
}

/* ---- events -------------------------------------------------------------------------------- */

void launch_gaps_event(struct launch_gaps *gaps, const struct event *event)
{
	const struct call *call = event->call;
	struct thread_state *thread;

	if (event->type == EVENT_THREAD) /* its number can have been another thread's */
		thread_ids_renew(gaps->ids, event);
	if (event->type != EVENT_CALL || call->flags & CALL_NESTED)
		return;
	thread = thread_of(gaps, event);
	if ((call->op != OP_LAUNCH && call->op != OP_GRAPH_LAUNCH) || !call_counts(call)) {
		if (thread->now.begin_ns)
			add_call(&thread->now, call);
		return;
	}
	thread->row.launches++;
	thread->row.launch_ns += call_duration_ns(call);
	if (!thread->row.tid) /* several threads: nothing lies between their launches */
		return;
	if (thread->now.begin_ns)
		end_gap(gaps, thread, call->begin_ns);
	begin_gap(thread, call_has_end(call) ? call->end_ns : call->begin_ns);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int by_launches(const void *left, const void *right)
{
	const struct gap_row *a = *(struct gap_row *const *)left;
	const struct gap_row *b = *(struct gap_row *const *)right;

	if (a->launches != b->launches)
		return a->launches < b->launches ? 1 : -1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

struct gap_row *const *launch_gaps_rows(struct launch_gaps *gaps, size_t *n)
{
	free(gaps->rows);
	gaps->rows = xcalloc(gaps->n_threads + 1, sizeof(struct gap_row *));
	*n = 0;
	for (size_t i = 0; i < gaps->n_threads; i++) {
		if (gaps->threads[i] && gaps->threads[i]->row.launches)
			gaps->rows[(*n)++] = &gaps->threads[i]->row;
	}
	qsort(gaps->rows, *n, sizeof(*gaps->rows), by_launches);
	return gaps->rows;
}

const struct gap *launch_gaps_longest(struct launch_gaps *gaps, size_t *n)
{
	struct gap *rows = longest_rows(&gaps->longest, n);

	for (size_t i = 0; i < *n; i++)
		qsort(rows[i].call, rows[i].n_calls, sizeof(*rows[i].call), by_time);
	return rows;
}

void launch_gaps_free(struct launch_gaps *gaps)
{
	if (!gaps)
		return;
	for (size_t i = 0; i < gaps->n_threads; i++) {
		if (gaps->threads[i])
			spread_free(&gaps->threads[i]->row.gaps);
		free(gaps->threads[i]);
	}
	longest_free(&gaps->longest);
	thread_ids_free(gaps->ids);
	free(gaps->threads);
	free(gaps->rows);
	free(gaps);
}
