// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "analysis/missed.h"
#include "base/json.h"
#include "base/number.h"
#include "live/top/top_tables.h"

#define DEEP_LINES 3 /* values down to a process's own are lines of their own */

static uint64_t hundredths(double value)
{
	return number_rounded(100 * value);
}

static void add_rate(struct json *json, const char *key, double rate)
{
	json_fixed(json, key, hundredths(rate), 2);
}

static void add_known(struct json *json, const char *key, int64_t value)
{
	if (value < 0)
		json_null(json, key);
	else
		json_s64(json, key, value);
}

/* ---- processes ----------------------------------------------------------------------------- */

static const struct number_row {
	enum live_number number;
	const char *total, *rate; /* keys */
} number_rows[] = {
	{ LIVE_CALLS, "calls", "calls_per_second" },
	{ LIVE_ERRORS, "errors", "errors_per_second" },
	{ LIVE_LAUNCHES, "launches", "launches_per_second" },
	{ LIVE_GRAPH_LAUNCHES, "graph_launches", "graph_launches_per_second" },
	{ LIVE_SET_BYTES, "set_bytes", "set_bytes_per_second" },
	{ LIVE_SYNC_NS, "sync_ns", NULL },
};

static void add_numbers(struct json *json, const struct live_process *process)
{
	for (size_t i = 0; i < sizeof(number_rows) / sizeof(*number_rows); i++) {
		const struct number_row *row = &number_rows[i];

		json_u64(json, row->total, process->numbers[row->number].total);
		if (row->rate)
			add_rate(json, row->rate, process->numbers[row->number].rate);
	}
}

static void add_memory(struct json *json, const struct live_process *process)
{
	json_open(json, "memory", '{');
	for (int kind = 0; kind < MEMORY_COUNT; kind++) {
		const struct live_memory *usage = &process->memory[kind];

		if (kind != MEMORY_NONE && !usage->peak_bytes)
			continue;
		json_open(json, kind == MEMORY_NONE ? "all" : api_memory_name(kind), '{');
		json_u64(json, "allocations", usage->count);
		json_u64(json, "bytes", usage->bytes);
		json_u64(json, "peak_bytes", usage->peak_bytes);
		json_close(json, '}');
	}
	json_close(json, '}');
}

static void add_transfers(struct json *json, const struct live_process *process)
{
	json_open(json, "transfers", '{');
	for (int d = 0; d < DIRECTION_COUNT; d++) {
		const struct live_count *copies = &process->numbers[LIVE_COPIES + d];
		const struct live_count *bytes = &process->numbers[LIVE_COPY_BYTES + d];

		if (!copies->total)
			continue;
		json_open(json, d == DIRECTION_NONE ? "unknown" : api_direction_name(d), '{');
		json_u64(json, "copies", copies->total);
		add_rate(json, "copies_per_second", copies->rate);
		json_u64(json, "bytes", bytes->total);
		add_rate(json, "bytes_per_second", bytes->rate);
		json_close(json, '}');
	}
	json_close(json, '}');
}

static void add_functions(struct json *json, const struct live_process *process)
{
	json_open(json, "functions", '[');
	for (size_t i = 0; i < process->n_functions; i++) {
		const struct live_function *function = &process->functions[i];

		json_open(json, NULL, '{');
		json_string(json, "name", function->function->name);
		json_u64(json, "calls", function->calls.total);
		add_rate(json, "calls_per_second", function->calls.rate);
		json_u64(json, "errors", function->failed);
		if (function->timed) {
			json_u64(json, "time_ns", function->time_ns);
			json_u64(json, "p50_ns", function->p50_ns);
			json_u64(json, "p99_ns", function->p99_ns);
		}
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void add_kernels(struct json *json, const struct live_process *process)
{
	json_open(json, "kernels", '[');
	for (size_t i = 0; i < process->n_kernels; i++) {
		const struct live_kernel *kernel = &process->kernels[i];

		json_open(json, NULL, '{');
		json_string(json, "name", kernel->kernel->name);
		json_bool(json, "resolved", kernel->kernel->resolved);
		json_u64(json, "launches", kernel->launches.total);
		add_rate(json, "launches_per_second", kernel->launches.rate);
		json_u64(json, "gpu_runs", kernel->gpu_runs);
		json_u64(json, "gpu_time_ns", kernel->gpu_ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void add_streams(struct json *json, const struct live_process *process)
{
	json_open(json, "streams", '[');
	for (size_t i = 0; i < process->n_streams; i++) {
		const struct live_stream *stream = &process->streams[i];
		struct buf handle = { 0 };

		buf_hex(&handle, stream->key.handle);
		json_open(json, NULL, '{');
		json_string(json, "stream", stream->others ? "others" : handle.data);
		if (stream->key.tid)
			json_u64(json, "tid", stream->key.tid);
		json_u64(json, "launches", stream->launches.total);
		add_rate(json, "launches_per_second", stream->launches.rate);
		json_u64(json, "copies", stream->copies.total);
		json_u64(json, "copy_bytes", stream->copy_bytes.total);
		add_rate(json, "copy_bytes_per_second", stream->copy_bytes.rate);
		json_close(json, '}');
		buf_free(&handle);
	}
	json_close(json, ']');
}

static void add_process(struct json *json, const struct top_page *page,
                        const struct live_process *process)
{
	int64_t gpu_bytes = GPU_UNKNOWN;

	if (page->gpus && !process->ended)
		gpu_bytes = gpus_process_bytes(page->gpus, process->process->pid);
	json_open(json, NULL, '{');
	json_u64(json, "pid", process->process->pid);
	json_string(json, "name", process->process->comm);
	json_bool(json, "ended", process->ended);
	json_bool(json, "entries_only", process->entries_only);
	json_u64(json, "threads", process->threads);
	add_numbers(json, process);
	if (process->threads && !process->entries_only)
		json_fixed(json, "sync_share", number_rounded(1e4 * process->sync_share), 4);
	else
		json_null(json, "sync_share");
	add_known(json, "gpu_memory_bytes", gpu_bytes);
	if (process->gpu_share >= 0)
		json_fixed(json, "gpu_share", number_rounded(1e4 * process->gpu_share), 4);
	else
		json_null(json, "gpu_share");
	json_u64(json, "gpu_time_ns", process->gpu_ns);
	add_memory(json, process);
	add_transfers(json, process);
	add_functions(json, process);
	add_kernels(json, process);
	add_streams(json, process);
	json_close(json, '}');
}

static void add_processes(struct json *json, const struct top_page *page)
{
	struct top_view view;
	struct top_row *rows;
	size_t n;

	top_view_init(&view);
	rows = top_rows(page, &view, &n);
	json_open(json, "processes", '[');
	for (size_t i = 0; i < n; i++)
		add_process(json, page, rows[i].process);
	json_close(json, ']');
	free(rows);
}

static void add_sum(struct json *json, const char *key, size_t processes,
                    const struct live_process *sum)
{
	json_open(json, key, '{');
	json_u64(json, "processes", processes);
	add_numbers(json, sum);
	add_memory(json, sum);
	add_transfers(json, sum);
	json_close(json, '}');
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void add_gpus(struct json *json, const struct gpus_sample *gpus)
{
	json_open(json, "gpus", '[');
	for (size_t i = 0; gpus && i < gpus->n; i++) {
		const struct gpu *gpu = &gpus->gpus[i];

		json_open(json, NULL, '{');
		json_string(json, "name", gpu->name);
		add_known(json, "busy_percent", gpu->busy_percent);
		add_known(json, "memory_used_bytes", gpu->memory_used_bytes);
		add_known(json, "memory_total_bytes", gpu->memory_total_bytes);
		add_known(json, "power_mw", gpu->power_mw);
		add_known(json, "power_limit_mw", gpu->power_limit_mw);
		add_known(json, "temperature_c", gpu->temperature_c);
		json_close(json, '}');
	}
	json_close(json, ']');
	if (gpus && gpus->why[0])
		json_string(json, "gpus_note", gpus->why);
}

void top_json(const struct top_page *page, const struct run_info *run, struct buf *out)
{
	const struct live_snapshot *snapshot = page->snapshot;
	struct json json = { .out = out, .lines = DEEP_LINES };

	json_open(&json, NULL, '{');
	json_string(&json, "target", page->target);
	json_u64(&json, "interval_ns", snapshot->interval_ns);
	json_u64(&json, "counting_ns", snapshot->time_ns - snapshot->begin_ns);
	add_gpus(&json, page->gpus);
	add_processes(&json, page);
	add_sum(&json, "gone", snapshot->n_gone, &snapshot->gone);
	add_sum(&json, "total", snapshot->n_processes + snapshot->n_gone, &snapshot->total);
	add_rate(&json, "overhead_percent", page->overhead_percent);
	add_rate(&json, "estimate_scale", page->estimate_scale);
	add_rate(&json, "own_cpu_percent", page->own_percent);
	json_open(&json, "missed", '{');
	missed_json(&json, run);
	json_close(&json, '}');
	json_close(&json, '}');
	buf_putc(out, '\n');
}
