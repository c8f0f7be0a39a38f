// SPDX-License-Identifier: MIT
/* The tables of causes: why GPUs, and why streams, were idle. */
#include "report/gaps/gaps_report.h"

struct gap_sum gaps_all_causes(const struct gap_line *line)
{
	struct gap_sum all = { 0 };

	for (size_t i = 0; i < GAP_CAUSES; i++) {
		all.count += line->cause[i].count;
		all.ns += line->cause[i].ns;
		all.short_count += line->cause[i].short_count;
		all.short_ns += line->cause[i].short_ns;
		if (line->cause[i].longest_ns > all.longest_ns)
			all.longest_ns = line->cause[i].longest_ns;
	}
	return all;
}

static uint64_t time_of(const struct gap_sum *sum)
{
	return sum->ns + sum->short_ns;
}

/* Those that were there, most time first. */
static size_t order_causes(const struct gap_line *line, enum gap_cause order[GAP_CAUSES])
{
	size_t n = 0;

	for (size_t i = 0; i < GAP_CAUSES; i++) {
		const struct gap_sum *sum = &line->cause[i];
		size_t at = n;

		if (!sum->count && !sum->short_count)
			continue;
		for (; at && time_of(&line->cause[order[at - 1]]) < time_of(sum); at--)
			order[at] = order[at - 1];
		order[at] = (enum gap_cause)i;
		n++;
	}
	return n;
}

static void write_sum(struct table *table, const struct gap_sum *sum, uint64_t span_ns)
{
	table_u64(table, sum->count);
	table_u64(table, sum->ns);
	table_u64(table, sum->longest_ns);
	table_u64(table, sum->short_count);
	table_u64(table, sum->short_ns);
	table_real(table, gaps_percent(time_of(sum), span_ns));
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "GPU", TABLE_NUMBER },          { "Cause", TABLE_TEXT },
	{ "Gaps", TABLE_NUMBER },         { "In Gaps", TABLE_DURATION },
	{ "Longest", TABLE_DURATION },    { "Shorter", TABLE_NUMBER },
	{ "In Shorter", TABLE_DURATION }, { "Share", TABLE_PERCENT },
	{ "Not In CUDA", TABLE_PERCENT }, { "Most In", TABLE_TEXT },
	{ "Meaning", TABLE_WORDS },
};

static void write_causes_of_gpu(struct table *table, const struct gap_line *gpu)
{
	enum gap_cause order[GAP_CAUSES];
	size_t n = order_causes(gpu, order);

	for (size_t i = 0; i < n; i++) {
		const struct gap_sum *sum = &gpu->cause[order[i]];

		table_u64(table, gpu->device);
		table_text(table, gap_cause_name(order[i]));
		write_sum(table, sum, gap_line_span_ns(gpu));
		if (sum->host_ns)
			table_real(table, gaps_percent(sum->host_ns - sum->cuda_ns, sum->host_ns));
		else
			table_unknown(table);
		table_text(table, sum->most ? sum->most->name : NULL);
		table_text(table, gap_cause_text(order[i]));
		table_end_row(table);
	}
}

int gaps_write_causes(struct report_writer *writer, struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *gpus;
	bool apart = false;
	size_t n;

	gpus = gaps_devices(writer->analysis, &n);
	table_begin(table, "causes", "Why they were idle", TABLE_COLUMNS(columns));
	table_whole(table);
	for (size_t i = 0; i < n; i++)
		write_causes_of_gpu(table, gpus[i]);
	for (size_t i = 0; i < n; i++)
		apart |= gpus[i]->n_apart > 0;
	if (apart)
		table_note(table, "gaps that are apart count here like all others");
	if (n)
		table_note(table, "Share: of busy and idle time together; Not In CUDA: how much of "
		                  "the gap the thread that asked next spent outside of CUDA");
	return table_end(table, err);
}

/* ---- streams ------------------------------------------------------------------------------- */

static const struct table_column stream_columns[] = {
	{ "GPU", TABLE_NUMBER },          { "PID", TABLE_NUMBER },
	{ "Ctx", TABLE_NUMBER },          { "Strm", TABLE_NUMBER },
	{ "Gaps", TABLE_NUMBER },         { "In Gaps", TABLE_DURATION },
	{ "Longest", TABLE_DURATION },    { "Shorter", TABLE_NUMBER },
	{ "In Shorter", TABLE_DURATION }, { "Share", TABLE_PERCENT },
	{ "Cause", TABLE_TEXT },
};

static void write_causes_of_stream(struct table *table, const struct gap_line *stream)
{
	enum gap_cause order[GAP_CAUSES];
	size_t n = order_causes(stream, order);

	for (size_t i = 0; i < n; i++) {
		table_u64(table, stream->device);
		table_u64(table, stream->process->pid);
		table_u64(table, stream->context);
		table_u64(table, stream->stream);
		write_sum(table, &stream->cause[order[i]], gap_line_span_ns(stream));
		table_text(table, gap_cause_name(order[i]));
		table_end_row(table);
	}
}

int gaps_write_causes_of_streams(struct report_writer *writer, struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *rows;
	size_t n;

	rows = gaps_streams(writer->analysis, &n);
	table_begin(table, "stream_causes", "Why streams were idle", TABLE_COLUMNS(stream_columns));
	for (size_t i = 0; i < n; i++)
		write_causes_of_stream(table, rows[i]);
	return table_end(table, err);
}
