// SPDX-License-Identifier: MIT
/* What the overview says of GPUs. */
#include "report/overview/overview.h"
#include "report/reports.h"

static void write_share(struct table *table, uint64_t part, uint64_t whole)
{
	if (whole)
		table_real(table, 100 * (double)part / (double)whole);
	else
		table_unknown(table);
}

int overview_gpus(struct overview *overview, const struct run_info *run, struct err *err)
{
	static const struct table_column columns[] = {
		{ "GPU", TABLE_NUMBER },          { "Busy", TABLE_DURATION },
		{ "Busy", TABLE_PERCENT },        { "Kernels", TABLE_NUMBER },
		{ "Copies", TABLE_NUMBER },       { "Sets", TABLE_NUMBER },
		{ "Graphs", TABLE_NUMBER },       { "NCCL", TABLE_DURATION },
		{ "NCCL Hidden", TABLE_PERCENT },
	};
	struct table *table = overview->writer.table;
	const struct gpu_line *lines;
	uint64_t short_ns = 0;
	size_t n;

	lines = gpu_tally_lines(overview->tally->gpu, &n);
	if (overview_left_out(overview, n))
		return 0;
	table_begin(table, "gpus", "GPUs", TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++) {
		table_u64(table, lines[i].device);
		table_u64(table, lines[i].busy_ns);
		write_share(table, lines[i].busy_ns, gpu_line_measured_ns(&lines[i]));
		table_u64(table, lines[i].kernels);
		table_u64(table, lines[i].copies);
		table_u64(table, lines[i].sets);
		table_u64(table, lines[i].graphs);
		table_u64(table, lines[i].communication_ns);
		write_share(table, lines[i].beside_ns, lines[i].communication_ns);
		short_ns += lines[i].short_ns;
		table_end_row(table);
	}
	if (n)
		table_note(table, "Busy (%%): from its first work to its last, where it was "
		                  "measured");
	report_note_busy_short(table, short_ns);
	return table_end(table, err);
}

int overview_gpu_kernels(struct overview *overview, const struct run_info *run, struct err *err)
{
	static const struct table_column columns[] = {
		{ "GPU Time", TABLE_DURATION },
		{ "Runs", TABLE_NUMBER },
		{ "Kernel", TABLE_TEXT },
	};
	struct table *table = overview->writer.table;
	const struct gpu_kernel *rows;
	size_t n;

	rows = gpu_use_kernels(overview->tally->gpu->use, &n);
	if (overview_left_out(overview, n))
		return 0;
	table_begin(table, "gpu_kernels", "Kernels by time on the GPU", TABLE_COLUMNS(columns));
	table_fit(table, OVERVIEW_NAMES_WIDTH);
	for (size_t i = 0; i < FIRST_ROWS(n); i++) {
		table_u64(table, rows[i].ns);
		table_u64(table, rows[i].count);
		table_text(table, rows[i].name);
		table_end_row(table);
	}
	overview_note_more(table, n, "cuda_gpu_kern_sum");
	return table_end(table, err);
}

static void gpu_copies_row(struct table *table, const char *name, const struct gpu_copies *copies)
{
	if (!copies->count)
		return;
	table_text(table, name);
	table_u64(table, copies->count);
	table_u64(table, copies->bytes);
	table_u64(table, copies->ns);
	if (copies->ns)
		table_real(table, gpu_copies_rate(copies) * 1e9);
	else
		table_unknown(table);
	table_end_row(table);
}

int overview_gpu_copies(struct overview *overview, const struct run_info *run, struct err *err)
{
	static const struct table_column columns[] = {
		{ "Direction", TABLE_TEXT },  { "Copies", TABLE_NUMBER },
		{ "Bytes", TABLE_BYTES },     { "GPU Time", TABLE_DURATION },
		{ "Throughput", TABLE_RATE },
	};
	const struct gpu_tally *gpu = overview->tally->gpu;
	struct table *table = overview->writer.table;
	uint64_t any = gpu->sets.count;

	for (int d = 0; d < DIRECTION_COUNT; d++)
		any += gpu->copies[d].count;
	if (overview_left_out(overview, any))
		return 0;
	table_begin(table, "gpu_transfers", "Transfers on the GPU", TABLE_COLUMNS(columns));
	table_whole(table);
	for (int d = DIRECTION_NONE + 1; d < DIRECTION_COUNT; d++)
		gpu_copies_row(table, api_direction_name(d), &gpu->copies[d]);
	gpu_copies_row(table, "unknown", &gpu->copies[DIRECTION_NONE]);
	gpu_copies_row(table, "set", &gpu->sets);
	return table_end(table, err);
}
