// SPDX-License-Identifier: MIT
/* nvtx_sum, nvtx_pushpop_sum, nvtx_startend_sum: NVTX ranges by their names. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "analysis/missed.h"
#include "analysis/spread.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "report/nvtx/nvtx.h"
#include "report/reports.h"

const char *nvtx_style(enum range_kind kind)
{
	return kind == RANGE_PUSHPOP ? "PushPop" : kind == RANGE_STARTEND ? "StartEnd" : NULL;
}

void nvtx_add_name(struct buf *out, const struct range *range)
{
	if (range->domain && *range->domain)
		buf_printf(out, "%s:", range->domain);
	buf_puts(out, range->name);
}

void nvtx_note_none(const struct report_options *options, const struct run_info *run, bool ran)
{
	const char *where = options->part ? " in this part of the trace" : "";

	if (ran || run->gpu_times) {
		table_note(
			options->table,
			"there are no NVTX ranges%s: the program made none, or --gpu was told to "
			"leave them out",
			*where ? where : " in it");
		return;
	}
	table_note(options->table,
	           missed_gpu_times(run)
	                   ? "NVTX ranges were wanted%s, and did not come, as GPU times did not"
	                   : "NVTX ranges were not recorded%s (cuscope record --gpu does, or "
	                     "--gpu=nvtx alone)",
	           where);
	report_note_gpu_lost(options->table, run);
}

void nvtx_note_no_work(const struct report_options *options, const struct run_info *run, bool any,
                       bool ran)
{
	if (!any && !ran && !run->gpu_times)
		report_note_no_gpu_times(options->table, options->part, run);
	else if (!any)
		nvtx_note_none(options, run, ran);
	else if (!ran)
		table_note(options->table,
		           "there are NVTX ranges, but nothing that ran on a GPU was recorded "
		           "(--gpu=kernels,copies,sets,nvtx records both)");
}

void nvtx_note_others(struct table *table, uint64_t others)
{
	table_note_if(table, others, "ranges in " NVTX_NAMES_ALL ", after %d names: %lu",
	              NVTX_NAMES, others);
}

void nvtx_note_cut(struct table *table, const struct range_work *work)
{
	uint64_t cut = range_work_cut(work), late = range_work_late(work);

	table_note_if(table, cut,
	              "ranges of which not all work counts, since they were open during more than "
	              "%u pieces of it, or too many ranges were at once: %lu",
	              RANGE_WORK_PIECES, cut);
	table_note_if(table, late,
	              "pieces of work that may lack in their ranges, since more than %u ranges "
	              "ended before they came: %lu",
	              RANGE_WORK_RANGES, late);
}

/* ---- counting ------------------------------------------------------------------------------ */

struct nvtx_sum_row {
	char *key; /* a digit for the style, then the name */
	struct spread values;
	UT_hash_handle hh;
};

struct nvtx_sum {
	struct report_writer writer; /* first: what callers hold */
	struct nvtx_sum_row *rows;
	struct buf key;
	uint64_t others; /* ranges in the row of the others */
};

static struct nvtx_sum_row *row_of(struct nvtx_sum *sum, const struct range *range)
{
	struct nvtx_sum_row *row;

	buf_reset(&sum->key);
	buf_putc(&sum->key, (char)('0' + range->kind));
	nvtx_add_name(&sum->key, range);
	row = MAP_FIND_TEXT(sum->rows, sum->key.data);
	if (row)
		return row;
	if (HASH_COUNT(sum->rows) >= NVTX_NAMES) {
		sum->others++;
		buf_reset(&sum->key);
		buf_printf(&sum->key, "%c" NVTX_NAMES_ALL, '0' + (int)range->kind);
		row = MAP_FIND_TEXT(sum->rows, sum->key.data);
		if (row)
			return row;
	}
	row = xcalloc(1, sizeof(*row));
	row->key = xstrdup(sum->key.data);
	HASH_ADD_KEYPTR(hh, sum->rows, row->key, strlen(row->key), row);
	return row;
}

static void see_sum(void *self, const struct event *event)
{
	struct nvtx_sum *sum = self;

	if (event->type == EVENT_RANGE && nvtx_style(event->range->kind))
		spread_add(&row_of(sum, event->range)->values, range_duration_ns(event->range));
}

static void clear_sum(void *self)
{
	struct nvtx_sum *sum = self;
	struct nvtx_sum_row *row, *next;

	HASH_ITER (hh, sum->rows, row, next) {
		HASH_DELETE(hh, sum->rows, row);
		spread_free(&row->values);
		free(row->key);
		free(row);
	}
	buf_free(&sum->key);
}

/* ---- the table ----------------------------------------------------------------------------- */

/* Which ranges a report is of: RANGE_COUNT, all. */
static enum range_kind kind_of(const struct report *report)
{
	return strstr(report->name, "pushpop")    ? RANGE_PUSHPOP
	       : strstr(report->name, "startend") ? RANGE_STARTEND
	                                          : RANGE_COUNT;
}

static bool is_of(const struct nvtx_sum_row *row, enum range_kind kind)
{
	return kind == RANGE_COUNT || row->key[0] == '0' + (int)kind;
}

ORDER_POINTERS_BY(by_total, struct nvtx_sum_row, DOWN(values.sum), BY_TEXT(key));

static void print_row(struct table *table, struct nvtx_sum_row *row, double total, bool style)
{
	struct spread *values = &row->values;

	if (total > 0)
		table_real(table, 100 * (double)values->sum / total);
	else
		table_unknown(table);
	TABLE_CELLS(table, values->sum, values->count);
	report_spread(table, values);
	if (style)
		table_text(table, nvtx_style((enum range_kind)(row->key[0] - '0')));
	TABLE_LAST(table, row->key + 1);
}

static void write_sum(void *self, struct table *table, const struct run_info *run)
{
	static const struct table_column columns[] = {
		{ "Time", TABLE_PERCENT },     { "Total Time", TABLE_DURATION },
		{ "Instances", TABLE_NUMBER }, { "Avg", TABLE_DURATION },
		{ "Med", TABLE_DURATION },     { "Min", TABLE_DURATION },
		{ "Max", TABLE_DURATION },     { "StdDev", TABLE_DURATION },
		{ "Range", TABLE_TEXT },
	};
	struct nvtx_sum *sum = self;
	enum range_kind kind = kind_of(sum->writer.report);
	struct table_column with_style[10];
	bool style = kind == RANGE_COUNT, exact = true;
	struct nvtx_sum_row **rows = xcalloc(HASH_COUNT(sum->rows) + 1, sizeof(*rows)), *row, *next;
	double total = 0;
	size_t n = 0;

	HASH_ITER (hh, sum->rows, row, next) {
		if (!is_of(row, kind))
			continue;
		rows[n++] = row;
		total += (double)row->values.sum;
		exact = exact && spread_is_exact(&row->values);
	}
	SORT(rows, n, by_total);
	memcpy(with_style, columns, sizeof(columns));
	with_style[8] = (struct table_column){ "Style", TABLE_TEXT };
	with_style[9] = columns[8];
	report_begin(&sum->writer, run, NULL, style ? with_style : columns, style ? 10 : 9);
	for (size_t i = 0; i < n; i++)
		print_row(table, rows[i], total, style);
	free(rows);
	if (!n)
		nvtx_note_none(&sum->writer.options, run, sum->writer.ran);
	if (!exact)
		report_note_median(table);
	nvtx_note_others(table, sum->others);
}

const struct report_kind nvtx_sum_report = {
	.bytes = sizeof(struct nvtx_sum),
	.event = see_sum,
	.clear = clear_sum,
	.parts = { { .write = write_sum } },
};
