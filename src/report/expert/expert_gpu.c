// SPDX-License-Identifier: MIT
/*
 * Expert rules of Nsight Systems about GPUs that wait, with its names, criteria and columns:
 * gpu_gaps and gpu_time_util. The report `gaps` says why, and begins at 20 us.
 */
#include "analysis/gpu_windows.h"
#include "base/number.h"
#include "report/expert/long_gaps.h"
#include "report/reports.h"

#define ROWS_DEFAULT 50
#define LONG_GAP_NS  500000000
#define LOW_USE      0.5
/* ---- gpu_gaps ------------------------------------------------------------------------------ */

static const struct table_column gap_columns[] = {
	{ "Row#", TABLE_NUMBER }, { "Duration", TABLE_DURATION }, { "Start", TABLE_TIME },
	{ "PID", TABLE_NUMBER },  { "Device ID", TABLE_NUMBER },  { "Context ID", TABLE_NUMBER },
};

static int write_gaps(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	struct table *table = writer->table;
	const struct long_gap *rows;
	uint64_t left_out;
	size_t n;

	report_begin(writer, run, NULL, TABLE_COLUMNS(gap_columns));
	table_whole(table);
	rows = long_gaps_rows(writer->analysis, &n);
	for (size_t i = 0; i < n; i++) {
		table_u64(table, i + 1);
		table_u64(table, rows[i].end_ns - rows[i].begin_ns);
		report_time(writer, rows[i].begin_ns);
		table_u64(table, rows[i].process->pid);
		table_u64(table, rows[i].device);
		table_u64(table, rows[i].context);
		table_end_row(table);
	}
	left_out = long_gaps_left_out(writer->analysis);
	if (left_out)
		table_note(table, "shorter ones, left out: %llu", (unsigned long long)left_out);
	if (!n && long_gaps_any_work(writer->analysis))
		table_note(table, "nothing found: no gap is longer than 500 ms (the report gaps "
		                  "has shorter ones)");
	else if (!n)
		report_note_no_gpu_times(table, writer->options.part, run);
	if (long_gaps_late(writer->analysis))
		table_note(table,
		           "gaps can be too long: %llu activities became known after the gaps "
		           "that they fill had been counted",
		           (unsigned long long)long_gaps_late(writer->analysis));
	report_note_gpu_lost(table, run);
	return table_end(table, err);
}

static const struct consumer_ops gaps_ops = { .event = report_feed,
	                                      .end = write_gaps,
	                                      .free = report_free };

struct consumer *gpu_gaps_report_new(const struct report *report,
                                     const struct report_options *options)
{
	size_t top = table_options(options->table)->top;

	return report_of(long_gaps_new(LONG_GAP_NS, top ? top : ROWS_DEFAULT), &gaps_ops, report,
	                 options);
}

/* ---- gpu_time_util ------------------------------------------------------------------------- */

static const struct table_column use_columns[] = {
	{ "Row#", TABLE_NUMBER },       { "In-Use", TABLE_PERCENT }, { "Duration", TABLE_DURATION },
	{ "Start", TABLE_TIME },        { "PID", TABLE_NUMBER },     { "Device ID", TABLE_NUMBER },
	{ "Context ID", TABLE_NUMBER },
};

/* Neighbours of low use are one row, with the mean of their use. */
static size_t write_device(struct report_writer *writer, const struct gpu_windows_row *row,
                           size_t number)
{
	double window_ns = (double)(row->end_ns - row->begin_ns) / GPU_WINDOWS;
	struct table *table = writer->table;

	for (size_t i = 0; i < GPU_WINDOWS; i++) {
		size_t first = i;
		double sum = 0;

		while (i < GPU_WINDOWS && row->measured[i] >= GPU_WINDOW_MEASURED &&
		       row->sum[i] < LOW_USE)
			sum += row->sum[i++];
		if (i == first)
			continue;
		table_u64(table, ++number);
		table_real(table, 100 * sum / (double)(i - first));
		table_u64(table, number_rounded(window_ns * (double)(i - first)));
		report_time(writer, row->begin_ns + number_rounded(window_ns * (double)first));
		table_u64(table, row->process->pid);
		table_u64(table, row->device);
		table_u64(table, row->context);
		table_end_row(table);
	}
	return number;
}

static int write_use(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	struct table *table = writer->table;
	const struct gpu_windows_row *rows;
	size_t n, number = 0;

	report_begin(writer, run, NULL, TABLE_COLUMNS(use_columns));
	rows = gpu_windows_rows(writer->analysis, &n);
	for (size_t i = 0; i < n; i++)
		number = write_device(writer, &rows[i], number);
	if (!n)
		report_note_no_gpu_times(table, writer->options.part, run);
	else if (!number)
		table_note(table, "nothing found: no window was in use below 50 %%");
	if (number)
		table_note(table,
		           "of %d windows of each GPU's time; In-Use adds up what runs at "
		           "the same time, as nsys does (within 1 %%)",
		           GPU_WINDOWS);
	report_note_gpu_lost(table, run);
	return table_end(table, err);
}

static const struct consumer_ops use_ops = { .event = report_feed,
	                                     .end = write_use,
	                                     .free = report_free };

struct consumer *gpu_time_util_report_new(const struct report *report,
                                          const struct report_options *options)
{
	return report_of(gpu_windows_new(), &use_ops, report, options);
}
