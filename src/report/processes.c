// SPDX-License-Identifier: MIT
/* The report `processes`: what each process did. */
#include <string.h>

#include "analysis/processes.h"
#include "base/array.h"
#include "report/reports.h"
#include "report/who_columns.h"

struct shown_row {
	struct process_row row;
	struct who_words who;
};

#define AT(member) TABLE_AT(struct shown_row, row.member)

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct shown_row, row.process, pid) },
	{ "Calls", TABLE_NUMBER, AT(calls) },
	{ "In CUDA", TABLE_DURATION, AT(call_ns), .needs = REPORT_RETURNS },
	{ "Launches", TABLE_NUMBER, AT(launches) },
	{ "Graphs", TABLE_NUMBER, AT(graph_launches) },
	{ "Peak", TABLE_BYTES, AT(peak_bytes) },
	{ "Live", TABLE_BYTES, AT(live_bytes) },
	{ "Copies", TABLE_NUMBER, AT(copies.count) },
	{ "Copied", TABLE_BYTES, AT(copies.bytes) },
	{ "Errors", TABLE_NUMBER, AT(failed) },
	{ "Begin", TABLE_TIME, AT(begin_ns) },
	{ "End", TABLE_TIME },
};

static const struct table_column name = { "Name", TABLE_TEXT,
	                                  TABLE_VIA(struct shown_row, row.process, comm) };

/* Who they are stands before their names, where it is known. */
static size_t all_columns(const struct run_info *run, struct table_column *all)
{
	size_t n = ARRAY_SIZE(columns);

	memcpy(all, columns, sizeof(columns));
	n += who_columns(run, offsetof(struct shown_row, who), false, &all[n]);
	all[n] = name;
	return n + 1;
}

static void write_processes(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	struct table_column all[ARRAY_SIZE(columns) + RUN_IDENTITY_WORDS + 1];
	size_t n_columns = all_columns(run, all);
	struct shown_row shown;
	bool running = false;
	size_t n;
	const struct process_row *rows = processes_rows(writer->analysis, &n);

	report_begin(writer, run, NULL, all, n_columns);
	for (size_t i = 0; i < n; i++) {
		shown.row = rows[i];
		who_words_of(run, rows[i].process->pid, rows[i].begin_ns, &shown.who);
		table_fields(table, &shown);
		if (rows[i].ended)
			report_time(writer, rows[i].end_ns);
		else
			table_unknown(table);
		table_row(table, &shown);
		running |= !rows[i].ended;
	}
	table_note_if(table, n,
	              "In CUDA: of all threads together; Peak and Live: memory of all kinds%s",
	              running ? "; End: - still ran when the trace ended" : "");
	report_note_durations(table, run);
	report_note_estimated(table, run);
}

const struct report_kind processes_report = {
	.analysis = processes_new,
	.parts = { { .write = write_processes } },
};
