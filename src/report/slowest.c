// SPDX-License-Identifier: MIT
/* The report `slowest`: the longest calls, with what they were called with. */
#include "analysis/slowest.h"
#include "base/buf.h"
#include "output/sink.h"
#include "report/at_end.h"
#include "report/reports.h"

#define SLOWEST_DEFAULT 20

static const struct table_column columns[] = {
	{ "Duration", TABLE_DURATION }, { "Begin", TABLE_TIME },   { "PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER },        { "Process", TABLE_TEXT }, { "Function", TABLE_TEXT },
	{ "Details", TABLE_WORDS },
};

static void *make_slowest(const struct report_options *options)
{
	size_t top = table_options(options->table)->top;

	return slowest_new(top ? top : SLOWEST_DEFAULT);
}

static void see_slowest(void *analysis, const struct event *event)
{
	slowest_event(analysis, event);
}

static void free_slowest(void *analysis)
{
	slowest_free(analysis);
}

static int write_slowest(struct at_end *self, const struct run_info *run, struct err *err)
{
	uint64_t unfinished = slowest_unfinished(self->analysis);
	struct table *table = self->options.table;
	const struct slow_call *rows;
	struct buf details = { 0 };
	size_t n;

	at_end_begin(self, columns, sizeof(columns) / sizeof(*columns));
	rows = slowest_rows(self->analysis, &n);
	for (size_t i = 0; i < n; i++) {
		buf_reset(&details);
		buf_puts(&details, "");
		describe_call(&rows[i].call, &details);
		table_u64(table, call_duration_ns(&rows[i].call));
		at_end_time(self, run, rows[i].call.begin_ns);
		table_u64(table, rows[i].process->pid);
		table_u64(table, rows[i].tid);
		table_text(table, rows[i].process->comm);
		table_text(table, rows[i].call.function->name);
		table_text(table, details.data);
		table_end_row(table);
	}
	if (unfinished)
		table_note(table, "%llu call%s never returned: how long is not known",
		           (unsigned long long)unfinished, unfinished == 1 ? "" : "s");
	at_end_note_durations(self, run);
	buf_free(&details);
	return table_end(table, err);
}

static const struct at_end_ops ops = { make_slowest, see_slowest, write_slowest, free_slowest };

struct consumer *slowest_report_new(const struct report *report,
                                    const struct report_options *options)
{
	return at_end_new(report, options, &ops);
}
