// SPDX-License-Identifier: MIT
/*
 * Calls by function: one table with the places by time where all fit, else the first by count, by
 * total and by average time.
 */
#include <stdlib.h>

#include "analysis/missed.h"
#include "base/number.h"
#include "base/text.h"
#include "report/summary/summary_page.h"

#define NARROW_FUNCTION 22 /* columns of a function's name on a terminal without room */

#define AT(member) TABLE_AT(struct function_tally, member)

/* Of durations: not known of functions none of whose calls has an end. */
static const struct table_column columns[] = {
	{ "FUNCTION", TABLE_TEXT },
	{ TABLE_JSON(TABLE_VIA(struct function_tally, function, name), "name") },
	{ .key = "layer" },
	{ .key = "class" },
	{ "CALLS", TABLE_FIGURE },
	{ TABLE_JSON(AT(calls), "calls"), TABLE_SCALED },
	{ "NESTED", TABLE_NUMBER, AT(nested), "nested", TABLE_SCALED, .needs = SUMMARY_NESTED },
	{ TABLE_JSON(AT(failed), "failed"), TABLE_SCALED },
	{ TABLE_JSON(AT(unfinished), "unfinished"), TABLE_SCALED },
	{ .key = "partial" },
	{ .type = TABLE_NUMBER, .key = "counted", .flags = TABLE_ABSENT },
	{ "TOTAL", TABLE_DURATION, .key = "total_ns", .flags = TABLE_SCALED | TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS },
	{ "#", TABLE_NUMBER, .needs = SUMMARY_RANKS },
	{ "AVERAGE", TABLE_DURATION, .key = "average_ns", .flags = TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS },
	{ "#", TABLE_NUMBER, .needs = SUMMARY_RANKS },
	{ .key = "min_ns", .flags = TABLE_ABSENT },
	{ "P50", TABLE_DURATION, .key = "p50_ns", .flags = TABLE_ABSENT, .needs = SUMMARY_WIDE },
	{ "P95", TABLE_DURATION, .key = "p95_ns", .flags = TABLE_ABSENT, .needs = SUMMARY_P95 },
	{ "P99", TABLE_DURATION, .key = "p99_ns", .flags = TABLE_ABSENT, .needs = SUMMARY_WIDE },
	{ "MAX", TABLE_DURATION, .key = "max_ns", .flags = TABLE_ABSENT, .needs = SUMMARY_RETURNS },
};

static void duration_cells(const struct summary_page *p, struct function_tally *row)
{
	struct spread *durations = &row->durations;
	struct table *table = p->table;
	bool any = durations->count > 0;

	TABLE_CELLS(
		table, TABLE_IF(any, durations->sum), TABLE_IF(row->total_rank, row->total_rank),
		TABLE_IF(any, number_rounded(spread_average(durations))),
		TABLE_IF(row->average_rank, row->average_rank), TABLE_IF(any, durations->min),
		TABLE_IF(any, spread_percentile(durations, 0.50)),
		TABLE_IF(any, spread_percentile(durations, 0.95)),
		TABLE_IF(any, spread_percentile(durations, 0.99)), TABLE_IF(any, durations->max));
}

static bool is_wide(const struct summary_page *p)
{
	return !p->options->width || p->options->width >= SUMMARY_ROOM;
}

/* "20000+": there were more after the function was unhooked, or while its calls were counted. */
static void write_function(const struct summary_page *p, struct function_tally *row)
{
	const struct function *function = row->function;
	const struct missed_function missed = missed_of_function(p->missed, function);
	bool scalable = tally_is_scalable(row);
	AT_END(buf_free) struct buf name = { 0 }, calls = { 0 };

	text_add_cut(&name, function->name, is_wide(p) ? (size_t)-1 : NARROW_FUNCTION);
	table_as_seen(p->table, !scalable);
	summary_count(&calls, scalable ? run_scaled(p->run, row->calls) : row->calls, row->calls);
	buf_puts(&calls, missed.partly ? "+" : "");
	table_text(p->table, name.data);
	table_fields(p->table, row);
	TABLE_CELLS(p->table, api_layer_name(function->layer), api_class_name(function->cls),
	            calls.data);
	table_fields(p->table, row);
	table_bool(p->table, missed.partly);
	table_known(p->table, missed.counted > 0, missed.counted);
	duration_cells(p, row);
	table_end_row(p->table);
}

/* "TOP 20 OF 133 FUNCTIONS BY CALL COUNT" */
static void write_functions(const struct summary_page *p, enum function_order by, const char *what)
{
	char title[80];
	size_t n;
	AT_END(at_end_free) struct function_tally **rows = tally_functions(p->tally, by, &n);

	table_begin(p->table, "functions", summary_title(p, n, what, title, sizeof(title)),
	            TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n && (p->json || i < p->top); i++)
		write_function(p, rows[i]);
	table_end(p->table, NULL);
}

static void note_durations(const struct summary_page *p, bool ranks)
{
	bool wide = is_wide(p);

	if (!p->run->returns) {
		if (p->tally->calls)
			buf_puts(p->text, "  (no durations: only the calls' beginnings were "
			                  "recorded)\n");
		return;
	}
	if (!p->tally->functions)
		return;
	buf_puts(p->text, ranks ? "  (#: places by total and by average time" : "  (");
	if (ranks && wide)
		buf_puts(p->text, "; ");
	if (wide || !ranks)
		buf_printf(p->text, "%s within %.1f %%", wide ? "P50, P95 and P99" : "P95",
		           SKETCH_ERROR * 100);
	buf_puts(p->text, ")\n");
}

static void rank_functions(const struct tally *tally)
{
	size_t n;
	struct function_tally **rows = tally_functions(tally, BY_TOTAL_TIME, &n);

	for (size_t i = 0; i < n; i++)
		rows[i]->total_rank = i + 1;
	free(rows);
	rows = tally_functions(tally, BY_AVERAGE_TIME, &n);
	for (size_t i = 0; i < n; i++)
		rows[i]->average_rank = i + 1;
	free(rows);
}

void summary_functions(const struct summary_page *p)
{
	bool ranks = table_options(p->table)->has & SUMMARY_RANKS;

	if (ranks && p->text)
		rank_functions(p->tally);
	write_functions(p, BY_CALLS, "FUNCTIONS BY CALL COUNT");
	if (p->json)
		return;
	if (p->run->returns && !ranks) {
		write_functions(p, BY_TOTAL_TIME, "FUNCTIONS BY TOTAL TIME");
		write_functions(p, BY_AVERAGE_TIME, "FUNCTIONS BY AVERAGE TIME PER CALL");
	}
	note_durations(p, ranks);
}
