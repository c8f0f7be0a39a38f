// SPDX-License-Identifier: MIT
/* The report `threads`: what each thread did, and how much of its time CUDA took. */
#include "report/thread_use.h"

#include <math.h>

#include "report/reports.h"

#define AT(member) TABLE_AT(struct thread_use_row, member)

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct thread_use_row, process, pid) },
	{ "TID", TABLE_NUMBER, AT(tid), .flags = TABLE_ZERO },
	{ "Calls", TABLE_NUMBER, AT(calls) },
	{ "In CUDA", TABLE_DURATION, AT(call_ns), .needs = REPORT_RETURNS },
	{ "In CUDA", TABLE_PERCENT },
	{ "Waiting", TABLE_DURATION, AT(sync_ns), .needs = REPORT_RETURNS },
	{ "Launches", TABLE_NUMBER },
	{ "Errors", TABLE_NUMBER, AT(failed) },
	{ "Longest", TABLE_DURATION },
	{ "Longest Call", TABLE_TEXT, TABLE_VIA(struct thread_use_row, longest, name) },
	{ "Name", TABLE_TEXT },
};

static double percent(const struct thread_use_row *row, bool returns)
{
	uint64_t life = row->last_ns - row->first_ns;

	return returns && life && row->tid ? 100.0 * (double)row->call_ns / (double)life : NAN;
}

static void write_row(struct table *table, const struct thread_use_row *row, bool returns)
{
	table_fields(table, row);
	table_real(table, percent(row, returns));
	table_fields(table, row);
	table_u64(table, row->launches + row->graph_launches);
	table_fields(table, row);
	table_known(table, row->longest, row->longest_ns);
	table_fields(table, row);
	table_text(table, !row->tid ? "(all others)" : row->comm[0] ? row->comm : NULL);
	table_end_row(table);
}

static int write_threads(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	const struct thread_use_row *rows;
	size_t n;

	rows = thread_use_rows(writer->analysis, &n);
	report_begin(writer, run, NULL, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++)
		write_row(writer->table, &rows[i], run->returns);
	if (n)
		table_note(writer->table,
		           "In CUDA (%%): of the time from a thread's first call to its last; "
		           "Waiting: in calls that wait for the device");
	report_note_durations(writer->table, run);
	report_note_estimated(writer->table, run);
	return table_end(writer->table, err);
}

static const struct consumer_ops ops = { .event = report_feed,
	                                 .end = write_threads,
	                                 .free = report_free };

struct consumer *threads_report_new(const struct report *report,
                                    const struct report_options *options)
{
	return report_of(thread_use_new(), &ops, report, options);
}
