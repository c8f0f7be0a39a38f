// SPDX-License-Identifier: MIT
/* What was launched, by process and kernel. */
#include "watch/page.h"

#include <string.h>

#include "base/number.h"

/* ---- page copies --------------------------------------------------------------------------- */

/* What was copied and set, by process, direction and memory of the host. */

static const char *const host_texts[WATCH_HOST_COUNT] = {
	[WATCH_HOST_NONE] = "-",
	[WATCH_HOST_UNKNOWN] = "pageable or not known",
	[WATCH_HOST_PINNED] = "pinned",
	[WATCH_HOST_MANAGED] = "managed",
};

static const char *const host_names[WATCH_HOST_COUNT] = {
	[WATCH_HOST_UNKNOWN] = "unknown",
	[WATCH_HOST_PINNED] = "pinned",
	[WATCH_HOST_MANAGED] = "managed",
};

#define COPIES_AT(member) TABLE_AT(struct watch_copies_row, member)

static const struct table_column copies_columns[] = {
	{ "PROCESS", TABLE_WORDS },
	{ TABLE_JSON(TABLE_VIA(struct watch_copies_row, process, pid), "pid") },
	{ TABLE_JSON(TABLE_VIA(struct watch_copies_row, process, comm), "process") },
	{ TABLE_JSON(COPIES_AT(ended), "ended") },
	{ "DIRECTION", TABLE_WORDS, .key = "direction" },
	{ "CALL", TABLE_WORDS },
	{ TABLE_JSON(COPIES_AT(async), "async") },
	{ "HOST MEMORY", TABLE_WORDS },
	{ .key = "host", .flags = TABLE_ABSENT },
	{ "CALLS", TABLE_NUMBER, COPIES_AT(calls), "calls" },
	{ "BYTES", TABLE_BYTES, COPIES_AT(bytes), "bytes" },
	{ .key = "calls_per_second", .decimals = 3 },
	{ "NOW", TABLE_RATE, .key = "bytes_per_second", .flags = TABLE_NO_ZERO },
	{ TABLE_JSON(COPIES_AT(unsized), "unknown_size") },
	{ TABLE_JSON(COPIES_AT(captured), "captured") },
	{ TABLE_JSON(COPIES_AT(failed), "failed") },
	{ "IN CALLS", TABLE_DURATION, COPIES_AT(ns), "call_ns", .needs = PAGE_RETURNS },
	{ "LONGEST", TABLE_DURATION, COPIES_AT(max_ns), "max_call_ns", .needs = PAGE_RETURNS },
	{ "WHILE IN CALL", TABLE_RATE, .flags = TABLE_NO_ZERO, .needs = PAGE_RETURNS },
};

/* Bytes a second of the time that was spent in the calls: 0 where that says nothing. */
static uint64_t rate_in_calls(const struct watch_copies_row *row)
{
	if (row->async || !row->ns)
		return 0;
	return number_u64((double)row->bytes * 1e9 / (double)row->ns);
}

static const char *direction_of(const struct watch_copies_row *row)
{
	return row->set ? "set" : row->direction ? api_direction_name(row->direction) : "?";
}

static void copies_add_row(const struct page_out *out, const struct watch_copies_row *row)
{
	struct table *table = out->table;

	page_process_cell(table, row->process);
	table_fields(table, row);
	TABLE_CELLS(table, direction_of(row), row->async ? "async" : "sync");
	table_fields(table, row);
	TABLE_CELLS(table, host_texts[row->host], host_names[row->host]);
	table_fields(table, row);
	TABLE_CELLS(table, page_rate_thousandths(out->page, row->calls, row->calls_before),
	            page_rate_thousandths(out->page, row->bytes, row->bytes_before) / 1000);
	table_fields(table, row);
	table_u64(table, rate_in_calls(row));
	if (out->json)
		page_histogram_json(out->json, "calls_by_bytes", row->sizes);
	table_end_row(table);
}

static void add_notes(const struct page_out *out)
{
	const struct watch_copies *copies = out->page->copies;
	uint64_t unsized = 0, captured = 0, failed = 0;

	for (size_t i = 0; i < copies->n_rows; i++) {
		unsized += copies->rows[i].unsized;
		captured += copies->rows[i].captured;
		failed += copies->rows[i].failed;
	}
	table_note_if(out->table, unsized,
	              "%lu of the calls are of an unknown size: batches, arrays", unsized);
	table_note_if(out->table, captured, "%lu calls were recorded into a graph and did not run",
	              captured);
	table_note_if(out->table, failed, "%lu calls failed", failed);
}

static void add_sizes(const struct watch_copies *copies, struct buf *out)
{
	uint64_t logs[WATCH_LOGS] = { 0 };

	for (size_t k = 0; k < copies->n_rows; k++) {
		for (int i = 0; i < WATCH_LOGS; i++)
			logs[i] += copies->rows[k].sizes[i];
	}
	buf_puts(out, "  size of a call\n");
	page_histogram_text(logs, PAGE_BYTES, out);
}

static uint64_t copies_sum(const struct watch_copies *copies, bool before)
{
	uint64_t total = 0;

	for (size_t i = 0; i < copies->n_rows; i++)
		total += before ? copies->rows[i].bytes_before : copies->rows[i].bytes;
	return total;
}

static void copies_add_head(const struct page_out *out)
{
	const struct watch_copies *copies = out->page->copies;
	uint64_t bytes = copies_sum(copies, false);
	uint64_t now = page_rate_thousandths(out->page, bytes, copies_sum(copies, true)) / 1000;

	if (out->json) {
		json_u64(out->json, "bytes", bytes);
		json_u64(out->json, "bytes_per_second", now);
		return;
	}
	buf_puts(out->text, "Copies and sets: ");
	buf_bytes(out->text, bytes);
	buf_puts(out->text, ", ");
	buf_bytes(out->text, now);
	buf_puts(out->text, " a second\n");
}

void page_copies(const struct page_out *out)
{
	const struct watch_copies *copies = out->page->copies;
	size_t shown = 0;

	if (out->json)
		json_open(out->json, "bandwidth", '{');
	copies_add_head(out);
	table_begin(out->table, "rows", NULL, TABLE_COLUMNS(copies_columns));
	for (size_t i = 0; i < copies->n_rows; i++) {
		if (!out->json && !copies->rows[i].calls)
			continue;
		copies_add_row(out, &copies->rows[i]);
		shown++;
	}
	page_note_more(out, shown);
	add_notes(out);
	table_end(out->table, NULL);
	if (out->json)
		json_close(out->json, '}');
	else if (copies->n_rows)
		add_sizes(copies, out->text);
}

/* ---- page launches ------------------------------------------------------------------------- */

#define SHAPES_TEXT 3 /* shapes of a kernel, on its line */
#define SHAPES_JSON 32

#define AT(member) TABLE_AT(struct watch_kernel, member)

static const struct table_column columns[] = {
	{ "PROCESS", TABLE_WORDS },
	{ TABLE_JSON(TABLE_VIA(struct watch_kernel, process, pid), "pid") },
	{ TABLE_JSON(TABLE_VIA(struct watch_kernel, process, comm), "process") },
	{ TABLE_JSON(AT(ended), "ended") },
	{ TABLE_JSON(TABLE_VIA(struct watch_kernel, kernel, name), "kernel"), TABLE_ABSENT },
	{ TABLE_JSON(TABLE_VIA(struct watch_kernel, kernel, resolved), "resolved"), TABLE_ABSENT },
	{ .key = "graph", .flags = TABLE_ABSENT },
	{ "LAUNCHES", TABLE_NUMBER, AT(count), "launches" },
	{ "/S", TABLE_FIGURE },
	{ .key = "per_second", .decimals = 3 },
	{ "AVG CALL", TABLE_FIGURE, .needs = PAGE_RETURNS },
	{ "MAX CALL", TABLE_FIGURE, .needs = PAGE_RETURNS },
	{ "CAPTURED", TABLE_NUMBER, AT(captured), "captured" },
	{ "FAILED", TABLE_NUMBER, AT(failed), "failed" },
	{ TABLE_JSON(AT(ns), "call_ns"), .needs = PAGE_RETURNS },
	{ TABLE_JSON(AT(max_ns), "max_call_ns"), .needs = PAGE_RETURNS },
	{ "GRID x BLOCK", TABLE_WORDS },
	{ "KERNEL", TABLE_TEXT },
};

/* "(196,1,1)x(256,1,1)" */
static void add_shape(struct buf *out, const struct watch_shape *shape)
{
	buf_printf(out, "(%u,%u,%u)x(%u,%u,%u)", shape->grid[0], shape->grid[1], shape->grid[2],
	           shape->block[0], shape->block[1], shape->block[2]);
}

static bool has_shape(const struct watch_shape *shape)
{
	return shape->grid[0] || shape->block[0];
}

static void add_shapes(struct buf *out, const struct watch_kernel *kernel)
{
	for (size_t i = 0; i < kernel->n_shapes && i < SHAPES_TEXT; i++) {
		if (!has_shape(&kernel->shapes[i]))
			continue;
		if (i)
			buf_putc(out, ' ');
		add_shape(out, &kernel->shapes[i]);
	}
	if (kernel->n_shapes > SHAPES_TEXT)
		buf_printf(out, " +%zu", kernel->n_shapes - SHAPES_TEXT);
}

static void dims_json(struct json *json, const char *key, const uint32_t dims[3])
{
	json_open(json, key, '[');
	for (int i = 0; i < 3; i++)
		json_u64(json, NULL, dims[i]);
	json_close(json, ']');
}

static void shapes_json(struct json *json, const struct watch_kernel *kernel)
{
	json_open(json, "shapes", '[');
	for (size_t i = 0; i < kernel->n_shapes && i < SHAPES_JSON; i++) {
		const struct watch_shape *shape = &kernel->shapes[i];

		json_open(json, NULL, '{');
		if (has_shape(shape)) {
			dims_json(json, "grid", shape->grid);
			dims_json(json, "block", shape->block);
		}
		json_u64(json, "launches", shape->count);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void details_json(const struct page_out *out, const struct watch_kernel *kernel)
{
	if (out->options->returns)
		page_histogram_json(out->json, "calls_by_ns", kernel->duration);
	page_histogram_json(out->json, "launches_by_threads", kernel->threads);
	shapes_json(out->json, kernel);
}

static void duration_cell(struct table *table, const struct watch_kernel *kernel, uint64_t ns)
{
	AT_END(buf_free) struct buf text = { 0 };

	buf_puts(&text, "");
	if (kernel->timed)
		buf_duration(&text, ns);
	table_text(table, text.data);
}

static void shapes_cell(struct table *table, const struct watch_kernel *kernel)
{
	AT_END(buf_free) struct buf text = { 0 };

	buf_puts(&text, "");
	add_shapes(&text, kernel);
	table_text(table, text.data);
}

static void add_row(const struct page_out *out, const struct watch_kernel *kernel)
{
	AT_END(buf_free) struct buf graph = { 0 }, rate = { 0 };
	struct table *table = out->table;

	if (!kernel->kernel)
		buf_printf(&graph, "graph 0x%lx", kernel->handle);
	page_add_rate(&rate, out->page, kernel->count, kernel->before);
	page_process_cell(table, kernel->process);
	table_fields(table, kernel);
	table_text(table, graph.data ? graph.data + strlen("graph ") : NULL);
	table_fields(table, kernel);
	TABLE_CELLS(table, rate.data,
	            page_rate_thousandths(out->page, kernel->count, kernel->before));
	duration_cell(table, kernel, kernel->timed ? kernel->ns / kernel->timed : 0);
	duration_cell(table, kernel, kernel->max_ns);
	table_fields(table, kernel);
	shapes_cell(table, kernel);
	table_text(table, graph.data ? graph.data : kernel->kernel->name);
	if (out->json)
		details_json(out, kernel);
	table_end_row(table);
}

/* Launches of kernels, or of graphs, in all and at the page before. */
static struct totals {
	uint64_t now, before;
} sum(const struct watch_launches *launches, bool graphs)
{
	struct totals totals = { 0 };

	for (size_t i = 0; i < launches->n_kernels; i++) {
		const struct watch_kernel *kernel = &launches->kernels[i];

		if (!kernel->kernel != graphs)
			continue;
		totals.now += kernel->count;
		totals.before += kernel->before;
	}
	return totals;
}

static void add_histogram(const struct watch_launches *launches, const char *title, bool durations,
                          struct buf *out)
{
	uint64_t logs[WATCH_LOGS] = { 0 };

	for (size_t k = 0; k < launches->n_kernels; k++) {
		const struct watch_kernel *kernel = &launches->kernels[k];

		for (int i = 0; i < WATCH_LOGS; i++)
			logs[i] += durations ? kernel->duration[i] : kernel->threads[i];
	}
	buf_puts(out, title);
	page_histogram_text(logs, durations ? PAGE_NS : PAGE_NUMBER, out);
}

static void add_head(const struct page_out *out)
{
	struct totals kernels = sum(out->page->launches, false);
	struct totals graphs = sum(out->page->launches, true);

	if (out->json) {
		json_u64(out->json, "kernel_launches", kernels.now);
		json_u64(out->json, "graph_launches", graphs.now);
		json_fixed(out->json, "per_second",
		           page_rate_thousandths(out->page, kernels.now, kernels.before), 3);
		return;
	}
	buf_printf(out->text, "Launches: %lu kernels, ", kernels.now);
	page_add_rate(out->text, out->page, kernels.now, kernels.before);
	buf_puts(out->text, " a second");
	if (graphs.now) {
		buf_printf(out->text, "; %lu graphs, ", graphs.now);
		page_add_rate(out->text, out->page, graphs.now, graphs.before);
		buf_puts(out->text, " a second");
	}
	buf_putc(out->text, '\n');
}

void page_launches(const struct page_out *out)
{
	const struct watch_launches *launches = out->page->launches;

	if (out->json)
		json_open(out->json, "launches", '{');
	add_head(out);
	table_begin(out->table, "kernels", NULL, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < launches->n_kernels; i++)
		add_row(out, &launches->kernels[i]);
	page_note_more(out, launches->n_kernels);
	table_end(out->table, NULL);
	if (out->json) {
		json_close(out->json, '}');
		return;
	}
	if (!launches->n_kernels)
		return;
	add_histogram(launches, "  threads of a launch\n", false, out->text);
	if (out->options->returns)
		add_histogram(launches, "  time in the launching call\n", true, out->text);
}
