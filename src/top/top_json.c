// SPDX-License-Identifier: MIT
/* The page of `cuscope top` as an object of JSON. */
#include <math.h>
#include <stdlib.h>

#include "analysis/missed.h"
#include "base/json.h"
#include "base/number.h"
#include "base/xalloc.h"
#include "top/top_tables.h"

#define DEEP_LINES  3 /* values down to a process's own are lines of their own */
#define FEW_LINES   2 /* where it has a bound: a process is a line */
#define ALL_ROWS    SIZE_MAX
#define MOST_ROWS   64         /* of a table of a process, where there is a bound */
#define REST_BYTES  (24 << 10) /* for what comes after processes */
#define BRIEF_BYTES 1024       /* a process without tables, and whoever it is */

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

static void add_left_out(struct json *json, const char *key, size_t left_out)
{
	json_u64_if(json, key, left_out);
}

static size_t first_rows(const struct top_items *items, size_t rows)
{
	return items->n < rows ? items->n : rows;
}

static void add_items(struct table *table, const char *key, const struct table_column *columns,
                      size_t n_columns, const struct top_items *items, size_t rows)
{
	table_begin(table, key, NULL, columns, n_columns);
	table_rows(table, items->all, first_rows(items, rows), sizeof(*items->all));
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

static void add_streams(struct table *table, const struct top_process *process, size_t rows)
{
	const struct top_items *streams = &process->items[TOP_KIND_STREAM];

	table_begin(table, "streams", NULL, TABLE_COLUMNS(stream_columns));
	for (size_t i = 0; i < first_rows(streams, rows); i++) {
		const struct top_item *stream = &streams->all[i];
		AT_END(buf_free) struct buf handle = { 0 };

		buf_hex(&handle, stream->stream.handle);
		table_text(table, stream->others ? "others" : handle.data);
		table_row(table, stream);
	}
	table_end(table, NULL);
}

static void add_hooks(struct table *table, const struct top_page *page,
                      const struct top_process *process, size_t rows)
{
	if (page->hooks)
		add_items(table, "hooks", TABLE_COLUMNS(hook_columns),
		          &process->items[TOP_KIND_HOOK], rows);
}

static void add_details(struct table *table, const struct top_process *process, size_t rows)
{
	add_memory(table, process);
	add_transfers(table, process);
	add_items(table, "functions", TABLE_COLUMNS(function_columns),
	          &process->items[TOP_KIND_FUNCTION], rows);
	add_items(table, "kernels", TABLE_COLUMNS(kernel_columns), &process->items[TOP_KIND_KERNEL],
	          rows);
	add_streams(table, process, rows);
}

/* What a bound leaves out of the tables above. */
static void add_rows_left_out(struct json *json, const struct top_process *process, size_t rows)
{
	static const char *const keys[TOP_KINDS] = {
		[TOP_KIND_FUNCTION] = "functions_left_out",
		[TOP_KIND_KERNEL] = "kernels_left_out",
		[TOP_KIND_STREAM] = "streams_left_out",
		[TOP_KIND_HOOK] = "hooks_left_out",
	};

	for (size_t i = 0; i < TOP_KINDS; i++)
		add_left_out(json, keys[i],
		             process->items[i].n - first_rows(&process->items[i], rows));
}

/* Members for what is known alone. */
static void add_who(struct json *json, const struct top_page *page,
                    const struct top_process *process)
{
	for (enum run_identity_word i = 0; i < RUN_IDENTITY_WORDS; i++) {
		const char *word = top_who(page, process, i);

		json_string_if(json, run_identity_name(i), word);
	}
}

static void add_process(struct json *json, struct table *table, const struct top_page *page,
                        const struct top_process *process, size_t rows)
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
	add_details(table, process, rows);
	add_hooks(table, page, process, rows);
	add_rows_left_out(json, process, rows);
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
		add_process(json, table, page, rows[i].process, ALL_ROWS);
	json_close(json, ']');
}

/* ---- in a bound ---------------------------------------------------------------------------- */

static uint64_t known(uint64_t number)
{
	return number == TABLE_NOT_KNOWN ? 0 : number;
}

/* Those with most time first, and where there is none those with most calls. */
static int by_time(const void *one, const void *two)
{
	const struct top_item *a = one, *b = two;
	uint64_t x[] = { known(a->gpu_ns), known(a->time_ns), a->calls.total };
	uint64_t y[] = { known(b->gpu_ns), known(b->time_ns), b->calls.total };

	for (size_t i = 0; i < ARRAY_SIZE(x); i++) {
		if (x[i] != y[i])
			return x[i] < y[i] ? 1 : -1;
	}
	return 0;
}

struct weighed {
	struct top_process *process;
	double weight; /* its greatest share of anything of all, 0 to 1 */
};

static int by_weight(const void *one, const void *two)
{
	const struct weighed *a = one, *b = two;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return a->process->process->pid < b->process->process->pid ? -1 : 1;
}

static double share(double part, double all)
{
	return all > 0 && part > 0 ? part / all : 0;
}

static struct weighed *weigh(const struct top_snapshot *snapshot)
{
	const struct top_process *total = &snapshot->total;
	struct weighed *all = xcalloc(snapshot->n_processes, sizeof(*all));
	double gpus = 0;

	for (size_t i = 0; i < snapshot->n_processes; i++)
		gpus += snapshot->processes[i].gpu_share > 0 ? snapshot->processes[i].gpu_share : 0;
	for (size_t i = 0; i < snapshot->n_processes; i++) {
		struct top_process *process = &snapshot->processes[i];
		double calls = share(process->numbers[TOP_COUNT_CALLS].rate,
		                     total->numbers[TOP_COUNT_CALLS].rate);
		double memory = share((double)process->memory[MEMORY_NONE].bytes,
		                      (double)total->memory[MEMORY_NONE].bytes);

		all[i] = (struct weighed){ process, fmax(fmax(calls, memory),
			                                 share(process->gpu_share, gpus)) };
	}
	qsort(all, snapshot->n_processes, sizeof(*all), by_weight);
	return all;
}

/* With fewer rows of its tables where they take more than half of what is left for rows, so that
 * others have some, too. False: there is no room for it at all. */
static bool add_within(struct json *json, struct table *table, const struct top_page *page,
                       const struct top_process *process, size_t left, size_t left_for_rows)
{
	const struct json before = *json;
	size_t begin = json->out->len, rows = 0;

	for (size_t kind = 0; kind < TOP_KINDS; kind++) {
		const struct top_items *items = &process->items[kind];

		if (!items->n)
			continue;
		qsort(items->all, items->n, sizeof(*items->all), by_time);
		rows = MOST_ROWS;
	}
	for (;; rows /= 4) {
		add_process(json, table, page, process, rows);
		if (json->out->len - begin <= (rows ? left_for_rows / 2 : left))
			return true;
		*json = before;
		json->out->data[json->out->len = begin] = '\0';
		if (!rows)
			return false;
	}
}

static size_t less(size_t from, size_t by)
{
	return from > by ? from - by : 0;
}

static void add_heaviest(struct json *json, struct table *table, const struct top_page *page,
                         size_t most_bytes)
{
	const struct top_snapshot *snapshot = page->snapshot;
	AT_END(at_end_free) struct weighed *all = weigh(snapshot);
	size_t i;

	json_open(json, "processes", '[');
	for (i = 0; i < snapshot->n_processes; i++) {
		size_t left = less(most_bytes, json->out->len);

		if (!add_within(json, table, page, all[i].process, left,
		                less(left, (snapshot->n_processes - i) * BRIEF_BYTES)))
			break;
	}
	json_close(json, ']');
	add_left_out(json, "processes_left_out", snapshot->n_processes - i);
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

void top_json(const struct top_page *page, const struct run_info *run, size_t most_bytes,
              struct buf *out)
{
	const struct top_snapshot *snapshot = page->snapshot;
	struct json json = { .out = out, .lines = most_bytes ? FEW_LINES : DEEP_LINES };
	struct table *table = table_open(&(struct table_options){ .json = &json }, false);

	json_open(&json, NULL, '{');
	json_string(&json, "target", page->target);
	json_u64(&json, "interval_ns", snapshot->interval_ns);
	json_u64(&json, "counting_ns", snapshot->time_ns - snapshot->begin_ns);
	add_gpus(&json, page->gpus);
	if (most_bytes)
		add_heaviest(&json, table, page, most_bytes - REST_BYTES);
	else
		add_processes(&json, table, page);
	begin_sum(&json, table, "gone", snapshot->n_gone, &snapshot->gone);
	add_hooks(table, page, &snapshot->gone, most_bytes ? MOST_ROWS : ALL_ROWS);
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
