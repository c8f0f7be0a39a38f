// SPDX-License-Identifier: MIT
/* The report `processes`: what each process did. */
#include "analysis/processes.h"
#include "report/at_end.h"
#include "report/reports.h"

AT_END_ANALYSIS(processes)

#define AT(member) TABLE_AT(struct process_row, member)

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct process_row, process, pid) },
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
	{ "Name", TABLE_TEXT, TABLE_VIA(struct process_row, process, comm) },
};

static int write_processes(struct at_end *self, const struct run_info *run, struct err *err)
{
	const struct process_row *rows;
	bool running = false;
	size_t n;

	rows = processes_rows(self->analysis, &n);
	at_end_begin(self, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++) {
		table_fields(self->options.table, &rows[i]);
		if (rows[i].ended)
			at_end_time(self, run, rows[i].end_ns);
		else
			table_unknown(self->options.table);
		table_row(self->options.table, &rows[i]);
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

const struct at_end_ops processes_report = { make_processes, see_processes, write_processes,
	                                     free_processes };
