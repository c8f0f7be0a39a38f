// SPDX-License-Identifier: MIT
/*
 * The report `launches`: kernels by how often they were launched, and the gaps between the
 * launches of a thread, with what it did in the longest of them.
 */
#include <stdlib.h>

#include "report/launches/kernel_launches.h"
#include "report/launches/launch_gaps.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/number.h"
#include "base/xalloc.h"
#include "report/reports.h"

#define MEANWHILE_SHOWN 3 /* functions of a gap that are named */

struct launches {
	struct report_writer writer; /* first: what callers hold */
	struct stack_places *places; /* :place; else NULL */
	struct kernel_launches *kernels;
	struct launch_gaps *gaps;
};

static int see_launches(struct consumer *self, const struct event *event, struct err *err)
{
	struct launches *launches = (struct launches *)self;

	kernel_launches_event(launches->kernels, event);
	launch_gaps_event(launches->gaps, event);
	return 0;
}

static void free_launches(struct consumer *self)
{
	struct launches *launches = (struct launches *)self;

	kernel_launches_free(launches->kernels);
	launch_gaps_free(launches->gaps);
	stack_places_free(launches->places);
	free(launches);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static const struct table_column kernel_columns[] = {
	{ "PID", TABLE_NUMBER },
	{ "Launches", TABLE_NUMBER },
	{ "Captured", TABLE_NUMBER },
	{ "Per Second", TABLE_REAL },
	{ "Grid", TABLE_TRIPLE },
	{ "Block", TABLE_TRIPLE },
	{ "Of This Shape", TABLE_PERCENT },
	{ "Shapes", TABLE_NUMBER },
	{ "Kernel", TABLE_TEXT },
	{ "Place", TABLE_TEXT }, /* of :place */
};

static void write_shape(struct table *table, const struct kernel_row *row)
{
	const struct launch_shape *most = row->shapes;

	if (!row->n_shapes) {
		for (int i = 0; i < 4; i++)
			table_unknown(table);
		return;
	}
	table_triple(table, most->grid);
	table_triple(table, most->block);
	table_real(table, 100.0 * (double)most->launches / (double)row->launches);
	table_u64(table, row->n_shapes);
}

static int write_kernels(struct launches *launches, const struct run_info *run, struct err *err)
{
	struct table *table = launches->writer.table;
	const struct kernel_row *rows;
	uint64_t placeless = 0, all = 0;
	bool more_shapes = false;
	size_t n;

	report_begin(&launches->writer, run, "kernels", kernel_columns,
	             ARRAY_SIZE(kernel_columns) - !launches->places);
	rows = kernel_launches_rows(launches->kernels, &n);
	for (size_t i = 0; i < n; i++) {
		table_u64(table, rows[i].process->pid);
		table_u64(table, rows[i].launches);
		table_u64(table, rows[i].captured);
		table_real(table, rows[i].per_second);
		write_shape(table, &rows[i]);
		table_text(table, rows[i].graphs   ? "(whole graphs)"
		                  : rows[i].kernel ? rows[i].kernel->name
		                                   : "(not known)");
		if (launches->places)
			table_text(table, stack_places_label(launches->places, rows[i].place));
		table_end_row(table);
		all += rows[i].launches + rows[i].captured;
		placeless += rows[i].place ? 0 : rows[i].launches + rows[i].captured;
		more_shapes |= rows[i].other_shapes > 0;
	}
	if (n)
		table_note(table, "Per Second: of the time from the process's first call to its "
		                  "last; Grid and Block: the shape most used");
	if (launches->places)
		report_note_no_stacks(table, run, placeless, all);
	if (more_shapes)
		table_note(table, "Shapes: %d at most are told apart", SHAPES_MAX);
	report_note_estimated(launches->writer.table, run);
	return table_end(table, err);
}

/* ---- gaps ---------------------------------------------------------------------------------- */

static const struct table_column gap_columns[] = {
	{ "PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER },
	{ "Launches", TABLE_NUMBER },
	{ "In Launches", TABLE_DURATION },
	{ "Mean Gap", TABLE_DURATION },
	{ "P50", TABLE_DURATION },
	{ "P99", TABLE_DURATION },
	{ "Longest", TABLE_DURATION },
	{ "In Other Calls", TABLE_DURATION },
	{ "Not In CUDA", TABLE_DURATION },
};

static void write_gap_row(struct table *table, struct gap_row *row)
{
	table_u64(table, row->process->pid);
	if (row->tid)
		table_u64(table, row->tid);
	else
		table_unknown(table);
	table_u64(table, row->launches);
	table_u64(table, row->launch_ns);
	if (!row->gaps.count) {
		for (int i = 0; i < 6; i++)
			table_unknown(table);
		table_end_row(table);
		return;
	}
	table_u64(table, number_rounded(spread_average(&row->gaps)));
	table_u64(table, spread_percentile(&row->gaps, 0.5));
	table_u64(table, spread_percentile(&row->gaps, 0.99));
	table_u64(table, row->gaps.max);
	table_u64(table, row->cuda_ns);
	table_u64(table, row->gaps.sum > row->cuda_ns ? row->gaps.sum - row->cuda_ns : 0);
	table_end_row(table);
}

static int write_gaps(struct launches *launches, const struct run_info *run, struct err *err)
{
	struct table *table = launches->writer.table;
	struct gap_row *const *rows;
	bool exact = true;
	size_t n;

	table_begin(table, "gaps", "Gaps between the launches of a thread",
	            TABLE_COLUMNS(gap_columns));
	rows = launch_gaps_rows(launches->gaps, &n);
	for (size_t i = 0; i < n; i++) {
		write_gap_row(table, rows[i]);
		exact &= spread_is_exact(&rows[i]->gaps);
	}
	if (n)
		table_note(table, "a gap: from a launch's return to the next launch; In Other "
		                  "Calls, Not In CUDA: sums over all gaps");
	if (!exact)
		table_note(table, "P50 and P99 of more than %d gaps are within %.1f %%",
		           SPREAD_EXACT, 100 * SKETCH_ERROR);
	if (n && !run->returns)
		table_note(table, "recorded without returns: a gap begins when a launch does");
	return table_end(table, err);
}

static const struct table_column long_columns[] = {
	{ "Begin", TABLE_TIME }, { "Gap", TABLE_DURATION },         { "PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER }, { "Not In CUDA", TABLE_DURATION }, { "Meanwhile", TABLE_WORDS },
};

/* "cudaDeviceSynchronize 50.00 us, 2 cudaMemcpy 20.00 us, 3 others 1.20 us" */
static void add_meanwhile(struct buf *out, const struct gap *gap)
{
	uint64_t others = gap->other_calls, others_ns = gap->other_ns;

	for (size_t i = 0; i < gap->n_calls; i++) {
		const struct gap_call *call = &gap->call[i];

		if (i >= MEANWHILE_SHOWN) {
			others += call->calls;
			others_ns += call->ns;
			continue;
		}
		buf_puts(out, i ? ", " : "");
		if (call->calls > 1)
			buf_printf(out, "%llu ", (unsigned long long)call->calls);
		buf_puts(out, call->function->name);
		buf_putc(out, ' ');
		buf_duration(out, call->ns);
	}
	if (others) {
		buf_printf(out, ", %llu other%s ", (unsigned long long)others,
		           others == 1 ? "" : "s");
		buf_duration(out, others_ns);
	}
	if (!gap->n_calls)
		buf_puts(out, "not in CUDA");
}

static int write_longest(struct launches *launches, struct err *err)
{
	struct table *table = launches->writer.table;
	const struct gap *rows;
	struct buf text = { 0 };
	size_t n;

	table_begin(table, "longest", "Longest gaps, and what the thread did in them",
	            TABLE_COLUMNS(long_columns));
	rows = launch_gaps_longest(launches->gaps, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t length = rows[i].end_ns - rows[i].begin_ns;

		buf_reset(&text);
		add_meanwhile(&text, &rows[i]);
		report_time(&launches->writer, rows[i].begin_ns);
		table_u64(table, length);
		table_u64(table, rows[i].process->pid);
		table_u64(table, rows[i].tid);
		table_u64(table, length > rows[i].cuda_ns ? length - rows[i].cuda_ns : 0);
		table_text(table, text.data);
		table_end_row(table);
	}
	buf_free(&text);
	return table_end(table, err);
}

static int write_launches(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct launches *launches = (struct launches *)self;
	int rc = write_kernels(launches, run, err);

	if (!rc)
		rc = write_gaps(launches, run, err);
	return rc ? rc : write_longest(launches, err);
}

static const struct consumer_ops ops = { .event = see_launches,
	                                 .end = write_launches,
	                                 .free = free_launches };

struct consumer *launches_report_new(const struct report *report,
                                     const struct report_options *options)
{
	struct launches *launches = report_make(sizeof(*launches), &ops, report, options);

	launches->places = options->by_place ? stack_places_new() : NULL;
	launches->kernels = kernel_launches_new(launches->places);
	launches->gaps = launch_gaps_new();
	return &launches->writer.consumer;
}
