// SPDX-License-Identifier: MIT
#include "analysis/threads.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/memory.h"
#include "analysis/thread_ids.h"

struct threads {
	struct thread_ids *ids;
	struct thread_row *by_id; /* process NULL: not seen */
	size_t n;
	struct thread_row *rows;
};

struct threads *threads_new(void)
{
	struct threads *threads = xcalloc(1, sizeof(*threads));

	threads->ids = thread_ids_new();
	return threads;
}

static struct thread_row *row_of(struct threads *threads, const struct event *event)
{
	uint32_t id = thread_ids_of(threads->ids, event);
	struct thread_row *row;

	threads->by_id = by_id_room(threads->by_id, &threads->n, sizeof(*threads->by_id), id);
	row = &threads->by_id[id];
	if (!row->process) {
		row->process = event->process;
		row->tid = id == THREAD_ID_OTHERS ? 0 : event->tid;
	}
	return row;
}

/* A tid that comes with another name once it has made calls belongs to another thread. */
static void name_thread(struct threads *threads, const struct event *event)
{
	struct thread_row *row = row_of(threads, event);

	if (!row->tid)
		return;
	if (row->calls && strncmp(row->comm, event->thread->comm, sizeof(row->comm))) {
		thread_ids_renew(threads->ids, event);
		row = row_of(threads, event);
	}
	memcpy(row->comm, event->thread->comm, sizeof(row->comm));
}

static void count_call(struct thread_row *row, const struct event *event)
{
	const struct call *call = event->call;
	uint64_t ns = call_duration_ns(call);

	if (!row->calls || call->begin_ns < row->first_ns)
		row->first_ns = call->begin_ns;
	if (event->time_ns > row->last_ns)
		row->last_ns = event->time_ns;
	row->calls++;
	row->call_ns += ns;
	row->failed += !!(call->flags & CALL_FAILED);
	if (call_has_end(call) && (!row->longest || ns > row->longest_ns)) {
		row->longest_ns = ns;
		row->longest = call->function;
	}
	if (!call_counts(call))
		return;
	row->launches += call->op == OP_LAUNCH;
	row->graph_launches += call->op == OP_GRAPH_LAUNCH;
	row->sync_ns += call->op == OP_SYNC ? ns : 0;
}

void threads_event(struct threads *threads, const struct event *event)
{
	if (event->type == EVENT_THREAD)
		name_thread(threads, event);
	else if (event->type == EVENT_CALL && !(event->call->flags & CALL_NESTED))
		count_call(row_of(threads, event), event);
}

static int by_time(const void *left, const void *right)
{
	const struct thread_row *a = left, *b = right;

	if (a->call_ns != b->call_ns)
		return a->call_ns < b->call_ns ? 1 : -1;
	if (a->calls != b->calls)
		return a->calls < b->calls ? 1 : -1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

const struct thread_row *threads_rows(struct threads *threads, size_t *n)
{
	free(threads->rows);
	threads->rows = xcalloc(threads->n + 1, sizeof(*threads->rows));
	*n = 0;
	for (size_t i = 0; i < threads->n; i++) {
		if (threads->by_id[i].calls)
			threads->rows[(*n)++] = threads->by_id[i];
	}
	qsort(threads->rows, *n, sizeof(*threads->rows), by_time);
	return threads->rows;
}

void threads_free(struct threads *threads)
{
	if (!threads)
		return;
	thread_ids_free(threads->ids);
	free(threads->by_id);
	free(threads->rows);
	free(threads);
}
