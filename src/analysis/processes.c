// SPDX-License-Identifier: MIT
#include "analysis/processes.h"

#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/order.h"

struct processes {
	struct consumer consumer;  /* first: what callers hold */
	struct process_row *by_id; /* process NULL: not seen */
	bool *worked;              /* by id: made a call, or ran something on a GPU */
	size_t n, n_worked;
	struct memory *memory;
	struct process_row *rows;
};

static __attribute__((noinline)) void make_room(struct processes *processes, uint32_t id)
{
	processes->by_id =
		by_id_room(processes->by_id, &processes->n, sizeof(*processes->by_id), id);
	processes->worked =
		by_id_room(processes->worked, &processes->n_worked, sizeof(*processes->worked), id);
}

static inline struct process_row *row_of(struct processes *processes, const struct event *event)
{
	const struct process *process = event->process;
	struct process_row *row;

	if (process->id >= processes->n)
		make_room(processes, process->id);
	row = &processes->by_id[process->id];
	if (!row->process) {
		row->process = process;
		row->begin_ns = event->time_ns;
	}
	return row;
}

static void count_call(struct process_row *row, const struct call *call)
{
	if (call->begin_ns < row->begin_ns)
		row->begin_ns = call->begin_ns;
	if (call->flags & CALL_NESTED)
		return;
	row->calls++;
	row->call_ns += call_duration_ns(call);
	row->failed += !!(call->flags & CALL_FAILED);
	row->unfinished += !!(call->flags & CALL_UNFINISHED);
	if (!call_counts(call))
		return;
	if (call->op == OP_LAUNCH)
		row->launches += call_launches(call);
	else if (call->op == OP_GRAPH_LAUNCH)
		row->graph_launches++;
	else if (call->op == OP_COPY)
		memory_count_add(&row->copies, call->args.bytes);
	else if (call->op == OP_SET)
		memory_count_add(&row->sets, call->args.bytes);
}

static int processes_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct processes *processes = (struct processes *)self;
	struct process_row *row = row_of(processes, event);

	if (!row->ended && event->time_ns > row->end_ns)
		row->end_ns = event->time_ns;
	memory_event(processes->memory, event);
	switch (event->type) {
	case EVENT_CALL:
		processes->worked[event->process->id] = true;
		count_call(row, event->call);
		break;
	case EVENT_ACTIVITY:
		processes->worked[event->process->id] = true;
		break;
	case EVENT_EXIT:
		row->end_ns = event->time_ns;
		row->ended = true;
		break;
	case EVENT_PROCESS:
	case EVENT_THREAD:
	case EVENT_RANGE:
	case EVENT_SAMPLE:
	case EVENT_METRICS:
	case EVENT_STALL:
	case EVENT_OTHER_CALL:
	case EVENT_CALL_BEGIN:
		break;
	}
	return 0;
}

ORDER_BY(by_begin, struct process_row, UP(begin_ns), UP(process->id));

const struct process_row *processes_rows(struct consumer *self, size_t *n)
{
	struct processes *processes = (struct processes *)self;

	free(processes->rows);
	processes->rows = xcalloc(processes->n + 1, sizeof(*processes->rows));
	*n = 0;
	for (size_t i = 0; i < processes->n; i++) {
		const struct memory_totals *memory;
		struct process_row *row = &processes->rows[*n];

		if (!processes->by_id[i].process || !processes->worked[i])
			continue;
		*row = processes->by_id[i];
		memory = memory_process_totals(processes->memory, row->process, MEMORY_NONE);
		if (memory) {
			row->live_bytes = memory->live.bytes;
			row->peak_bytes = memory->peak_bytes;
		}
		(*n)++;
	}
	SORT(processes->rows, *n, by_begin);
	return processes->rows;
}

static void processes_free(struct consumer *self)
{
	struct processes *processes = (struct processes *)self;

	memory_free(processes->memory);
	FREE_ALL(processes->by_id, processes->worked, processes->rows, processes);
}

static const struct consumer_ops processes_ops = { .event = processes_event,
	                                           .free = processes_free };

struct consumer *processes_new(void)
{
	struct processes *processes = xcalloc(1, sizeof(*processes));

	processes->consumer.ops = &processes_ops;
	processes->memory = memory_new();
	return &processes->consumer;
}
