// SPDX-License-Identifier: MIT
/* nvtx_pushpop_trace: every range that a thread pushed and popped, in the order of their begins. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "report/nvtx/nvtx.h"
#include "report/nvtx/range_work.h"
#include "report/reports.h"
#include "table/table.h"
#include "trace/event.h"

/* ---- nvtx stack ---------------------------------------------------------------------------- */

/*
 * Which ranges are around and inside of each that a thread pushed and popped. They come in the
 * order of their ends, a range after those inside of it, so what these took is known by then. The
 * range around it gets its number before it has ended.
 */

struct nvtx_nesting {
	uint64_t id, parent;         /* numbers of ranges, from 1; parent 0: there is none */
	uint64_t child_ns, children; /* of those directly inside */
	uint32_t depth;              /* as it is shown: at most 63 */
	const char *stack; /* ":1:2:3", of this range and those around it; until the next */
};

#define LEVELS       64    /* deeper ranges are taken for those of the last level */
#define LINES_MOST   16384 /* threads and domains that are followed; others start anew */
#define DOMAIN_BYTES 64    /* of a domain's name that tell it apart */

struct nvtx_line_key {
	uint32_t process, tid;
	char domain[DOMAIN_BYTES];
};

/* A thread in a domain. */
struct nvtx_line {
	struct nvtx_line_key key;
	struct level {
		uint64_t id;       /* of the range that is open there; 0: none is known */
		uint64_t child_ns; /* in those that ended inside of it */
		uint64_t children;
	} level[LEVELS];
	UT_hash_handle hh;
};

struct nvtx_stacks {
	struct nvtx_line *lines;
	struct buf stack;
	uint64_t last_id;
};

static void forget_lines(struct nvtx_stacks *stacks)
{
	MAP_FREE(stacks->lines, free);
}

static struct nvtx_line *line_of(struct nvtx_stacks *stacks, const struct event *event)
{
	struct nvtx_line_key key = { .process = event->process->id, .tid = event->tid };
	struct nvtx_line *line;

	if (event->range->domain)
		strncpy(key.domain, event->range->domain, sizeof(key.domain) - 1);
	line = MAP_FIND(stacks->lines, &key);
	if (line)
		return line;
	if (HASH_COUNT(stacks->lines) >= LINES_MOST)
		forget_lines(stacks);
	return MAP_ADD(stacks->lines, key, &key);
}

static uint64_t id_of(struct nvtx_stacks *stacks, struct level *level)
{
	if (!level->id)
		level->id = ++stacks->last_id;
	return level->id;
}

/* Those around a range have not ended. ":1:2:3" */
static void name_stack(struct nvtx_stacks *stacks, struct nvtx_line *line, uint32_t depth)
{
	buf_reset(&stacks->stack);
	for (uint32_t i = 0; i <= depth; i++)
		buf_printf(&stacks->stack, ":%lu", id_of(stacks, &line->level[i]));
}

static void nvtx_stacks_clear(struct nvtx_stacks *stacks)
{
	forget_lines(stacks);
	buf_free(&stacks->stack);
}

/* Of a RANGE_PUSHPOP; each is to be told once. */
static struct nvtx_nesting nvtx_stacks_nest(struct nvtx_stacks *stacks, const struct event *event)
{
	uint32_t depth = event->range->depth < LEVELS ? event->range->depth : LEVELS - 1;
	struct nvtx_line *line = line_of(stacks, event);
	struct level *level = &line->level[depth];
	struct nvtx_nesting nesting;

	name_stack(stacks, line, depth);
	nesting = (struct nvtx_nesting){
		.id = level->id,
		.parent = depth ? line->level[depth - 1].id : 0,
		.child_ns = level->child_ns,
		.children = level->children,
		.depth = depth,
		.stack = stacks->stack.data,
	};
	if (depth) {
		line->level[depth - 1].child_ns += range_duration_ns(event->range);
		line->level[depth - 1].children++;
	}
	memset(level, 0, (LEVELS - depth) * sizeof(*level));
	return nesting;
}

/* The cells Lvl, NumChild, RangeId, ParentId and RangeStack. */
static void nvtx_add_nesting(struct table *table, uint32_t level,
                             const struct nvtx_nesting *nesting)
{
	TABLE_CELLS(table, level, nesting->children, nesting->id,
	            TABLE_IF(nesting->parent, nesting->parent), nesting->stack);
}

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
	struct nvtx_stacks stacks;
	struct range_work *work;
	bool any; /* a range */
};

static void *row_of(void *data, const struct event *event)
{
	struct nvtx_proj_trace_waiting *row = xcalloc(1, sizeof(*row));
	struct proj_trace *trace = data;
	struct buf name = { 0 };

	nvtx_add_name(&name, event->range);
	trace->any = true;
	row->nesting = nvtx_stacks_nest(&trace->stacks, event);
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
	TABLE_CELLS(table, done->range_ns, nvtx_style(RANGE_PUSHPOP), row->pid, row->tid,
	            done->ops);
	nvtx_add_nesting(table, done->depth, &row->nesting);
	table_key(table, done->begin_ns);
	table_end_row(table);
}

static void see_done(void *data, void *range, const struct range_work_done *done)
{
	struct nvtx_proj_trace_waiting *row = range;

	if (done->ops)
		trace_add_row(data, row, done);
	FREE_ALL(row->name, (void *)row->nesting.stack, row);
}

/* ---- the consumer -------------------------------------------------------------------------- */

static void proj_trace_event(void *self, const struct event *event)
{
	range_work_event(((struct proj_trace *)self)->work, event);
}

static void proj_trace_init(void *self)
{
	static const struct range_work_ops work = { row_of, see_work, see_done };
	struct proj_trace *trace = self;

	trace->work = range_work_new(&work, trace, trace->writer.options.work);
}

static void proj_trace_notes(void *self, struct table *table, const struct run_info *run)
{
	struct proj_trace *trace = self;

	range_work_finish(trace->work);
	nvtx_note_no_work(&trace->writer.options, run, trace->any, trace->writer.ran);
	nvtx_note_cut(table, trace->work);
	report_note_unjoined(&trace->writer.options);
}

static void proj_trace_clear(void *self)
{
	struct proj_trace *trace = self;

	range_work_finish(trace->work); /* frees the rows that wait */
	range_work_free(trace->work);
	nvtx_stacks_clear(&trace->stacks);
}

const struct report_kind nvtx_gpu_proj_trace_report = {
	.bytes = sizeof(struct proj_trace),
	.init = proj_trace_init,
	.event = proj_trace_event,
	.clear = proj_trace_clear,
	.rows_come = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(trace_columns), proj_trace_notes } },
};

/* ---- nvtx trace ---------------------------------------------------------------------------- */

struct nvtx_trace {
	struct report_writer writer; /* first: what callers hold */
	struct nvtx_stacks stacks;
	struct buf name, tree;
	bool any; /* a range */
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
	TABLE_CELLS(table, ns, nesting->child_ns,
	            ns > nesting->child_ns ? ns - nesting->child_ns : 0,
	            name_range(trace, range, nesting->depth), event->process->pid, event->tid);
	nvtx_add_nesting(table, range->depth, nesting);
	table_text(table, trace->tree.data ? trace->tree.data : "");
	table_key(table, range->begin_ns);
	table_end_row(table);
}

/* ---- the consumer -------------------------------------------------------------------------- */

static void trace_event(void *self, const struct event *event)
{
	struct nvtx_trace *trace = self;
	struct nvtx_nesting nesting;

	if (event->type != EVENT_RANGE || event->range->kind != RANGE_PUSHPOP)
		return;
	nesting = nvtx_stacks_nest(&trace->stacks, event);
	add_row(trace, event, &nesting);
	trace->any = true;
}

static void trace_notes(void *self, struct table *table, const struct run_info *run)
{
	struct nvtx_trace *trace = self;

	if (!trace->any)
		nvtx_note_none(&trace->writer.options, run, trace->writer.ran);
}

static void trace_clear(void *self)
{
	struct nvtx_trace *trace = self;

	nvtx_stacks_clear(&trace->stacks);
	buf_free(&trace->name);
	buf_free(&trace->tree);
}

const struct report_kind nvtx_pushpop_trace_report = {
	.bytes = sizeof(struct nvtx_trace),
	.event = trace_event,
	.clear = trace_clear,
	.rows_come = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), trace_notes } },
};
