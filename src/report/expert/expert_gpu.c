// SPDX-License-Identifier: MIT
/*
 * Expert rules of Nsight Systems about GPUs that wait, with its names, criteria and columns:
 * gpu_gaps and gpu_time_util. The report `gaps` says why, and begins at 20 us.
 */
#include "analysis/gpu_windows.h"
#include "base/number.h"
#include "report/expert/long_gaps.h"
#include "report/at_end.h"
#include "report/reports.h"

#define ROWS_DEFAULT 50
#define LONG_GAP_NS  500000000
#define LOW_USE      0.5
/* ---- gpu_gaps ------------------------------------------------------------------------------ */

static const struct table_column gap_columns[] = {
	{ "Row#", TABLE_NUMBER }, { "Duration", TABLE_DURATION }, { "Start", TABLE_TIME },
	{ "PID", TABLE_NUMBER },  { "Device ID", TABLE_NUMBER },  { "Context ID", TABLE_NUMBER },
};

static void *make_gaps(const struct report_options *options)
{
	size_t top = table_options(options->table)->top;

	return long_gaps_new(LONG_GAP_NS, top ? top : ROWS_DEFAULT);
}

static void see_gaps(void *analysis, const struct event *event)
{
	long_gaps_event(analysis, event);
}

static void free_gaps(void *analysis)
{
	long_gaps_free(analysis);
}

static int write_gaps(struct at_end *self, const struct run_info *run, struct err *err)
{
	struct table *table = self->options.table;
	const struct long_gap *rows;
	uint64_t left_out;
	size_t n;

	at_end_begin(self, TABLE_COLUMNS(gap_columns));
	table_whole(table);
	rows = long_gaps_rows(self->analysis, &n);
	for (size_t i = 0; i < n; i++) {
		table_u64(table, i + 1);
		table_u64(table, rows[i].end_ns - rows[i].begin_ns);
		at_end_time(self, run, rows[i].begin_ns);
		table_u64(table, rows[i].process->pid);
		table_u64(table, rows[i].device);
		table_u64(table, rows[i].context);
		table_end_row(table);
	}
	left_out = long_gaps_left_out(self->analysis);
	if (left_out)
		table_note(table, "shorter ones, left out: %llu", (unsigned long long)left_out);
	if (!n && long_gaps_any_work(self->analysis))
		table_note(table, "nothing found: no gap is longer than 500 ms (the report gaps "
		                  "has shorter ones)");
	else if (!n)
		report_note_no_gpu_times(table, self->options.part, run);
	report_note_gpu_lost(table, run);
	return table_end(table, err);
}

const struct at_end_ops gpu_gaps_report = { make_gaps, see_gaps, write_gaps, free_gaps };

/* ---- gpu_time_util ------------------------------------------------------------------------- */

AT_END_ANALYSIS(gpu_windows)

static const struct table_column use_columns[] = {
	{ "Row#", TABLE_NUMBER },       { "In-Use", TABLE_PERCENT }, { "Duration", TABLE_DURATION },
	{ "Start", TABLE_TIME },        { "PID", TABLE_NUMBER },     { "Device ID", TABLE_NUMBER },
	{ "Context ID", TABLE_NUMBER },
};

/* Neighbours of low use are one row, with the mean of their use. */
static size_t write_device(struct at_end *self, const struct run_info *run,
                           const struct gpu_windows_row *row, size_t number)
{
	double window_ns = (double)(row->end_ns - row->begin_ns) / GPU_WINDOWS;
	struct table *table = self->options.table;

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
		at_end_time(self, run, row->begin_ns + number_rounded(window_ns * (double)first));
		table_u64(table, row->process->pid);
		table_u64(table, row->device);
		table_u64(table, row->context);
		table_end_row(table);
	}
	return number;
}

static int write_use(struct at_end *self, const struct run_info *run, struct err *err)
{
	struct table *table = self->options.table;
	const struct gpu_windows_row *rows;
	size_t n, number = 0;

	at_end_begin(self, TABLE_COLUMNS(use_columns));
	rows = gpu_windows_rows(self->analysis, &n);
	for (size_t i = 0; i < n; i++)
		number = write_device(self, run, &rows[i], number);
	if (!n)
		report_note_no_gpu_times(table, self->options.part, run);
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

const struct at_end_ops gpu_time_util_report = { make_gpu_windows, see_gpu_windows, write_use,
	                                         free_gpu_windows };
