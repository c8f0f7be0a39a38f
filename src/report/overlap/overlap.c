// SPDX-License-Identifier: MIT
/*
 * The report `overlap`: how long each GPU was busy with computing, communication and copies, and
 * with several of them at once. Beside it stands the breakdown of time that HTA makes of a trace.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/gpu_work.h"
#include "report/overlap/hta.h"
#include "base/xalloc.h"
#include "report/reports.h"

struct overlap {
	struct report_writer writer; /* first: what callers hold */
	struct gpu_works *works;
	struct hta *hta;
};

static int see_overlap(struct consumer *self, const struct event *event, struct err *err)
{
	struct overlap *overlap = (struct overlap *)self;

	gpu_works_event(overlap->works, event);
	hta_event(overlap->hta, event);
	return 0;
}

static void free_overlap(struct consumer *self)
{
	struct overlap *overlap = (struct overlap *)self;

	gpu_works_free(overlap->works);
	hta_free(overlap->hta);
	free(overlap);
}

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER },
	{ "Device", TABLE_NUMBER },
	{ "Span", TABLE_DURATION },
	{ "Idle", TABLE_DURATION },
	{ "Busy", TABLE_DURATION },
	{ "Compute", TABLE_DURATION },
	{ "Communication", TABLE_DURATION },
	{ "Copies+Sets", TABLE_DURATION },
	{ "Compute+Comm", TABLE_DURATION },
	{ "Compute+Copies", TABLE_DURATION },
	{ "Comm+Copies", TABLE_DURATION },
	{ "Comm Hidden", TABLE_PERCENT },
	{ "Copies Hidden", TABLE_PERCENT },
};

static void add_share(struct table *table, uint64_t part, uint64_t whole)
{
	if (whole)
		table_real(table, 100 * (double)part / (double)whole);
	else
		table_unknown(table);
}

/* HTA's percentages have two decimals. */
static void add_pctg(struct table *table, uint64_t part, uint64_t whole)
{
	if (whole)
		table_real(table, round(1e4 * (double)part / (double)whole) / 100);
	else
		table_unknown(table);
}

static void write_row(struct table *table, const struct gpu_work_row *row)
{
	table_u64(table, row->process->pid);
	table_u64(table, row->device);
	table_u64(table, row->end_ns - row->begin_ns);
	table_u64(table, gpu_work_idle_ns(row));
	table_u64(table, row->union_ns[WORK_ALL]);
	table_u64(table, row->union_ns[WORK_COMPUTE]);
	table_u64(table, row->union_ns[WORK_COMMUNICATION]);
	table_u64(table, row->union_ns[WORK_MEMORY]);
	table_u64(table, gpu_work_both_ns(row, WORK_COMPUTE, WORK_COMMUNICATION));
	table_u64(table, gpu_work_both_ns(row, WORK_COMPUTE, WORK_MEMORY));
	table_u64(table, gpu_work_both_ns(row, WORK_COMMUNICATION, WORK_MEMORY));
	add_share(table, gpu_work_both_ns(row, WORK_COMPUTE, WORK_COMMUNICATION),
	          row->union_ns[WORK_COMMUNICATION]);
	add_share(table, gpu_work_both_ns(row, WORK_MEMORY, WORK_KERNELS),
	          row->union_ns[WORK_MEMORY]);
	table_end_row(table);
}

/* Its names of columns; it has them in us. */
static const struct table_column hta_columns[] = {
	{ "PID", TABLE_NUMBER },
	{ "idle_time", TABLE_DURATION },
	{ "compute_time", TABLE_DURATION },
	{ "non_compute_time", TABLE_DURATION },
	{ "kernel_time", TABLE_DURATION },
	{ "idle_time_pctg", TABLE_REAL },
	{ "compute_time_pctg", TABLE_REAL },
	{ "non_compute_time_pctg", TABLE_REAL },
	{ "comp_comm_overlap_pctg", TABLE_REAL },
};

static void write_hta_row(struct table *table, const struct hta_row *row)
{
	uint64_t idle = row->kernel_ns - row->busy_ns, other = row->busy_ns - row->compute_ns;

	table_u64(table, row->process->pid);
	table_u64(table, idle);
	table_u64(table, row->compute_ns);
	table_u64(table, other);
	table_u64(table, row->kernel_ns);
	add_pctg(table, idle, row->kernel_ns);
	add_pctg(table, row->compute_ns, row->kernel_ns);
	add_pctg(table, other, row->kernel_ns);
	add_pctg(table, row->both_ns, row->communication_ns);
	table_end_row(table);
}

static int write_busy(struct overlap *overlap, const struct run_info *run,
                      const struct gpu_work_row *rows, size_t n, struct err *err)
{
	struct table *table = overlap->writer.table;
	uint64_t not_measured = 0, short_ns = 0;
	bool graphs = false;

	report_begin(&overlap->writer, run, "busy", TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++) {
		write_row(table, &rows[i]);
		graphs |= rows[i].graphs > 0;
		not_measured += rows[i].not_measured_ns;
		short_ns += rows[i].short_ns;
	}
	if (!n) {
		report_note_no_gpu_times(table, overlap->writer.options.part, run);
		return table_end(table, err);
	}
	table_note(table, "Span: from the first work on the GPU to the last; A+B: while both ran; "
	                  "Hidden: of the time of communication while something was computed, of "
	                  "copies and sets while a kernel ran");
	if (gpu_works_left_out(overlap->works))
		table_note(table, "left out, on more GPUs than are told apart: %llu activities",
		           (unsigned long long)gpu_works_left_out(overlap->works));
	if (not_measured)
		table_note(table,
		           "a part of the Span was not measured, and is neither Idle nor Busy");
	if (graphs)
		table_note(table, "graphs that were recorded as a whole are taken for computing");
	report_note_busy_short(table, short_ns);
	report_note_gpu_lost(table, run);
	return table_end(table, err);
}

static int write_hta(struct overlap *overlap, struct err *err)
{
	struct table *table = overlap->writer.table;
	uint64_t left_out = 0, unasked = 0;
	const struct hta_row *rows;
	size_t n;
	int rc = hta_rows(overlap->hta, &rows, &n, err);

	if (rc)
		return rc;
	table_begin(table, "hta",
	            "As HTA counts: temporal breakdown, overlap of communication and computing",
	            TABLE_COLUMNS(hta_columns));
	for (size_t i = 0; i < n; i++) {
		write_hta_row(table, &rows[i]);
		left_out += rows[i].left_out;
		unasked += rows[i].unasked;
	}
	if (n)
		table_note(table,
		           "all GPUs of a process together; kernel_time: from the first work "
		           "to the last; non_compute_time: in which something ran, but "
		           "nothing was computed; what was not measured is idle");
	if (left_out)
		table_note(table,
		           "left out, as HTA does: activities of the last ProfilerStep: %llu",
		           (unsigned long long)left_out);
	if (unasked)
		table_note(table,
		           "left out, as HTA does where there are ProfilerSteps: activities whose "
		           "call is not known: %llu",
		           (unsigned long long)unasked);
	report_note_unjoined(&overlap->writer.options);
	return table_end(table, err);
}

static int write_overlap(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct overlap *overlap = (struct overlap *)self;
	const struct gpu_work_row *rows;
	size_t n;
	int rc;

	rows = gpu_works_rows(overlap->works, &n);
	rc = write_busy(overlap, run, rows, n, err);
	return rc ? rc : write_hta(overlap, err);
}

static const struct consumer_ops ops = { .event = see_overlap,
	                                 .end = write_overlap,
	                                 .free = free_overlap };

struct consumer *overlap_report_new(const struct report *report,
                                    const struct report_options *options)
{
	struct overlap *overlap = report_make(sizeof(*overlap), &ops, report, options);

	overlap->works = gpu_works_new();
	overlap->hta = hta_new(options->work);
	return &overlap->writer.consumer;
}
