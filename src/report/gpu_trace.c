// SPDX-License-Identifier: MIT
/* cuda_gpu_trace: everything that ran on the GPU, in the order in which it began. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "output/activity.h"
#include "report/names.h"
#include "report/reports.h"

static const struct table_column columns[] = {
	{ "Start", TABLE_TIME },      { "Duration", TABLE_DURATION },  { "CorrId", TABLE_NUMBER },
	{ "GrdX", TABLE_NUMBER },     { "GrdY", TABLE_NUMBER },        { "GrdZ", TABLE_NUMBER },
	{ "BlkX", TABLE_NUMBER },     { "BlkY", TABLE_NUMBER },        { "BlkZ", TABLE_NUMBER },
	{ "Reg/Trd", TABLE_NUMBER },  { "StcSMem", TABLE_MB },         { "DymSMem", TABLE_MB },
	{ "Bytes", TABLE_MB },        { "Throughput", TABLE_MB_RATE }, { "SrcMemKd", TABLE_TEXT },
	{ "DstMemKd", TABLE_TEXT },   { "Device", TABLE_TEXT },        { "Ctx", TABLE_NUMBER },
	{ "GreenCtx", TABLE_NUMBER }, { "Strm", TABLE_NUMBER },        { "Name", TABLE_TEXT },
};

struct gpu_trace {
	struct report_writer writer; /* first: what callers hold */
	struct buf name;
	const char *gpus; /* what all GPUs of the machine are called */
	bool any;
};

static struct gpu_trace *trace_of(struct consumer *consumer)
{
	return (struct gpu_trace *)consumer;
}

/*
 * Which of the machine's GPUs a process calls 0 is not known, so a name is told where they all
 * have the same.
 */
static const char *name_of_gpus(const struct run_info *run)
{
	for (size_t i = 1; i < run->n_gpus; i++) {
		if (strcmp(run->gpus[i].name, run->gpus[0].name))
			return "GPU";
	}
	return run->n_gpus && *run->gpus[0].name ? run->gpus[0].name : "GPU";
}

static int gpu_trace_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct gpu_trace *trace = trace_of(self);

	trace->gpus = name_of_gpus(run);
	report_begin(&trace->writer, run, NULL, TABLE_COLUMNS(columns));
	table_in_order(trace->writer.table);
	return 0;
}

static void add_sizes(struct table *table, const struct activity *activity)
{
	for (int i = 0; i < 3; i++)
		table_u64(table, activity->grid[i]);
	for (int i = 0; i < 3; i++)
		table_u64(table, activity->block[i]);
	table_u64(table, activity->registers);
	table_u64(table, activity->shmem_static);
	table_u64(table, activity->shmem_dynamic);
	for (int i = 0; i < 4; i++) /* bytes, throughput, kinds of memory */
		table_unknown(table);
}

static void add_transfer(struct table *table, const struct activity *activity, uint64_t ns)
{
	for (int i = 0; i < 9; i++)
		table_unknown(table);
	table_u64(table, activity->bytes);
	if (ns)
		table_real(table, (double)activity->bytes * 1e9 / (double)ns);
	else
		table_unknown(table);
	table_text(table,
	           activity->kind == ACTIVITY_COPY ? activity_memory_name(activity->source) : NULL);
	table_text(table, activity_memory_name(activity->destination));
}

/* Of a graph launch as a whole no size is known. */
static void add_graph(struct table *table)
{
	for (int i = 0; i < 13; i++)
		table_unknown(table);
}

static void add_row(struct gpu_trace *trace, const struct activity *activity)
{
	uint64_t ns = activity_duration_ns(activity);
	struct table *table = trace->writer.table;

	table_s64(table, (int64_t)(activity->begin_ns - trace->writer.begin_ns));
	table_u64(table, ns);
	if (activity->correlation)
		table_u64(table, activity->correlation);
	else
		table_unknown(table);
	if (activity->kind == ACTIVITY_KERNEL)
		add_sizes(table, activity);
	else if (activity->kind == ACTIVITY_GRAPH_RUN)
		add_graph(table);
	else
		add_transfer(table, activity, ns);
	buf_reset(&trace->name);
	buf_printf(&trace->name, "%s (%u)", trace->gpus, activity->device);
	table_text(table, trace->name.data);
	table_u64(table, activity->context);
	table_unknown(table); /* green contexts are not told apart */
	table_u64(table, activity->stream);
	buf_reset(&trace->name);
	if (activity->kernel)
		add_kernel_name(&trace->name, activity->kernel, trace->writer.options.names);
	else if (activity->kind == ACTIVITY_GRAPH_RUN)
		buf_printf(&trace->name, "[CUDA graph %llu]", (unsigned long long)activity->graph);
	else
		buf_puts(&trace->name,
		         activity->kind == ACTIVITY_KERNEL ? "unknown" : operation_name(activity));
	table_text(table, trace->name.data);
	table_key(table, activity->begin_ns);
	table_end_row(table);
}

static int gpu_trace_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct gpu_trace *trace = trace_of(self);

	if (event->type != EVENT_ACTIVITY)
		return 0;
	trace->any = true;
	add_row(trace, event->activity);
	return table_failed(trace->writer.table, err);
}

static int gpu_trace_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct gpu_trace *trace = trace_of(self);

	if (!trace->any)
		report_note_no_gpu_times(trace->writer.table, trace->writer.options.part, run);
	else
		report_note_estimated(trace->writer.table, run);
	return table_end(trace->writer.table, err);
}

static void gpu_trace_free(struct consumer *self)
{
	buf_free(&trace_of(self)->name);
	free(trace_of(self));
}

static const struct consumer_ops gpu_trace_ops = {
	.begin = gpu_trace_begin,
	.event = gpu_trace_event,
	.end = gpu_trace_end,
	.free = gpu_trace_free,
};

struct consumer *gpu_trace_report_new(const struct report *report,
                                      const struct report_options *options)
{
	return report_make(sizeof(struct gpu_trace), &gpu_trace_ops, report, options);
}
