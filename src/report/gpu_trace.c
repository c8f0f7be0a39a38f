// SPDX-License-Identifier: MIT
/* cuda_gpu_trace: everything that ran on the GPU, in the order in which it began. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/describe.h"
#include "report/who_columns.h"
#include "report/reports.h"

/* The activity as what it is, NULL as what it is not: of that nothing is known. */
struct gpu_trace_row {
	const struct activity *any, *kernel, *transfer;
	int64_t start_ns;
	uint64_t ns;
	double throughput;
	const char *source, *destination, *device, *name;
};

#define KERNEL(member)   TABLE_VIA(struct gpu_trace_row, kernel, member)
#define ANY(member)      TABLE_VIA(struct gpu_trace_row, any, member)
#define TRANSFER(member) TABLE_VIA(struct gpu_trace_row, transfer, member)
#define OWN(member)      TABLE_AT(struct gpu_trace_row, member)

static const struct table_column columns[] = {
	{ "Start", TABLE_TIME, OWN(start_ns) },
	{ "Duration", TABLE_DURATION, OWN(ns) },
	{ "CorrId", TABLE_NUMBER, ANY(correlation), .flags = TABLE_ZERO },
	{ "GrdX", TABLE_NUMBER, KERNEL(grid[0]) },
	{ "GrdY", TABLE_NUMBER, KERNEL(grid[1]) },
	{ "GrdZ", TABLE_NUMBER, KERNEL(grid[2]) },
	{ "BlkX", TABLE_NUMBER, KERNEL(block[0]) },
	{ "BlkY", TABLE_NUMBER, KERNEL(block[1]) },
	{ "BlkZ", TABLE_NUMBER, KERNEL(block[2]) },
	{ "Reg/Trd", TABLE_NUMBER, KERNEL(registers) },
	{ "StcSMem", TABLE_MB, KERNEL(shmem_static) },
	{ "DymSMem", TABLE_MB, KERNEL(shmem_dynamic) },
	{ "Bytes", TABLE_MB, TRANSFER(bytes) },
	{ "Throughput", TABLE_MB_RATE, OWN(throughput) },
	{ "SrcMemKd", TABLE_TEXT, OWN(source) },
	{ "DstMemKd", TABLE_TEXT, OWN(destination) },
	{ "Device", TABLE_TEXT, OWN(device) },
	{ "Ctx", TABLE_NUMBER, ANY(context) },
	{ "GreenCtx", TABLE_NUMBER }, /* they are not told apart */
	{ "Strm", TABLE_NUMBER, ANY(stream) },
	{ "Name", TABLE_TEXT, OWN(name) },
};

struct gpu_trace {
	struct report_writer writer; /* first: what callers hold */
	struct buf device, name;
	const char *gpus; /* what all GPUs of the machine are called */
};

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

static void gpu_trace_begin(void *self, const struct run_info *run)
{
	((struct gpu_trace *)self)->gpus = name_of_gpus(run);
}

static const char *name_of(struct gpu_trace *trace, const struct activity *activity)
{
	buf_reset(&trace->name);
	if (activity->kernel)
		add_kernel_name(&trace->name, activity->kernel, trace->writer.options.names);
	else if (activity->kind == ACTIVITY_GRAPH_RUN)
		buf_printf(&trace->name, "[CUDA graph %lu]", activity->graph);
	else
		buf_puts(&trace->name,
		         activity->kind == ACTIVITY_KERNEL ? "unknown" : operation_name(activity));
	return trace->name.data;
}

/* Kinds of memory and throughput. */
static void fill_transfer(struct gpu_trace_row *row, const struct activity *activity)
{
	row->transfer = activity;
	if (row->ns)
		row->throughput = (double)activity->bytes * 1e9 / (double)row->ns;
	if (activity->kind == ACTIVITY_COPY)
		row->source = activity_memory_name(activity->source);
	row->destination = activity_memory_name(activity->destination);
}

static void add_row(struct gpu_trace *trace, const struct activity *activity)
{
	struct gpu_trace_row row = {
		.any = activity,
		.kernel = activity->kind == ACTIVITY_KERNEL ? activity : NULL,
		.start_ns = (int64_t)(activity->begin_ns - trace->writer.begin_ns),
		.ns = activity_duration_ns(activity),
		.throughput = NAN,
		.name = name_of(trace, activity),
	};
	struct table *table = trace->writer.table;

	if (activity_is_transfer(activity))
		fill_transfer(&row, activity);
	buf_reset(&trace->device);
	buf_printf(&trace->device, "%s (%u)", trace->gpus, activity->device);
	row.device = trace->device.data;
	table_fields(table, &row);
	table_unknown(table);
	table_key(table, activity->begin_ns);
	table_row(table, &row);
}

static void gpu_trace_event(void *self, const struct event *event)
{
	if (event->type == EVENT_ACTIVITY)
		add_row(self, event->activity);
}

static void gpu_trace_notes(void *self, struct table *table, const struct run_info *run)
{
	struct gpu_trace *trace = self;

	if (!trace->writer.ran)
		report_note_no_gpu_times(table, trace->writer.options.part, run);
	else
		report_note_estimated(table, run);
}

static void gpu_trace_clear(void *self)
{
	struct gpu_trace *trace = self;

	buf_free(&trace->device);
	buf_free(&trace->name);
}

const struct report_kind gpu_trace_report = {
	.bytes = sizeof(struct gpu_trace),
	.begin = gpu_trace_begin,
	.event = gpu_trace_event,
	.clear = gpu_trace_clear,
	.rows_come = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), gpu_trace_notes } },
};
