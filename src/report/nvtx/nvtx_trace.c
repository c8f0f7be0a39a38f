// SPDX-License-Identifier: MIT
/* nvtx_pushpop_trace: every range that a thread pushed and popped, in the order of their begins. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "report/nvtx/nvtx.h"
#include "report/nvtx/nvtx_stack.h"
#include "report/reports.h"

struct nvtx_trace {
	struct report_writer writer; /* first: what callers hold */
	struct nvtx_stacks *stacks;
	struct buf name, tree;
	bool any, ran; /* a range; something on a GPU */
};

static const struct table_column columns[] = {
	{ "Start", TABLE_TIME },           { "End", TABLE_TIME },
	{ "Duration", TABLE_DURATION },    { "DurChild", TABLE_DURATION },
	{ "DurNonChild", TABLE_DURATION }, { "Name", TABLE_TEXT },
	{ "PID", TABLE_NUMBER },           { "TID", TABLE_NUMBER },
	{ "Lvl", TABLE_NUMBER },           { "NumChild", TABLE_NUMBER },
	{ "RangeId", TABLE_NUMBER },       { "ParentId", TABLE_NUMBER },
	{ "RangeStack", TABLE_TEXT },      { "NameTree", TABLE_TEXT },
};

static struct nvtx_trace *trace_of(struct consumer *consumer)
{
	return (struct nvtx_trace *)consumer;
}

static const char *name_range(struct nvtx_trace *trace, const struct range *range, uint32_t depth)
{
	buf_reset(&trace->name);
	nvtx_add_name(&trace->name, range);
	buf_reset(&trace->tree);
	buf_fill(&trace->tree, ' ', (size_t)2 * depth);
	buf_puts(&trace->tree, trace->name.data ? trace->name.data : "");
	return trace->name.data ? trace->name.data : "";
}

static void add_row(struct nvtx_trace *trace, const struct event *event,
                    const struct nvtx_nesting *nesting)
{
	const struct range *range = event->range;
	struct table *table = trace->writer.table;
	uint64_t ns = range_duration_ns(range);

	table_s64(table, (int64_t)(range->begin_ns - trace->writer.begin_ns));
	table_s64(table, (int64_t)(range->end_ns - trace->writer.begin_ns));
	table_u64(table, ns);
	table_u64(table, nesting->child_ns);
	table_u64(table, ns > nesting->child_ns ? ns - nesting->child_ns : 0);
	table_text(table, name_range(trace, range, nesting->depth));
	table_u64(table, event->process->pid);
	table_u64(table, event->tid);
	nvtx_add_nesting(table, range->depth, nesting);
	table_text(table, trace->tree.data ? trace->tree.data : "");
	table_key(table, range->begin_ns);
	table_end_row(table);
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int trace_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct nvtx_trace *trace = trace_of(self);

	report_begin(&trace->writer, run, NULL, TABLE_COLUMNS(columns));
	table_in_order(trace->writer.table);
	return 0;
}

static int trace_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct nvtx_trace *trace = trace_of(self);
	struct nvtx_nesting nesting;

	trace->ran = trace->ran || event->type == EVENT_ACTIVITY;
	if (event->type != EVENT_RANGE || event->range->kind != RANGE_PUSHPOP)
		return 0;
	nesting = nvtx_stacks_nest(trace->stacks, event);
	add_row(trace, event, &nesting);
	trace->any = true;
	return table_failed(trace->writer.table, err);
}

static int trace_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct nvtx_trace *trace = trace_of(self);

	if (!trace->any)
		nvtx_note_none(&trace->writer.options, run, trace->ran);
	return table_end(trace->writer.table, err);
}

static void trace_free(struct consumer *self)
{
	struct nvtx_trace *trace = trace_of(self);

	nvtx_stacks_free(trace->stacks);
	buf_free(&trace->name);
	buf_free(&trace->tree);
	free(trace);
}

static const struct consumer_ops ops = {
	.begin = trace_begin,
	.event = trace_event,
	.end = trace_end,
	.free = trace_free,
};

struct consumer *nvtx_pushpop_trace_report_new(const struct report *report,
                                               const struct report_options *options)
{
	struct nvtx_trace *trace = report_make(sizeof(*trace), &ops, report, options);

	trace->stacks = nvtx_stacks_new();
	return &trace->writer.consumer;
}
