// SPDX-License-Identifier: MIT
/* The page of `cuscope top` as an object of JSON. */
#include <stdlib.h>

#include "analysis/missed.h"
#include "base/json.h"
#include "base/number.h"
#include "top/top_tables.h"

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

#define TOTAL(number) TABLE_AT(struct top_process, numbers[number].total)
#define RATE(number)  TABLE_AT(struct top_process, numbers[number].rate)

static const struct table_column number_members[] = {
	{ TABLE_JSON(TOTAL(TOP_COUNT_CALLS), "calls") },
	{ TABLE_JSON(RATE(TOP_COUNT_CALLS), "calls_per_second"), .decimals = 2 },
	{ TABLE_JSON(TOTAL(TOP_COUNT_ERRORS), "errors") },
	{ TABLE_JSON(RATE(TOP_COUNT_ERRORS), "errors_per_second"), .decimals = 2 },
	{ TABLE_JSON(TOTAL(TOP_COUNT_LAUNCHES), "launches") },
	{ TABLE_JSON(RATE(TOP_COUNT_LAUNCHES), "launches_per_second"), .decimals = 2 },
	{ TABLE_JSON(TOTAL(TOP_COUNT_GRAPH_LAUNCHES), "graph_launches") },
	{ TABLE_JSON(RATE(TOP_COUNT_GRAPH_LAUNCHES), "graph_launches_per_second"), .decimals = 2 },
	{ TABLE_JSON(TOTAL(TOP_COUNT_SET_BYTES), "set_bytes") },
	{ TABLE_JSON(RATE(TOP_COUNT_SET_BYTES), "set_bytes_per_second"), .decimals = 2 },
	{ TABLE_JSON(TOTAL(TOP_COUNT_SYNC_NS), "sync_ns") },
};

struct top_json_memory_line {
	const char *kind;
	struct top_memory of;
};

#define MEMORY(member) TABLE_AT(struct top_json_memory_line, member)

static const struct table_column memory_columns[] = {
	{ TABLE_JSON(MEMORY(kind), ""), TABLE_MEMBER },
	{ TABLE_JSON(MEMORY(of.count), "allocations") },
	{ TABLE_JSON(MEMORY(of.bytes), "bytes") },
	{ TABLE_JSON(MEMORY(of.peak_bytes), "peak_bytes") },
};

struct top_json_transfer_line {
	const char *direction;
	struct top_count copies, bytes;
};

#define TRANSFER(member) TABLE_AT(struct top_json_transfer_line, member)

static const struct table_column transfer_columns[] = {
	{ TABLE_JSON(TRANSFER(direction), ""), TABLE_MEMBER },
	{ TABLE_JSON(TRANSFER(copies.total), "copies") },
	{ TABLE_JSON(TRANSFER(copies.rate), "copies_per_second"), .decimals = 2 },
	{ TABLE_JSON(TRANSFER(bytes.total), "bytes") },
	{ TABLE_JSON(TRANSFER(bytes.rate), "bytes_per_second"), .decimals = 2 },
};

#define ITEM(member) TABLE_AT(struct top_item, member)

static const struct table_column function_columns[] = {
	{ TABLE_JSON(ITEM(name), "name") },
	{ TABLE_JSON(ITEM(calls.total), "calls") },
	{ TABLE_JSON(ITEM(calls.rate), "calls_per_second"), .decimals = 2 },
	{ TABLE_JSON(ITEM(counted), "counted"), TABLE_ABSENT | TABLE_ZERO },
	{ TABLE_JSON(ITEM(failed), "errors") },
	{ TABLE_JSON(ITEM(time_ns), "time_ns"), TABLE_ABSENT },
	{ TABLE_JSON(ITEM(p50_ns), "p50_ns"), TABLE_ABSENT },
	{ TABLE_JSON(ITEM(p99_ns), "p99_ns"), TABLE_ABSENT },
};

static const struct table_column kernel_columns[] = {
	{ TABLE_JSON(TABLE_VIA(struct top_item, kernel, name), "name") },
	{ TABLE_JSON(TABLE_VIA(struct top_item, kernel, resolved), "resolved") },
	{ TABLE_JSON(ITEM(calls.total), "launches") },
	{ TABLE_JSON(ITEM(calls.rate), "launches_per_second"), .decimals = 2 },
	{ TABLE_JSON(ITEM(gpu_runs), "gpu_runs") },
	{ TABLE_JSON(ITEM(gpu_ns), "gpu_time_ns") },
};

static const struct table_column hook_columns[] = {
	{ TABLE_JSON(ITEM(name), "name") },
	{ TABLE_JSON(ITEM(calls.total), "calls") },
	{ TABLE_JSON(ITEM(calls.rate), "calls_per_second"), .decimals = 2 },
	{ TABLE_JSON(ITEM(bytes.total), "bytes"), TABLE_ABSENT },
	{ TABLE_JSON(ITEM(bytes.rate), "bytes_per_second"), TABLE_ABSENT, .decimals = 2 },
	{ TABLE_JSON(ITEM(time_ns), "time_ns"), TABLE_ABSENT },
	{ TABLE_JSON(ITEM(mean_ns), "mean_ns"), TABLE_ABSENT },
	{ TABLE_JSON(ITEM(max_ns), "max_ns"), TABLE_ABSENT },
};

static const struct table_column stream_columns[] = {
	{ .key = "stream" },
	{ TABLE_JSON(ITEM(stream.tid), "tid"), TABLE_ZERO | TABLE_ABSENT },
	{ TABLE_JSON(ITEM(calls.total), "launches") },
	{ TABLE_JSON(ITEM(calls.rate), "launches_per_second"), .decimals = 2 },
	{ TABLE_JSON(ITEM(copies.total), "copies") },
	{ TABLE_JSON(ITEM(bytes.total), "copy_bytes") },
	{ TABLE_JSON(ITEM(bytes.rate), "copy_bytes_per_second"), .decimals = 2 },
};

static void add_items(struct table *table, const char *key, const struct table_column *columns,
                      size_t n_columns, const struct top_items *items)
{
	table_begin(table, key, NULL, columns, n_columns);
	table_rows(table, items->all, items->n, sizeof(*items->all));
	table_end(table, NULL);
}

static void add_memory(struct table *table, const struct top_process *process)
{
	table_begin(table, "memory", NULL, TABLE_COLUMNS(memory_columns));
	for (int kind = 0; kind < MEMORY_COUNT; kind++) {
		const struct top_json_memory_line line = {
			kind == MEMORY_NONE ? "all" : api_memory_name(kind), process->memory[kind]
		};

		if (kind == MEMORY_NONE || line.of.peak_bytes)
			table_row(table, &line);
	}
	table_end(table, NULL);
}

static void add_transfers(struct table *table, const struct top_process *process)
{
	table_begin(table, "transfers", NULL, TABLE_COLUMNS(transfer_columns));
	for (int d = 0; d < DIRECTION_COUNT; d++) {
		const struct top_json_transfer_line line = {
			d == DIRECTION_NONE ? "unknown" : api_direction_name(d),
			process->numbers[TOP_COUNT_COPIES + d],
			process->numbers[TOP_COUNT_COPY_BYTES + d],
		};

		if (line.copies.total)
			table_row(table, &line);
	}
	table_end(table, NULL);
}

static void add_streams(struct table *table, const struct top_process *process)
{
	const struct top_items *streams = &process->items[TOP_KIND_STREAM];

	table_begin(table, "streams", NULL, TABLE_COLUMNS(stream_columns));
	for (size_t i = 0; i < streams->n; i++) {
		const struct top_item *stream = &streams->all[i];
		AT_END(buf_free) struct buf handle = { 0 };

		buf_hex(&handle, stream->stream.handle);
		table_text(table, stream->others ? "others" : handle.data);
		table_row(table, stream);
	}
	table_end(table, NULL);
}

static void add_hooks(struct table *table, const struct top_page *page,
                      const struct top_process *process)
{
	if (page->hooks)
		add_items(table, "hooks", TABLE_COLUMNS(hook_columns),
		          &process->items[TOP_KIND_HOOK]);
}

static void add_details(struct table *table, const struct top_process *process)
{
	add_memory(table, process);
	add_transfers(table, process);
	add_items(table, "functions", TABLE_COLUMNS(function_columns),
	          &process->items[TOP_KIND_FUNCTION]);
	add_items(table, "kernels", TABLE_COLUMNS(kernel_columns),
	          &process->items[TOP_KIND_KERNEL]);
	add_streams(table, process);
}

/* Members for what is known alone. */
static void add_who(struct json *json, const struct top_page *page,
                    const struct top_process *process)
{
	for (enum run_identity_word i = 0; i < RUN_IDENTITY_WORDS; i++) {
		const char *word = top_who(page, process, i);

		if (word)
			json_string(json, run_identity_name(i), word);
	}
}

static void add_process(struct json *json, struct table *table, const struct top_page *page,
                        const struct top_process *process)
{
	int64_t gpu_bytes = GPU_UNKNOWN;

	if (page->gpus && !process->ended)
		gpu_bytes = gpus_process_bytes(page->gpus, process->process->pid);
	json_open(json, NULL, '{');
	json_u64(json, "pid", process->process->pid);
	json_string(json, "name", process->process->comm);
	add_who(json, page, process);
	json_bool(json, "ended", process->ended);
	json_bool(json, "entries_only", process->entries_only);
	json_u64(json, "threads", process->threads);
	table_members(table, TABLE_COLUMNS(number_members), process);
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
	add_details(table, process);
	add_hooks(table, page, process);
	json_close(json, '}');
}

static void add_processes(struct json *json, struct table *table, const struct top_page *page)
{
	struct top_view view;
	AT_END(at_end_free) struct top_row *rows;
	size_t n;

	top_view_init(&view);
	rows = top_rows(page, &view, &n);
	json_open(json, "processes", '[');
	for (size_t i = 0; i < n; i++)
		add_process(json, table, page, rows[i].process);
	json_close(json, ']');
}

static void begin_sum(struct json *json, struct table *table, const char *key, size_t processes,
                      const struct top_process *sum)
{
	json_open(json, key, '{');
	json_u64(json, "processes", processes);
	table_members(table, TABLE_COLUMNS(number_members), sum);
	add_memory(table, sum);
	add_transfers(table, sum);
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
		add_known(json, "sm_percent", gpu->sm_percent);
		add_known(json, "tensor_percent", gpu->tensor_percent);
		add_known(json, "dram_percent", gpu->dram_percent);
		json_close(json, '}');
	}
	json_close(json, ']');
	if (gpus && gpus->why[0])
		json_string(json, "gpus_note", gpus->why);
}

void top_json(const struct top_page *page, const struct run_info *run, struct buf *out)
{
	const struct top_snapshot *snapshot = page->snapshot;
	struct json json = { .out = out, .lines = DEEP_LINES };
	struct table *table = table_open(&(struct table_options){ .json = &json }, false);

	json_open(&json, NULL, '{');
	json_string(&json, "target", page->target);
	json_u64(&json, "interval_ns", snapshot->interval_ns);
	json_u64(&json, "counting_ns", snapshot->time_ns - snapshot->begin_ns);
	add_gpus(&json, page->gpus);
	add_processes(&json, table, page);
	begin_sum(&json, table, "gone", snapshot->n_gone, &snapshot->gone);
	add_hooks(table, page, &snapshot->gone);
	json_close(&json, '}');
	begin_sum(&json, table, "total", snapshot->n_processes + snapshot->n_gone,
	          &snapshot->total);
	json_close(&json, '}');
	add_rate(&json, "overhead_percent", page->overhead_percent);
	add_rate(&json, "estimate_scale", page->estimate_scale);
	add_rate(&json, "own_cpu_percent", page->own_percent);
	json_open(&json, "missed", '{');
	missed_json(&json, run);
	json_close(&json, '}');
	json_close(&json, '}');
	buf_putc(out, '\n');
	table_close(table);
}
