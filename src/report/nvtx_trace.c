// SPDX-License-Identifier: MIT
/*
 * nvtx_pushpop_trace: every range that a thread pushed and popped, in the order of their ends. So a
 * range comes after those inside of it: what these took is known by then, and the number of the
 * range around it is given out before that has ended.
 */
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/xalloc.h"
#include "report/nvtx.h"
#include "report/reports.h"

#define LEVELS       64    /* deeper ranges are taken for those of the last level */
#define LINES_MOST   16384 /* threads and domains that are followed; others start anew */
#define DOMAIN_BYTES 64    /* of a domain's name that tell it apart */

struct line_key {
	uint32_t process, tid;
	char domain[DOMAIN_BYTES];
};

/* A thread in a domain. */
struct line {
	struct line_key key;
	struct level {
		uint64_t id;       /* of the range that is open there; 0: none is known */
		uint64_t child_ns; /* in those that ended inside of it */
		uint64_t children;
	} level[LEVELS];
	UT_hash_handle hh;
};

struct nvtx_trace {
	struct consumer consumer; /* first */
	const struct report *report;
	struct report_options options;
	struct line *lines;
	struct buf name, stack, tree;
	uint64_t begin_ns, last_id;
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

static void forget_lines(struct nvtx_trace *trace)
{
	struct line *line, *next;

	HASH_ITER (hh, trace->lines, line, next) {
		HASH_DELETE(hh, trace->lines, line);
		free(line);
	}
}

static struct line *line_of(struct nvtx_trace *trace, const struct event *event)
{
	struct line_key key = { .process = event->process->id, .tid = event->tid };
	struct line *line;

	if (event->range->domain)
		strncpy(key.domain, event->range->domain, sizeof(key.domain) - 1);
	HASH_FIND(hh, trace->lines, &key, sizeof(key), line);
	if (line)
		return line;
	if (HASH_COUNT(trace->lines) >= LINES_MOST)
		forget_lines(trace);
	line = xcalloc(1, sizeof(*line));
	line->key = key;
	HASH_ADD(hh, trace->lines, key, sizeof(key), line);
	return line;
}

static uint64_t id_of(struct nvtx_trace *trace, struct level *level)
{
	if (!level->id)
		level->id = ++trace->last_id;
	return level->id;
}

/* Those around a range have not ended. ":1:2:3" */
static void name_stack(struct nvtx_trace *trace, struct line *line, uint32_t depth)
{
	buf_reset(&trace->stack);
	for (uint32_t i = 0; i <= depth; i++)
		buf_printf(&trace->stack, ":%llu",
		           (unsigned long long)id_of(trace, &line->level[i]));
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

static void add_row(struct nvtx_trace *trace, const struct event *event, struct line *line,
                    uint32_t depth)
{
	const struct range *range = event->range;
	struct table *table = trace->options.table;
	const struct level *level = &line->level[depth];
	uint64_t ns = range_duration_ns(range);

	name_stack(trace, line, depth);
	table_s64(table, (int64_t)(range->begin_ns - trace->begin_ns));
	table_s64(table, (int64_t)(range->end_ns - trace->begin_ns));
	table_u64(table, ns);
	table_u64(table, level->child_ns);
	table_u64(table, ns > level->child_ns ? ns - level->child_ns : 0);
	table_text(table, name_range(trace, range, depth));
	table_u64(table, event->process->pid);
	table_u64(table, event->tid);
	table_u64(table, range->depth);
	table_u64(table, level->children);
	table_u64(table, level->id);
	if (depth)
		table_u64(table, line->level[depth - 1].id);
	else
		table_unknown(table);
	table_text(table, trace->stack.data);
	table_text(table, trace->tree.data ? trace->tree.data : "");
	table_end_row(table);
}

static void see_range(struct nvtx_trace *trace, const struct event *event)
{
	uint32_t depth = event->range->depth < LEVELS ? event->range->depth : LEVELS - 1;
	struct line *line = line_of(trace, event);

	add_row(trace, event, line, depth);
	if (depth) {
		line->level[depth - 1].child_ns += range_duration_ns(event->range);
		line->level[depth - 1].children++;
	}
	memset(&line->level[depth], 0, (LEVELS - depth) * sizeof(line->level[0]));
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int trace_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct nvtx_trace *trace = trace_of(self);
	char title[160];

	trace->begin_ns = run->begin_ns;
	report_title(trace->report, title, sizeof(title));
	table_begin(trace->options.table, NULL, title, columns, sizeof(columns) / sizeof(*columns));
	return 0;
}

static int trace_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct nvtx_trace *trace = trace_of(self);

	if (event->type != EVENT_RANGE || event->range->kind != RANGE_PUSHPOP)
		return 0;
	see_range(trace, event);
	return table_failed(trace->options.table, err);
}

static int trace_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct nvtx_trace *trace = trace_of(self);

	if (!trace->last_id)
		nvtx_note_none(&trace->options, run);
	return table_end(trace->options.table, err);
}

static void trace_free(struct consumer *self)
{
	struct nvtx_trace *trace = trace_of(self);

	forget_lines(trace);
	buf_free(&trace->name);
	buf_free(&trace->stack);
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
	struct nvtx_trace *trace = xcalloc(1, sizeof(*trace));

	trace->consumer.ops = &ops;
	trace->report = report;
	trace->options = *options;
	return &trace->consumer;
}
