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

/* A function as it is shown. */
struct line {
	struct buf shown, marked; /* the name as it fits; calls, "20000+" */
	const char *name, *layer, *class;
	uint64_t calls, nested, failed, unfinished;
	bool partial;
	uint64_t total_ns, average_ns, min_ns, p50_ns, p95_ns, p99_ns, max_ns;
	uint64_t total_rank, average_rank;
};

/* Of durations: not known of functions none of whose calls has an end. */
static const struct table_column columns[] = {
	{ "FUNCTION", TABLE_TEXT, TABLE_AT(struct line, shown) },
	{ TABLE_JSON(TABLE_AT(struct line, name), "name") },
	{ TABLE_JSON(TABLE_AT(struct line, layer), "layer") },
	{ TABLE_JSON(TABLE_AT(struct line, class), "class") },
	{ "CALLS", TABLE_FIGURE, TABLE_AT(struct line, marked) },
	{ TABLE_JSON(TABLE_AT(struct line, calls), "calls"), TABLE_SCALED },
	{ "NESTED", TABLE_NUMBER, TABLE_AT(struct line, nested), "nested", TABLE_SCALED,
	  .needs = SUMMARY_NESTED },
	{ TABLE_JSON(TABLE_AT(struct line, failed), "failed"), TABLE_SCALED },
	{ TABLE_JSON(TABLE_AT(struct line, unfinished), "unfinished"), TABLE_SCALED },
	{ TABLE_JSON(TABLE_AT(struct line, partial), "partial") },
	{ "TOTAL", TABLE_DURATION, TABLE_AT(struct line, total_ns), "total_ns",
	  TABLE_SCALED | TABLE_ABSENT, .needs = SUMMARY_RETURNS },
	{ "#", TABLE_NUMBER, TABLE_AT(struct line, total_rank), .needs = SUMMARY_RANKS },
	{ "AVERAGE", TABLE_DURATION, TABLE_AT(struct line, average_ns), "average_ns", TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS },
	{ "#", TABLE_NUMBER, TABLE_AT(struct line, average_rank), .needs = SUMMARY_RANKS },
	{ TABLE_JSON(TABLE_AT(struct line, min_ns), "min_ns"), TABLE_ABSENT },
	{ "P50", TABLE_DURATION, TABLE_AT(struct line, p50_ns), "p50_ns", TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS | SUMMARY_WIDE },
	{ "P95", TABLE_DURATION, TABLE_AT(struct line, p95_ns), "p95_ns", TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS | SUMMARY_P95 },
	{ "P99", TABLE_DURATION, TABLE_AT(struct line, p99_ns), "p99_ns", TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS | SUMMARY_WIDE },
	{ "MAX", TABLE_DURATION, TABLE_AT(struct line, max_ns), "max_ns", TABLE_ABSENT,
	  .needs = SUMMARY_RETURNS },
};

/* From 1 on; of a function that is not in this order nothing is known. */
static uint64_t rank(const struct function_tally *function, const struct function_tally **order,
                     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (order[i] == function)
			return i + 1;
	}
	return TABLE_NOT_KNOWN;
}

static void add_durations(struct line *line, const struct sketch *durations)
{
	line->total_ns = durations->sum;
	line->average_ns = number_rounded(sketch_average(durations));
	line->min_ns = durations->min;
	line->p50_ns = sketch_percentile(durations, 0.50);
	line->p95_ns = sketch_percentile(durations, 0.95);
	line->p99_ns = sketch_percentile(durations, 0.99);
	line->max_ns = durations->max;
}

static void no_durations(struct line *line)
{
	line->total_ns = line->average_ns = line->min_ns = TABLE_NOT_KNOWN;
	line->p50_ns = line->p95_ns = line->p99_ns = line->max_ns = TABLE_NOT_KNOWN;
}

/* "20000+": there were more after the function was unhooked. */
static void add_texts(const struct summary_page *p, struct line *line)
{
	bool wide = !p->options->width || p->options->width >= SUMMARY_ROOM;

	text_add_cut(&line->shown, line->name, wide ? (size_t)-1 : NARROW_FUNCTION);
	summary_count(p, &line->marked, line->calls);
	if (line->partial)
		buf_putc(&line->marked, '+');
}

/* What functions are ordered by, beside the order of the table. */
struct orders {
	const struct function_tally **total, **average;
	size_t n;
};

static void write_function(const struct summary_page *p, const struct function_tally *row,
                           const struct orders *orders)
{
	const struct function *function = row->function;
	struct line line = {
		.name = function->name,
		.layer = function->layer == LAYER_DRIVER ? "driver" : "runtime",
		.class = api_class_name(function->cls),
		.calls = row->calls,
		.nested = row->nested,
		.failed = row->failed,
		.unfinished = row->unfinished,
		.partial = missed_partly(p->run, function),
		.total_rank = rank(row, orders->total, orders->n),
		.average_rank = rank(row, orders->average, orders->n),
	};

	if (row->durations.count)
		add_durations(&line, &row->durations);
	else
		no_durations(&line);
	add_texts(p, &line);
	table_row(p->table, &line);
	buf_free(&line.shown);
	buf_free(&line.marked);
}

/* "TOP 20 OF 133 FUNCTIONS BY CALL COUNT" */
static void write_functions(const struct summary_page *p, enum function_order by, const char *what,
                            const struct orders *orders)
{
	const struct function_tally **rows;
	char title[80];
	size_t n;

	rows = tally_functions(p->tally, by, &n);
	table_begin(p->table, "functions", summary_title(p, n, what, title, sizeof(title)),
	            TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n && (p->json || i < p->top); i++)
		write_function(p, rows[i], orders);
	table_end(p->table, NULL);
	free(rows);
}

static void note_durations(const struct summary_page *p, bool ranks)
{
	bool wide = !p->options->width || p->options->width >= SUMMARY_ROOM;

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

void summary_functions(const struct summary_page *p)
{
	bool ranks = table_options(p->table)->has & SUMMARY_RANKS;
	struct orders orders = { 0 };

	if (ranks && p->text) {
		orders.total = tally_functions(p->tally, BY_TOTAL_TIME, &orders.n);
		orders.average = tally_functions(p->tally, BY_AVERAGE_TIME, &orders.n);
	}
	write_functions(p, BY_CALLS, "FUNCTIONS BY CALL COUNT", &orders);
	free(orders.total);
	free(orders.average);
	if (p->json)
		return;
	if (p->run->returns && !ranks) {
		write_functions(p, BY_TOTAL_TIME, "FUNCTIONS BY TOTAL TIME", &orders);
		write_functions(p, BY_AVERAGE_TIME, "FUNCTIONS BY AVERAGE TIME PER CALL", &orders);
	}
	note_durations(p, ranks);
}
