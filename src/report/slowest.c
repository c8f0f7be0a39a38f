// SPDX-License-Identifier: MIT
/*
 * The report `slowest`: the longest calls, with what they were called with. Those that are alike
 * are one row: a loop's would fill the table.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/slowest.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/xalloc.h"
#include "output/sink.h"
#include "report/reports.h"
#include "table/longest.h"

#define SLOWEST_DEFAULT 20

/* A call, and what stands for its arguments: as texts they are too much for all of them at once. */
struct slowest_row {
	const struct slow_call *of;
	uint64_t asked; /* a hash of those that are not what it gave back */
};

static const struct table_column columns[] = {
	{ "Count", TABLE_NUMBER },  { "Duration", TABLE_DURATION }, { "Begin", TABLE_TIME },
	{ "PID", TABLE_NUMBER },    { "TID", TABLE_NUMBER },        { "Process", TABLE_TEXT },
	{ "Function", TABLE_TEXT }, { "Details", TABLE_WORDS },
};

static bool alike(const void *left, const void *right)
{
	const struct slowest_row *a = left, *b = right;

	return a->of->process == b->of->process && a->of->tid == b->of->tid &&
	       a->of->call.function == b->of->call.function &&
	       a->of->call.result == b->of->call.result && a->asked == b->asked;
}

static struct slowest_row *make_rows(const struct slow_call *calls, size_t n)
{
	struct slowest_row *rows = xcalloc(n + 1, sizeof(*rows));
	AT_END(buf_free) struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		const char *gives;

		buf_reset(&text);
		describe_call(&calls[i].call, &text);
		gives = text.len ? strstr(text.data, "-> ") : NULL;
		rows[i].of = &calls[i];
		rows[i].asked =
			hash_long(text.data, gives ? (size_t)(gives - text.data) : text.len);
	}
	return rows;
}

/* `count`: of those that are alike; 0: without that column. */
static void write_row(struct report_writer *writer, const struct slowest_row *row, uint64_t count)
{
	AT_END(buf_free) struct buf details = { 0 };
	struct table *table = writer->table;

	describe_call(&row->of->call, &details);
	if (count)
		table_u64(table, count);
	table_u64(table, call_duration_ns(&row->of->call));
	report_time(writer, row->of->call.begin_ns);
	TABLE_LAST(table, row->of->process->pid, row->of->tid, row->of->process->comm,
	           row->of->call.function->name, details.len ? details.data : "");
}

static void write_rows(struct report_writer *writer, const struct run_info *run)
{
	const struct table_options *options = table_options(writer->table);
	size_t n, n_groups, most = options->top ? options->top : SLOWEST_DEFAULT;
	const struct slow_call *calls = slowest_rows(writer->analysis, &n);
	AT_END(at_end_free) uint64_t *counts = xcalloc(n + 1, sizeof(*counts));
	AT_END(at_end_free) struct slowest_row *rows = make_rows(calls, n);
	bool single;

	n_groups = longest_group(rows, n, sizeof(*rows), alike, counts);
	n_groups = n_groups < most ? n_groups : most;
	single = options->form == TABLE_FORM_TEXT && longest_all_single(counts, n_groups);
	report_begin(writer, run, NULL, columns + single, ARRAY_SIZE(columns) - single);
	for (size_t i = 0; i < n_groups; i++)
		write_row(writer, &rows[i], single ? 0 : counts[i]);
	if (!longest_all_single(counts, n_groups))
		report_note_grouped(writer->table, "calls", n);
	table_note_if(writer->table, most > LONGEST_MOST && n == LONGEST_MOST,
	              "at most %d calls are kept", LONGEST_MOST);
}

static void write_slowest(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	uint64_t unfinished = slowest_unfinished(writer->analysis);

	write_rows(writer, run);
	table_note_if(table, unfinished, "%lu call%s never returned: how long is not known",
	              unfinished, unfinished == 1 ? "" : "s");
	report_note_durations(table, run);
}

static void init_slowest(void *self)
{
	struct report_writer *writer = self;

	writer->analysis = slowest_new(longest_looked_at(table_options(writer->table)->top));
}

const struct report_kind slowest_report = {
	.init = init_slowest,
	.parts = { { .write = write_slowest } },
};
