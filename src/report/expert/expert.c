// SPDX-License-Identifier: MIT
/*
 * Expert rules of Nsight Systems about copies, sets and synchronisation, with its names, criteria
 * and columns: cuda_memcpy_async, cuda_memcpy_sync, cuda_memset_sync, cuda_api_sync. As there, the
 * 50 longest; the report `findings` has what they cost.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/work.h"
#include "base/buf.h"
#include "base/order.h"
#include "output/describe.h"
#include "report/who_columns.h"
#include "report/reports.h"
#include "table/longest.h"

#define ROWS_DEFAULT 50

/* A call, or what ran for it on a GPU. */
struct expert_row {
	uint64_t ns;
	const struct process *process;
	uint32_t tid;
	const struct function *function;
	struct activity activity; /* of a call its begin only */
};

struct expert {
	struct report_writer writer; /* first: what callers hold */
	const struct expert_rule *rule;
	struct longest longest; /* struct expert_row */
};

/* ---- criteria ------------------------------------------------------------------------------ */

static bool begins_with(const char *name, const char *beginning)
{
	return !strncmp(name, beginning, strlen(beginning));
}

/* Of the runtime; a program that calls the driver itself has the driver's. */
static bool is_copy(const char *name)
{
	return begins_with(name, "cudaMemcpy") || begins_with(name, "cuMemcpy");
}

static bool is_set(const char *name)
{
	return begins_with(name, "cudaMemset") || begins_with(name, "cuMemset");
}

static bool is_pageable_copy(const struct activity *activity, const char *name)
{
	return activity->kind == ACTIVITY_COPY && is_copy(name) && strstr(name, "Async") &&
	       (activity->source == ACTIVITY_MEMORY_PAGEABLE ||
	        activity->destination == ACTIVITY_MEMORY_PAGEABLE);
}

static bool is_sync_copy(const struct activity *activity, const char *name)
{
	return activity->kind == ACTIVITY_COPY && is_copy(name) && !strstr(name, "Async");
}

static bool is_sync_set(const struct activity *activity, const char *name)
{
	return activity->kind == ACTIVITY_SET && is_set(name) && !strstr(name, "Async") &&
	       (activity->destination == ACTIVITY_MEMORY_PINNED ||
	        activity->destination == ACTIVITY_MEMORY_MANAGED);
}

static bool is_sync(const char *name)
{
	return begins_with(name, "cudaDeviceSynchronize") ||
	       begins_with(name, "cudaStreamSynchronize") ||
	       begins_with(name, "cuCtxSynchronize") || begins_with(name, "cuStreamSynchronize");
}

static const struct table_column copy_columns[] = {
	{ "Duration", TABLE_DURATION }, { "Start", TABLE_TIME },     { "Src Kind", TABLE_TEXT },
	{ "Dst Kind", TABLE_TEXT },     { "Bytes", TABLE_MB },       { "PID", TABLE_NUMBER },
	{ "Device", TABLE_NUMBER },     { "Context", TABLE_NUMBER }, { "GreenCtx", TABLE_NUMBER },
	{ "Stream", TABLE_NUMBER },     { "API Name", TABLE_TEXT },
};

static const struct table_column set_columns[] = {
	{ "Duration", TABLE_DURATION }, { "Start", TABLE_TIME },      { "Memory Kind", TABLE_TEXT },
	{ "Bytes", TABLE_MB },          { "PID", TABLE_NUMBER },      { "Device", TABLE_NUMBER },
	{ "Context", TABLE_NUMBER },    { "GreenCtx", TABLE_NUMBER }, { "Stream", TABLE_NUMBER },
	{ "API Name", TABLE_TEXT },
};

static const struct table_column sync_columns[] = {
	{ "Duration", TABLE_DURATION }, { "Start", TABLE_TIME },    { "PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER },        { "API Name", TABLE_TEXT },
};

static const struct expert_rule {
	const char *report;
	const struct table_column *columns;
	size_t n_columns;
	/* Of what ran and its function; NULL: it is about calls that wait. */
	bool (*is)(const struct activity *activity, const char *name);
} rules[] = {
	{ "cuda_memcpy_async", TABLE_COLUMNS(copy_columns), is_pageable_copy },
	{ "cuda_memcpy_sync", TABLE_COLUMNS(copy_columns), is_sync_copy },
	{ "cuda_memset_sync", TABLE_COLUMNS(set_columns), is_sync_set },
	{ "cuda_api_sync", TABLE_COLUMNS(sync_columns), NULL },
};

/* ---- rows ---------------------------------------------------------------------------------- */

/* Of equal ones the earlier comes first. */
ORDER_BY(longer, struct expert_row, DOWN(ns), UP(activity.begin_ns));

static void see_asked(void *data, const struct work_done *done, const struct work_call *call)
{
	const struct activity *activity = done->activity;
	struct expert *expert = data;
	const char *name = call ? call->function->name : "";

	if (expert->rule->is(activity, name))
		longest_keep(&expert->longest,
		             &(struct expert_row){ .ns = activity_duration_ns(activity),
		                                   .process = call->process,
		                                   .tid = call->tid,
		                                   .function = call->function,
		                                   .activity = *activity });
}

static void see_event(void *self, const struct event *event)
{
	struct expert *expert = self;
	const struct call *call = event->call;

	if (expert->rule->is)
		work_join(expert->writer.work, event, see_asked, expert);
	else if (event->type == EVENT_CALL && !(call->flags & CALL_NESTED) && call_has_end(call) &&
	         is_sync(call->function->name))
		longest_keep(&expert->longest,
		             &(struct expert_row){ .ns = call_duration_ns(call),
		                                   .process = event->process,
		                                   .tid = event->tid,
		                                   .function = call->function,
		                                   .activity.begin_ns = call->begin_ns });
}

/* ---- the table ----------------------------------------------------------------------------- */

static void write_name(struct table *table, const struct function *function)
{
	AT_END(buf_free) struct buf name = { 0 };

	add_function_name(&name, function);
	table_text(table, name.data);
}

static void write_row(struct expert *expert, const struct expert_row *row)
{
	const struct activity *activity = &row->activity;
	struct table *table = expert->writer.table;

	table_u64(table, row->ns);
	report_time(&expert->writer, activity->begin_ns);
	if (!expert->rule->is) {
		TABLE_CELLS(table, row->process->pid, row->tid);
		write_name(table, row->function);
		table_end_row(table);
		return;
	}
	if (activity->kind == ACTIVITY_COPY)
		table_text(table, activity_memory_name(activity->source));
	TABLE_CELLS(table, activity_memory_name(activity->destination), activity->bytes,
	            row->process->pid, activity->device, activity->context, TABLE_UNKNOWN,
	            activity->stream);
	write_name(table, row->function);
	table_end_row(table);
}

static void write_notes(struct expert *expert, const struct run_info *run)
{
	uint64_t left_out = expert->longest.seen - expert->longest.n;

	table_note_if(expert->writer.table, left_out, "shorter ones, left out: %lu", left_out);
	if (expert->rule->is && !expert->writer.ran)
		report_note_no_gpu_times(expert->writer.table, expert->writer.options.part, run);
	else if (!expert->longest.n)
		table_note(expert->writer.table, "nothing found");
	if (expert->rule->is)
		report_note_unjoined(&expert->writer.options);
	else
		report_note_durations(expert->writer.table, run);
}

static void write_expert(void *self, struct table *table, const struct run_info *run)
{
	struct expert *expert = self;
	size_t n;
	const struct expert_row *rows = longest_rows(&expert->longest, &n);

	report_begin(&expert->writer, run, NULL, expert->rule->columns, expert->rule->n_columns);
	table_whole(table);
	for (size_t i = 0; i < n; i++)
		write_row(expert, &rows[i]);
	write_notes(expert, run);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void clear_expert(void *self)
{
	longest_free(&((struct expert *)self)->longest);
}

static void init_expert(void *self)
{
	struct expert *expert = self;
	size_t top = table_options(expert->writer.table)->top;

	expert->rule = rules;
	while (strcmp(expert->rule->report, expert->writer.report->name))
		expert->rule++;
	longest_init(&expert->longest, sizeof(struct expert_row), top ? top : ROWS_DEFAULT, longer);
	if (expert->rule->is)
		expert->writer.work = work_share(expert->writer.options.work);
}

const struct report_kind expert_report = {
	.bytes = sizeof(struct expert),
	.init = init_expert,
	.event = see_event,
	.clear = clear_expert,
	.parts = { { .write = write_expert } },
};
