// SPDX-License-Identifier: MIT
/* nvtx_pushpop_trace: every range that a thread pushed and popped, in the order of their begins. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "report/nvtx/nvtx.h"
#include "report/nvtx/nvtx_stack.h"
#include "report/nvtx/range_work.h"
#include "report/reports.h"

/* ---- nvtx proj trace ----------------------------------------------------------------------- */

/*
 * nvtx_gpu_proj_trace: every range that a thread pushed and popped and that had work on a GPU. Its
 * time goes from the begin of the first work to the end of the last; rows are in the order of these
 * begins.
 */

static const struct table_column trace_columns[] = {
	{ "Name", TABLE_TEXT },
	{ "Projected Start", TABLE_TIME },
	{ "Projected Duration", TABLE_DURATION },
	{ "Orig Start", TABLE_TIME },
	{ "Orig Duration", TABLE_DURATION },
	{ "Style", TABLE_TEXT },
	{ "PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER },
	{ "NumGPUOps", TABLE_NUMBER },
	{ "Lvl", TABLE_NUMBER },
	{ "NumChild", TABLE_NUMBER },
	{ "RangeId", TABLE_NUMBER },
	{ "ParentId", TABLE_NUMBER },
	{ "RangeStack", TABLE_TEXT },
};

/* A range that ended, of which work may still come. */
struct nvtx_proj_trace_waiting {
	struct nvtx_nesting nesting; /* its stack is the row's own */
	uint32_t pid, tid;
	uint64_t begin_ns;
	char *name;
};

struct proj_trace {
	struct report_writer writer; /* first: what callers hold */
	struct nvtx_stacks *stacks;
	struct range_work *work;
	bool any, ran; /* a range; something on a GPU */
};

static struct proj_trace *proj_trace_of(struct consumer *consumer)
{
	return (struct proj_trace *)consumer;
}

static void *row_of(void *data, const struct event *event)
{
	struct nvtx_proj_trace_waiting *row = xcalloc(1, sizeof(*row));
	struct proj_trace *trace = data;
	struct buf name = { 0 };

	nvtx_add_name(&name, event->range);
	trace->any = true;
	row->nesting = nvtx_stacks_nest(trace->stacks, event);
	row->nesting.stack = xstrdup(row->nesting.stack);
	row->name = name.data ? name.data : xstrdup("");
	row->pid = event->process->pid;
	row->tid = event->tid;
	row->begin_ns = event->range->begin_ns;
	return row;
}

static void see_work(void *data, void *row, const struct kernel *kernel, uint64_t ns)
{
}

static void trace_add_row(struct proj_trace *trace, const struct nvtx_proj_trace_waiting *row,
                          const struct range_work_done *done)
{
	struct table *table = trace->writer.table;

	table_text(table, row->name);
	table_s64(table, (int64_t)(done->begin_ns - trace->writer.begin_ns));
	table_u64(table, done->end_ns > done->begin_ns ? done->end_ns - done->begin_ns : 0);
	table_s64(table, (int64_t)(row->begin_ns - trace->writer.begin_ns));
	table_u64(table, done->range_ns);
	table_text(table, nvtx_style(RANGE_PUSHPOP));
	table_u64(table, row->pid);
	table_u64(table, row->tid);
	table_u64(table, done->ops);
	nvtx_add_nesting(table, done->depth, &row->nesting);
	table_key(table, done->begin_ns);
	table_end_row(table);
}

static void see_done(void *data, void *range, const struct range_work_done *done)
{
	struct nvtx_proj_trace_waiting *row = range;

	if (done->ops)
		trace_add_row(data, row, done);
	free(row->name);
	free((void *)row->nesting.stack);
	free(row);
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int proj_trace_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct proj_trace *trace = proj_trace_of(self);

	report_begin(&trace->writer, run, NULL, TABLE_COLUMNS(trace_columns));
	table_in_order(trace->writer.table);
	return 0;
}

static int proj_trace_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct proj_trace *trace = proj_trace_of(self);

	trace->ran = trace->ran || event->type == EVENT_ACTIVITY;
	range_work_event(trace->work, event);
	return table_failed(trace->writer.table, err);
}

static int proj_trace_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct proj_trace *trace = proj_trace_of(self);

	range_work_finish(trace->work);
	nvtx_note_no_work(&trace->writer.options, run, trace->any, trace->ran);
	nvtx_note_cut(trace->writer.table, range_work_cut(trace->work));
	report_note_unjoined(&trace->writer.options);
	return table_end(trace->writer.table, err);
}

static void proj_trace_free(struct consumer *self)
{
	struct proj_trace *trace = proj_trace_of(self);

	range_work_finish(trace->work); /* frees the rows that wait */
	range_work_free(trace->work);
	nvtx_stacks_free(trace->stacks);
	free(trace);
}

static const struct consumer_ops trace_ops = {
	.begin = proj_trace_begin,
	.event = proj_trace_event,
	.end = proj_trace_end,
	.free = proj_trace_free,
};

struct consumer *nvtx_gpu_proj_trace_report_new(const struct report *report,
                                                const struct report_options *options)
{
	static const struct range_work_ops work = { row_of, see_work, see_done };
	struct proj_trace *trace = report_make(sizeof(*trace), &trace_ops, report, options);

	trace->stacks = nvtx_stacks_new();
	trace->work = range_work_new(&work, trace, options->work);
	return &trace->writer.consumer;
}

/* ---- nvtx trace ---------------------------------------------------------------------------- */

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
