// SPDX-License-Identifier: MIT
/* The report `processes`: what each process did. */
#include "analysis/processes.h"
#include "report/at_end.h"
#include "report/reports.h"

AT_END_ANALYSIS(processes)

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER },      { "Calls", TABLE_NUMBER },  { "In CUDA", TABLE_DURATION },
	{ "Launches", TABLE_NUMBER }, { "Graphs", TABLE_NUMBER }, { "Peak", TABLE_BYTES },
	{ "Live", TABLE_BYTES },      { "Copies", TABLE_NUMBER }, { "Copied", TABLE_BYTES },
	{ "Errors", TABLE_NUMBER },   { "Begin", TABLE_TIME },    { "End", TABLE_TIME },
	{ "Name", TABLE_TEXT },
};

static void write_row(struct at_end *self, const struct run_info *run,
                      const struct process_row *row)
{
	struct table *table = self->options.table;

	table_u64(table, row->process->pid);
	table_u64(table, row->calls);
	if (run->returns)
		table_u64(table, row->call_ns);
	else
		table_unknown(table);
	table_u64(table, row->launches);
	table_u64(table, row->graph_launches);
	table_u64(table, row->peak_bytes);
	table_u64(table, row->live_bytes);
	table_u64(table, row->copies.count);
	table_u64(table, row->copies.bytes);
	table_u64(table, row->failed);
	at_end_time(self, run, row->begin_ns);
	if (row->ended)
		at_end_time(self, run, row->end_ns);
	else
		table_unknown(table);
	table_text(table, row->process->comm);
	table_end_row(table);
}

static int write_processes(struct at_end *self, const struct run_info *run, struct err *err)
{
	const struct process_row *rows;
	bool running = false;
	size_t n;

	rows = processes_rows(self->analysis, &n);
	at_end_begin(self, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++) {
		write_row(self, run, &rows[i]);
		running |= !rows[i].ended;
	}
	if (n)
		table_note(self->options.table,
		           "In CUDA: of all threads together; Peak and Live: memory of all kinds%s",
		           running ? "; End: - still ran when the trace ended" : "");
	at_end_note_durations(self, run);
	at_end_note_counts(self, run);
	return table_end(self->options.table, err);
}

static const struct at_end_ops ops = { make_processes, see_processes, write_processes,
	                               free_processes };

struct consumer *processes_report_new(const struct report *report,
                                      const struct report_options *options)
{
	return at_end_new(report, options, &ops);
}
