// SPDX-License-Identifier: MIT
/*
 * What the summary says of GPUs, where their times were recorded:
 *
 * GPU
 *   GPU    BUSY      %  KERNELS  COPIES  SETS  GRAPHS  NCCL      HIDDEN
 *     0  8.2 ms  10.2%        4       0     0       2  2.000 ms  41.3%
 *   work waited 501.25 us for the GPU (median; 99 %: 1.388 ms)
 */
#include "analysis/calls.h"
#include "table/columns.h"
#include "analysis/tally.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"

#define TOP_DEFAULT   20
#define KERNEL_LEAST  40 /* columns of a kernel's name, however narrow the terminal */
#define KERNEL_BESIDE 42 /* the columns before it */

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static void title(const struct calls_options *options, struct buf *out, const char *text)
{
	buf_printf(out, options->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static void u64_cell(struct columns *table, uint64_t n)
{
	buf_u64(&table->cells, n);
	columns_end_cell(table);
}

static void duration_cell(struct columns *table, uint64_t ns)
{
	buf_duration(&table->cells, ns);
	columns_end_cell(table);
}

static void share_cell(struct columns *table, uint64_t part, uint64_t whole)
{
	buf_printf(&table->cells, "%.1f", share(part, whole));
	columns_end_cell(table);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_lines(struct gpu_tally *gpu, const struct calls_options *options, struct buf *out)
{
	bool communication = false;
	const struct gpu_line *lines;
	struct columns table;
	size_t n;

	lines = gpu_tally_lines(gpu, &n);
	for (size_t i = 0; i < n; i++)
		communication |= lines[i].communication_ns > 0;
	columns_init(&table, communication ? "rrrrrrrrr" : "rrrrrrr",
	             communication ? "GPU|BUSY|%|KERNELS|COPIES|SETS|GRAPHS|NCCL|% HIDDEN"
	                           : "GPU|BUSY|%|KERNELS|COPIES|SETS|GRAPHS");
	for (size_t i = 0; i < n; i++) {
		u64_cell(&table, lines[i].device);
		duration_cell(&table, lines[i].busy_ns);
		share_cell(&table, lines[i].busy_ns, gpu_line_measured_ns(&lines[i]));
		u64_cell(&table, lines[i].kernels);
		u64_cell(&table, lines[i].copies);
		u64_cell(&table, lines[i].sets);
		u64_cell(&table, lines[i].graphs);
		if (!communication)
			continue;
		duration_cell(&table, lines[i].communication_ns);
		share_cell(&table, lines[i].beside_ns, lines[i].communication_ns);
	}
	table.screen = options->width;
	columns_print(&table, out);
	buf_puts(out, "  (%: from its first work to its last, where it was measured)\n");
	if (communication)
		buf_puts(out, "  (% HIDDEN: of the time of NCCL's kernels, in which others ran "
		              "beside them)\n");
}

static void print_queue(const struct gpu_tally *gpu, struct buf *out)
{
	const struct sketch *queue = &gpu->queue;

	if (!queue->count)
		return;
	buf_puts(out, "  from a call's end to the begin of its work: ");
	buf_duration(out, sketch_percentile(queue, 0.5));
	buf_puts(out, " in the median, ");
	buf_duration(out, sketch_percentile(queue, 0.99));
	buf_printf(out, " at 99 %%, of %llu calls", (unsigned long long)queue->count);
	if (gpu->not_queued)
		buf_printf(out, " (%llu more did not wait)", (unsigned long long)gpu->not_queued);
	buf_putc(out, '\n');
}

static void print_kernels(struct gpu_tally *gpu, const struct calls_options *options,
                          struct buf *out)
{
	size_t n, top = options->top ? options->top : TOP_DEFAULT, width = (size_t)-1;
	const struct gpu_kernel *rows;
	struct columns table;
	uint64_t sum = 0;

	rows = gpu_use_kernels(gpu->use, &n);
	if (!n)
		return;
	if (options->width)
		width = options->width > KERNEL_LEAST + KERNEL_BESIDE
		                ? options->width - KERNEL_BESIDE
		                : KERNEL_LEAST;
	for (size_t i = 0; i < n; i++)
		sum += rows[i].ns;
	title(options, out, "KERNELS BY TIME ON THE GPU");
	columns_init(&table, "rrrrl", "TIME|%|RUNS|AVERAGE|KERNEL");
	for (size_t i = 0; i < n && i < top; i++) {
		struct buf safe = { 0 };

		duration_cell(&table, rows[i].ns);
		share_cell(&table, rows[i].ns, sum);
		u64_cell(&table, rows[i].count);
		duration_cell(&table, rows[i].ns / rows[i].count);
		buf_puts(&safe, "");
		text_add_safe(&safe, rows[i].name);
		text_add_name(&table.cells, safe.data, width);
		columns_end_cell(&table);
		buf_free(&safe);
	}
	table.screen = options->width;
	columns_print(&table, out);
}

static void copies_row(struct columns *table, const char *name, const struct gpu_copies *copies)
{
	if (!copies->count)
		return;
	columns_text(table, name);
	u64_cell(table, copies->count);
	buf_bytes(&table->cells, copies->bytes);
	columns_end_cell(table);
	duration_cell(table, copies->ns);
	buf_printf(&table->cells, "%.1f", gpu_copies_rate(copies));
	columns_end_cell(table);
}

static void print_copies(const struct gpu_tally *gpu, const struct calls_options *options,
                         struct buf *out)
{
	struct columns table;
	uint64_t any = gpu->sets.count;

	for (int d = 0; d < DIRECTION_COUNT; d++)
		any += gpu->copies[d].count;
	if (!any)
		return;
	title(options, out, "COPIES ON THE GPU");
	columns_init(&table, "lrrrr", "DIRECTION|COUNT|BYTES|TIME|GB/S");
	for (int d = DIRECTION_NONE + 1; d < DIRECTION_COUNT; d++)
		copies_row(&table, api_direction_name(d), &gpu->copies[d]);
	copies_row(&table, "unknown", &gpu->copies[DIRECTION_NONE]);
	copies_row(&table, "set", &gpu->sets);
	table.screen = options->width;
	columns_print(&table, out);
}

void summary_gpu_text(const struct tally *tally, const struct run_info *run,
                      const struct calls_options *options, struct buf *out)
{
	struct gpu_tally *gpu = tally->gpu;

	if (!gpu_tally_any(gpu)) {
		if (run->gpu_times)
			buf_puts(out, "\nNothing ran on a GPU while GPU times were recorded.\n");
		return;
	}
	title(options, out, "GPU");
	print_lines(gpu, options, out);
	print_queue(gpu, out);
	if (run->gpu_clock_error_ns) {
		buf_puts(out, "  times of the GPU are within ");
		buf_duration(out, run->gpu_clock_error_ns);
		buf_puts(out, " of those of calls\n");
	}
	print_kernels(gpu, options, out);
	print_copies(gpu, options, out);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_devices(struct json *json, struct gpu_tally *gpu)
{
	const struct gpu_line *lines;
	size_t n;

	lines = gpu_tally_lines(gpu, &n);
	json_open(json, "devices", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(json, NULL, '{');
		json_u64(json, "device", lines[i].device);
		json_u64(json, "busy_ns", lines[i].busy_ns);
		json_fixed(json, "busy_percent",
		           number_rounded(share(lines[i].busy_ns, gpu_line_measured_ns(&lines[i])) *
		                          1000),
		           3);
		json_u64(json, "kernels", lines[i].kernels);
		json_u64(json, "copies", lines[i].copies);
		json_u64(json, "sets", lines[i].sets);
		json_u64(json, "graphs", lines[i].graphs);
		json_u64(json, "communication_ns", lines[i].communication_ns);
		json_u64(json, "communication_beside_compute_ns", lines[i].beside_ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_queue(struct json *json, const struct gpu_tally *gpu)
{
	const struct sketch *queue = &gpu->queue;

	json_open(json, "queue", '{');
	json_u64(json, "count", queue->count);
	json_u64(json, "not_queued", gpu->not_queued);
	json_u64(json, "unmatched", gpu->unmatched);
	json_u64(json, "p50_ns", sketch_percentile(queue, 0.5));
	json_u64(json, "p99_ns", sketch_percentile(queue, 0.99));
	json_u64(json, "max_ns", queue->max);
	json_close(json, '}');
}

static void json_kernels(struct json *json, struct gpu_tally *gpu)
{
	const struct gpu_kernel *rows;
	size_t n;

	rows = gpu_use_kernels(gpu->use, &n);
	json_open(json, "kernels", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(json, NULL, '{');
		json_string(json, "name", rows[i].name);
		json_u64(json, "runs", rows[i].count);
		json_u64(json, "total_ns", rows[i].ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_copies(struct json *json, const char *key, const struct gpu_copies *copies)
{
	if (!copies->count)
		return;
	json_open(json, key, '{');
	json_u64(json, "count", copies->count);
	json_u64(json, "bytes", copies->bytes);
	json_u64(json, "total_ns", copies->ns);
	json_close(json, '}');
}

void summary_gpu_json(const struct tally *tally, const struct run_info *run, struct json *json)
{
	struct gpu_tally *gpu = tally->gpu;

	if (!gpu_tally_any(gpu)) {
		json_null(json, "gpu");
		return;
	}
	json_open(json, "gpu", '{');
	json_u64(json, "clock_error_ns", run->gpu_clock_error_ns);
	json_devices(json, gpu);
	json_queue(json, gpu);
	json_kernels(json, gpu);
	json_open(json, "copies", '{');
	for (int d = DIRECTION_NONE; d < DIRECTION_COUNT; d++)
		json_copies(json, d == DIRECTION_NONE ? "unknown" : api_direction_name(d),
		            &gpu->copies[d]);
	json_copies(json, "set", &gpu->sets);
	json_close(json, '}');
	json_close(json, '}');
}
