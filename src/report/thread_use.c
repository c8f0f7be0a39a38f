// SPDX-License-Identifier: MIT
#include "report/thread_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/memory.h"
#include "analysis/thread_ids.h"
#include "base/order.h"
#include "report/reports.h"

/* ---- threads ------------------------------------------------------------------------------- */

/* The report `threads`: what each thread did, and how much of its time CUDA took. */

#define AT(member) TABLE_AT(struct thread_use_row, member)

static const struct table_column threads_columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct thread_use_row, process, pid) },
	{ "TID", TABLE_NUMBER, AT(tid), .flags = TABLE_ZERO },
	{ "Calls", TABLE_NUMBER, AT(calls) },
	{ "In CUDA", TABLE_DURATION, AT(call_ns), .needs = REPORT_RETURNS },
	{ "In CUDA", TABLE_PERCENT },
	{ "Waiting", TABLE_DURATION, AT(sync_ns), .needs = REPORT_RETURNS },
	{ "Launches", TABLE_NUMBER },
	{ "Errors", TABLE_NUMBER, AT(failed) },
	{ "Longest", TABLE_DURATION },
	{ "Longest Call", TABLE_TEXT, TABLE_VIA(struct thread_use_row, longest, name) },
	{ "Name", TABLE_TEXT },
};

static double threads_percent(const struct thread_use_row *row, bool returns)
{
	uint64_t life = row->last_ns - row->first_ns;

	return returns && life && row->tid ? 100.0 * (double)row->call_ns / (double)life : NAN;
}

static void write_row(struct table *table, const struct thread_use_row *row, bool returns)
{
	table_fields(table, row);
	table_real(table, threads_percent(row, returns));
	table_fields(table, row);
	table_u64(table, row->launches + row->graph_launches);
	table_fields(table, row);
	table_known(table, row->longest, row->longest_ns);
	table_fields(table, row);
	TABLE_LAST(table, !row->tid ? "(all others)" : row->comm[0] ? row->comm : NULL);
}

static void write_threads(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	size_t n;
	const struct thread_use_row *rows = thread_use_rows(writer->analysis, &n);

	for (size_t i = 0; i < n; i++)
		write_row(table, &rows[i], run->returns);
	table_note_if(table, n,
	              "In CUDA (%%): of the time from a thread's first call to its last; Waiting: "
	              "in calls that wait for the device");
	report_note_durations(table, run);
	report_note_estimated(table, run);
}

const struct report_kind threads_report = {
	.analysis = thread_use_new,
	.parts = { { NULL, NULL, TABLE_COLUMNS(threads_columns), write_threads } },
};

/* ---- thread use ---------------------------------------------------------------------------- */

struct thread_use {
	struct consumer consumer; /* first: what callers hold */
	struct thread_ids *ids;
	struct thread_use_row *by_id; /* process NULL: not seen */
	size_t n;
	struct thread_use_row *rows;
};

static struct thread_use_row *row_of(struct thread_use *use, const struct event *event)
{
	uint32_t id = thread_ids_of(use->ids, event);
	struct thread_use_row *row = BY_ID(use->by_id, use->n, id);

	if (!row->process) {
		row->process = event->process;
		row->tid = id == THREAD_ID_OTHERS ? 0 : event->tid;
	}
	return row;
}

/* A tid that comes with another name once it has made calls belongs to another thread. */
static void name_thread(struct thread_use *use, const struct event *event)
{
	struct thread_use_row *row = row_of(use, event);

	if (!row->tid)
		return;
	if (row->calls && strncmp(row->comm, event->thread->comm, sizeof(row->comm))) {
		thread_ids_renew(use->ids, event);
		row = row_of(use, event);
	}
	memcpy(row->comm, event->thread->comm, sizeof(row->comm));
}

static void count_call(struct thread_use_row *row, const struct event *event)
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
	row->launches += call->op == OP_LAUNCH ? call_launches(call) : 0;
	row->graph_launches += call->op == OP_GRAPH_LAUNCH;
	row->sync_ns += call->op == OP_SYNC ? ns : 0;
}

static int thread_use_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct thread_use *use = (struct thread_use *)self;

	if (event->type == EVENT_THREAD)
		name_thread(use, event);
	else if (event->type == EVENT_CALL && !(event->call->flags & CALL_NESTED))
		count_call(row_of(use, event), event);
	return 0;
}

ORDER_BY(by_time, struct thread_use_row, DOWN(call_ns), DOWN(calls), UP(tid));

const struct thread_use_row *thread_use_rows(struct consumer *self, size_t *n)
{
	struct thread_use *use = (struct thread_use *)self;

	free(use->rows);
	use->rows = xcalloc(use->n + 1, sizeof(*use->rows));
	*n = 0;
	for (size_t i = 0; i < use->n; i++) {
		if (use->by_id[i].calls)
			use->rows[(*n)++] = use->by_id[i];
	}
	SORT(use->rows, *n, by_time);
	return use->rows;
}

static void thread_use_free(struct consumer *self)
{
	struct thread_use *use = (struct thread_use *)self;

	thread_ids_free(use->ids);
	FREE_ALL(use->by_id, use->rows, use);
}

static const struct consumer_ops thread_use_ops = { .event = thread_use_event,
	                                            .free = thread_use_free };

struct consumer *thread_use_new(void)
{
	struct thread_use *use = xcalloc(1, sizeof(*use));

	use->consumer.ops = &thread_use_ops;
	use->ids = thread_ids_new();
	return &use->consumer;
}
