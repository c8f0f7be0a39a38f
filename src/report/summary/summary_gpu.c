// SPDX-License-Identifier: MIT
/*
 * What the summary says of GPUs, where their times were recorded:
 *
 * GPU
 *   GPU    BUSY      %  KERNELS  COPIES  SETS  GRAPHS  NCCL      HIDDEN
 *     0  8.2 ms  10.2%        4       0     0       2  2.000 ms  41.3%
 *   work waited 501.25 us for the GPU (median; 99 %: 1.388 ms)
 */
#include "report/report.h"
#include "report/summary/summary_page.h"

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* ---- devices ------------------------------------------------------------------------------- */

struct device_line {
	struct gpu_line of;
	double busy_percent, hidden_percent;
};

#define DEVICE(member) TABLE_AT(struct device_line, member)

static const struct table_column device_columns[] = {
	{ "GPU", TABLE_NUMBER, DEVICE(of.device), "device" },
	{ "BUSY", TABLE_DURATION, DEVICE(of.busy_ns), "busy_ns" },
	{ "%", TABLE_PERCENT, DEVICE(busy_percent), "busy_percent", .decimals = 3 },
	{ "KERNELS", TABLE_NUMBER, DEVICE(of.ran[ACTIVITY_KERNEL]), "kernels" },
	{ "COPIES", TABLE_NUMBER, DEVICE(of.ran[ACTIVITY_COPY]), "copies" },
	{ "SETS", TABLE_NUMBER, DEVICE(of.ran[ACTIVITY_SET]), "sets" },
	{ "GRAPHS", TABLE_NUMBER, DEVICE(of.ran[ACTIVITY_GRAPH_RUN]), "graphs" },
	{ "NCCL", TABLE_DURATION, DEVICE(of.communication_ns), "communication_ns",
	  .needs = SUMMARY_NCCL },
	{ TABLE_JSON(DEVICE(of.beside_ns), "communication_beside_compute_ns") },
	{ "% HIDDEN", TABLE_PERCENT, DEVICE(hidden_percent), .needs = SUMMARY_NCCL },
};

bool summary_has_nccl(const struct tally *tally)
{
	bool any = false;
	size_t n;
	const struct gpu_line *lines = gpu_tally_lines(tally->gpu, &n);

	for (size_t i = 0; i < n; i++)
		any |= lines[i].communication_ns > 0;
	return any;
}

/* From a call's end to the begin of its work. */
struct summary_gpu_queue {
	uint64_t count, not_queued, unmatched, p50_ns, p99_ns, max_ns;
};

#define QUEUE(member) TABLE_AT(struct summary_gpu_queue, member)

static const struct table_column queue_members[] = {
	{ TABLE_JSON(QUEUE(count), "queue.count") },
	{ TABLE_JSON(QUEUE(not_queued), "queue.not_queued") },
	{ TABLE_JSON(QUEUE(unmatched), "queue.unmatched") },
	{ TABLE_JSON(QUEUE(p50_ns), "queue.p50_ns") },
	{ TABLE_JSON(QUEUE(p99_ns), "queue.p99_ns") },
	{ TABLE_JSON(QUEUE(max_ns), "queue.max_ns") },
};

static void note_queue(struct table *table, const struct summary_gpu_queue *queue)
{
	AT_END(buf_free) struct buf note = { 0 };

	if (!queue->count)
		return;
	buf_printf(&note,
	           "from a call's end to the begin of its work: %s in the median, %s at 99 %%, of "
	           "%lu calls",
	           TEXT_DURATION(queue->p50_ns), TEXT_DURATION(queue->p99_ns), queue->count);
	if (queue->not_queued)
		buf_printf(&note, " (%lu more did not wait)", queue->not_queued);
	table_note(table, "%s", note.data);
}

static void note_clock(struct table *table, const struct run_info *run)
{
	table_note_if(table, run->gpu_clock_error_ns,
	              "times of the GPU are within %s of those of calls",
	              TEXT_DURATION(run->gpu_clock_error_ns));
}

static void add_devices(const struct summary_page *p)
{
	struct gpu_tally *gpu = p->tally->gpu;
	const struct summary_gpu_queue queue = {
		.count = gpu->queue.count,
		.not_queued = gpu->not_queued,
		.unmatched = gpu->unmatched,
		.p50_ns = sketch_percentile(&gpu->queue, 0.5),
		.p99_ns = sketch_percentile(&gpu->queue, 0.99),
		.max_ns = gpu->queue.max,
	};
	uint64_t short_ns = 0;
	size_t n;
	const struct gpu_line *lines = gpu_tally_lines(gpu, &n);

	table_begin(p->table, "devices", "GPU", TABLE_COLUMNS(device_columns));
	table_whole(p->table);
	for (size_t i = 0; i < n; i++) {
		struct device_line line = { .of = lines[i] };

		line.busy_percent = share(line.of.busy_ns, gpu_line_measured_ns(&line.of));
		line.hidden_percent = share(line.of.beside_ns, line.of.communication_ns);
		table_row(p->table, &line);
		short_ns += line.of.short_ns;
	}
	report_note_busy_short(p->table, short_ns);
	table_note(p->table, "(%%: from its first work to its last, where it was measured)");
	table_note_if(
		p->table, table_options(p->table)->has & SUMMARY_NCCL,
		"(%% HIDDEN: of the time of NCCL's kernels, in which others ran beside them)");
	note_queue(p->table, &queue);
	note_clock(p->table, p->run);
	table_end(p->table, NULL);
	table_members(p->table, TABLE_COLUMNS(queue_members), &queue);
}

/* ---- kernels and copies -------------------------------------------------------------------- */

struct kernel_line {
	const char *name;
	uint64_t ns, runs, average_ns;
	double percent;
};

#define KERNEL(member) TABLE_AT(struct kernel_line, member)

static const struct table_column kernel_columns[] = {
	{ TABLE_JSON(KERNEL(name), "name") },
	{ TABLE_JSON(KERNEL(runs), "runs") },
	{ "TIME", TABLE_DURATION, KERNEL(ns), "total_ns" },
	{ "%", TABLE_PERCENT, KERNEL(percent) },
	{ "RUNS", TABLE_NUMBER, KERNEL(runs) },
	{ "AVERAGE", TABLE_DURATION, KERNEL(average_ns) },
	{ "KERNEL", TABLE_TEXT, KERNEL(name) },
};

static void add_kernels(const struct summary_page *p)
{
	uint64_t sum = 0;
	size_t n;
	const struct gpu_kernel *rows = gpu_tally_kernels(p->tally->gpu, &n);

	for (size_t i = 0; i < n; i++)
		sum += rows[i].ns;
	table_begin(p->table, "kernels", "KERNELS BY TIME ON THE GPU",
	            TABLE_COLUMNS(kernel_columns));
	for (size_t i = 0; i < n; i++) {
		const struct kernel_line line = {
			.name = rows[i].name,
			.ns = rows[i].ns,
			.runs = rows[i].count,
			.average_ns = rows[i].ns / rows[i].count,
			.percent = share(rows[i].ns, sum),
		};

		table_row(p->table, &line);
	}
	table_end(p->table, NULL);
}

struct copies_line {
	const char *direction;
	struct gpu_copies of;
	double rate;
};

#define COPIES(member) TABLE_AT(struct copies_line, member)

static const struct table_column copies_columns[] = {
	{ "DIRECTION", TABLE_TEXT, COPIES(direction), "", TABLE_MEMBER },
	{ "COUNT", TABLE_NUMBER, COPIES(of.count), "count" },
	{ "BYTES", TABLE_BYTES, COPIES(of.bytes), "bytes" },
	{ "TIME", TABLE_DURATION, COPIES(of.ns), "total_ns" },
	{ "GB/S", TABLE_REAL, COPIES(rate), .decimals = 1 },
};

static void add_copies_row(struct table *table, const char *direction,
                           const struct gpu_copies *copies)
{
	const struct copies_line line = { direction, *copies, gpu_copies_rate(copies) };

	if (copies->count)
		table_row(table, &line);
}

static void add_copies(const struct summary_page *p)
{
	const struct gpu_tally *gpu = p->tally->gpu;

	table_begin(p->table, "copies", "COPIES ON THE GPU", TABLE_COLUMNS(copies_columns));
	table_whole(p->table);
	for (int i = 0; i < DIRECTION_COUNT; i++) {
		int d = summary_direction(p, i);

		add_copies_row(p->table, d ? api_direction_name(d) : "unknown", &gpu->copies[d]);
	}
	add_copies_row(p->table, "set", &gpu->sets);
	table_end(p->table, NULL);
}

void summary_gpu(const struct summary_page *p)
{
	if (!gpu_tally_any(p->tally->gpu)) {
		if (p->json)
			json_null(p->json, "gpu");
		else if (p->run->gpu_times)
			buf_puts(p->text,
			         "\nNothing ran on a GPU while GPU times were recorded.\n");
		return;
	}
	if (p->json) {
		json_open(p->json, "gpu", '{');
		json_u64(p->json, "clock_error_ns", p->run->gpu_clock_error_ns);
	}
	add_devices(p);
	add_kernels(p);
	add_copies(p);
	if (p->json)
		json_close(p->json, '}');
}
