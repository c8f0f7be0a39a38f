// SPDX-License-Identifier: MIT
/* The report `streams`: what was put on each stream, and how long somebody waited for it. */
#include "analysis/streams.h"
#include "report/at_end.h"
#include "report/reports.h"

AT_END_WORK(streams)

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER },    { "Launches", TABLE_NUMBER },    { "Graphs", TABLE_NUMBER },
	{ "Copies", TABLE_NUMBER }, { "Copied", TABLE_BYTES },       { "Sets", TABLE_NUMBER },
	{ "Syncs", TABLE_NUMBER },  { "Sync Time", TABLE_DURATION }, { "GPU Busy", TABLE_DURATION },
	{ "First", TABLE_TIME },    { "Last", TABLE_TIME },          { "Stream", TABLE_TEXT },
};

static void write_row(struct at_end *self, const struct run_info *run, const struct stream_row *row,
                      bool gpu_times)
{
	struct table *table = self->options.table;
	struct buf name = { 0 };

	table_u64(table, row->process->pid);
	table_u64(table, row->launches);
	table_u64(table, row->graph_launches);
	table_u64(table, row->copies.count);
	table_u64(table, row->copies.bytes);
	table_u64(table, row->sets.count);
	table_u64(table, row->syncs);
	if (run->returns)
		table_u64(table, row->sync_ns);
	else
		table_unknown(table);
	if (gpu_times)
		table_u64(table, row->busy_ns);
	else
		table_unknown(table);
	at_end_time(self, run, row->first_ns);
	at_end_time(self, run, row->last_ns);
	stream_name(row, &name);
	table_text(table, name.data);
	table_end_row(table);
	buf_free(&name);
}

static int write_streams(struct at_end *self, const struct run_info *run, struct err *err)
{
	const struct stream_row *rows;
	bool gpu_times = false;
	size_t n;

	rows = streams_rows(self->analysis, &n);
	for (size_t i = 0; i < n; i++)
		gpu_times |= rows[i].activities > 0;
	at_end_begin(self, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++)
		write_row(self, run, &rows[i], gpu_times);
	if (n)
		table_note(self->options.table,
		           "Sync Time: in calls that wait for this stream or an event on it; "
		           "cudaDeviceSynchronize waits for all and is in none");
	if (n && !gpu_times)
		table_note(self->options.table, "GPU Busy: %s",
		           self->options.part
		                   ? "there are no GPU times in this part of the trace"
		                   : "GPU times were not recorded (cuscope record --gpu does)");
	report_note_unjoined(&self->options);
	at_end_note_counts(self, run);
	return table_end(self->options.table, err);
}

static const struct at_end_ops ops = { make_streams, see_streams, write_streams, free_streams };

struct consumer *streams_report_new(const struct report *report,
                                    const struct report_options *options)
{
	return at_end_new(report, options, &ops);
}
