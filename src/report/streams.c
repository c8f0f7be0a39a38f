// SPDX-License-Identifier: MIT
/* The report `streams`: what was put on each stream, and how long somebody waited for it. */
#include "analysis/missed.h"
#include "analysis/streams.h"
#include "report/reports.h"

#define AT(member) TABLE_AT(struct stream_row, member)

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct stream_row, process, pid) },
	{ "Launches", TABLE_NUMBER, AT(launches) },
	{ "Graphs", TABLE_NUMBER, AT(graph_launches) },
	{ "Copies", TABLE_NUMBER, AT(copies.count) },
	{ "Copied", TABLE_BYTES, AT(copies.bytes) },
	{ "Sets", TABLE_NUMBER, AT(sets.count) },
	{ "Syncs", TABLE_NUMBER, AT(syncs) },
	{ "Sync Time", TABLE_DURATION, AT(sync_ns), .needs = REPORT_RETURNS },
	{ "GPU Busy", TABLE_DURATION, AT(busy_ns), .needs = REPORT_GPU_TIMES },
	{ "First", TABLE_TIME, AT(first_ns) },
	{ "Last", TABLE_TIME, AT(last_ns) },
	{ "Stream", TABLE_TEXT },
};

static void write_row(struct table *table, const struct stream_row *row)
{
	AT_END(buf_free) struct buf name = { 0 };

	stream_name(row, &name);
	table_fields(table, row);
	TABLE_LAST(table, name.data);
}

static void write_streams(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	bool gpu_times = false;
	uint64_t short_ns = 0;
	size_t n;
	const struct stream_row *rows = streams_rows(writer->analysis, &n);

	for (size_t i = 0; i < n; i++) {
		gpu_times |= rows[i].activities > 0;
		short_ns += rows[i].short_ns;
	}
	if (gpu_times)
		table_of_run(table, REPORT_GPU_TIMES, run->begin_ns);
	report_begin(writer, run, NULL, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++)
		write_row(table, &rows[i]);
	table_note_if(table, n,
	              "Sync Time: in calls that wait for this stream or an event on it; "
	              "cudaDeviceSynchronize waits for all and is in none");
	table_note_if(table, n && !gpu_times, "GPU Busy: %s",
	              writer->options.part ? "there are no GPU times in this part of the trace"
	              : missed_gpu_times(run)
	                      ? "GPU times were wanted, and did not come"
	                      : "GPU times were not recorded (cuscope record --gpu does)");
	report_note_busy_short(table, short_ns);
	report_note_unjoined(&writer->options);
	report_note_estimated(table, run);
}

static void init_streams(void *self)
{
	struct report_writer *writer = self;

	writer->analysis = streams_new(writer->options.work);
}

const struct report_kind streams_report = {
	.init = init_streams,
	.parts = { { .write = write_streams } },
};
