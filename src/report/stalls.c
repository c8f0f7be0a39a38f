// SPDX-License-Identifier: MIT
/* The report `stalls`: why kernels waited, by samples of their instructions. */
#include <math.h>
#include <stdlib.h>

#include "analysis/stalls_use.h"
#include "report/reports.h"

struct stalls_report {
	struct report_writer writer; /* first */
	struct stalls_use *use;
};

static const struct table_column reason_columns[] = {
	{ "Share", TABLE_PERCENT }, { "Of Kernel", TABLE_PERCENT }, { "Samples", TABLE_NUMBER },
	{ "Reason", TABLE_TEXT },   { "The Kernel", TABLE_WORDS },  { "Name", TABLE_TEXT },
};

static const struct table_column place_columns[] = {
	{ "Share", TABLE_PERCENT }, { "Of Kernel", TABLE_PERCENT }, { "Samples", TABLE_NUMBER },
	{ "Offset", TABLE_FIGURE }, { "Reason", TABLE_TEXT },       { "Of Place", TABLE_PERCENT },
	{ "Line", TABLE_TEXT },     { "Name", TABLE_TEXT },
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : NAN;
}

static void note_windows(struct table *table, const struct stalls_all *all)
{
	if (!all->windows) {
		table_note(table, "no stall reasons were recorded: 'cuscope record --stalls' "
		                  "samples them");
		return;
	}
	table_note(table, "%lu windows of %.1f ms in all, in which CUPTI's calls took %.1f ms",
	           all->windows, (double)all->ns / 1e6, (double)all->cost_ns / 1e6);
	table_note_if(table, all->dropped, "samples that were lost: %lu", all->dropped);
	table_note_if(table, all->foreign, "samples of kernels that CUPTI does not tell of: %lu",
	              all->foreign);
	table_note_if(table, all->left_out, "samples that there was no row for: %lu",
	              all->left_out);
}

static void write_reasons(void *self, struct table *table, const struct run_info *run)
{
	struct stalls_report *report = self;
	const struct stalls_all *all = stalls_use_all(report->use);
	size_t n;
	struct stall_row *rows = stalls_use_reasons(report->use, &n);

	for (size_t i = 0; i < n; i++)
		TABLE_LAST(table, percent(rows[i].samples, all->samples),
		           percent(rows[i].samples, rows[i].of_kernel), rows[i].samples,
		           rows[i].reason, stall_reason_words(rows[i].reason), rows[i].kernel);
	free(rows);
	note_windows(table, all);
}

static void write_place(struct table *table, const struct stall_row *row, uint64_t all)
{
	AT_END(buf_free) struct buf offset = { 0 }, line = { 0 };

	if (row->offset != STALL_ANYWHERE)
		buf_hex(&offset, row->offset);
	if (row->file)
		buf_printf(&line, "%s:%u", row->file, row->line);
	TABLE_LAST(table, percent(row->samples, all), percent(row->samples, row->of_kernel),
	           row->samples, (const char *)offset.data, row->reason,
	           percent(row->of_reason, row->samples), (const char *)line.data, row->kernel);
}

static void write_places(void *self, struct table *table, const struct run_info *run)
{
	struct stalls_report *report = self;
	const struct stalls_all *all = stalls_use_all(report->use);
	size_t n;
	struct stall_row *rows = stalls_use_places(report->use, &n);

	for (size_t i = 0; i < n; i++)
		write_place(table, &rows[i], all->samples);
	free(rows);
}

static void take_event(void *self, const struct event *event)
{
	if (event->type == EVENT_STALL)
		stalls_use_add(((struct stalls_report *)self)->use, event);
}

static void init_stalls(void *self)
{
	((struct stalls_report *)self)->use = stalls_use_new();
}

static void clear_stalls(void *self)
{
	stalls_use_free(((struct stalls_report *)self)->use);
}

const struct report_kind stalls_report = {
	.bytes = sizeof(struct stalls_report),
	.init = init_stalls,
	.event = take_event,
	.clear = clear_stalls,
	.stalls = true,
	.parts = { { "reasons", NULL, TABLE_COLUMNS(reason_columns), write_reasons },
	           { "places", "Instructions", TABLE_COLUMNS(place_columns), write_places } },
};
