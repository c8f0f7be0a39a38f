// SPDX-License-Identifier: MIT
#include "live/live.h"

#include "table/columns.h"
#include "base/text.h"

#define SHAPES_TEXT 3 /* shapes of a kernel, on its line */
#define SHAPES_JSON 32

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

static void add_name(struct buf *out, const struct watch_kernel *kernel)
{
	if (kernel->kernel)
		text_add_safe(out, kernel->kernel->name);
	else
		buf_printf(out, "graph 0x%llx", (unsigned long long)kernel->handle);
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

static void add_row(struct columns *table, const struct watch_page *page,
                    const struct watch_kernel *kernel, bool returns)
{
	struct buf *cells = &table->cells;

	live_add_process(cells, kernel->process);
	columns_end_cell(table);
	buf_u64(cells, kernel->count);
	columns_end_cell(table);
	live_add_rate(cells, page, kernel->count, kernel->before);
	columns_end_cell(table);
	if (returns) {
		if (kernel->timed)
			buf_duration(cells, kernel->ns / kernel->timed);
		columns_end_cell(table);
		if (kernel->timed)
			buf_duration(cells, kernel->max_ns);
		columns_end_cell(table);
	}
	buf_u64(cells, kernel->captured);
	columns_end_cell(table);
	buf_u64(cells, kernel->failed);
	columns_end_cell(table);
	add_shapes(cells, kernel);
	columns_end_cell(table);
	add_name(cells, kernel);
	columns_end_cell(table);
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
	live_histogram_text(logs, durations ? LIVE_NS : LIVE_NUMBER, out);
}

void live_launches_text(const struct watch_page *page, const struct live_options *options,
                        struct buf *out)
{
	const struct watch_launches *launches = page->launches;
	struct totals kernels = sum(launches, false), graphs = sum(launches, true);
	struct columns table;

	buf_printf(out, "Launches: %llu kernels, ", (unsigned long long)kernels.now);
	live_add_rate(out, page, kernels.now, kernels.before);
	buf_puts(out, " a second");
	if (graphs.now) {
		buf_printf(out, "; %llu graphs, ", (unsigned long long)graphs.now);
		live_add_rate(out, page, graphs.now, graphs.before);
		buf_puts(out, " a second");
	}
	buf_putc(out, '\n');
	if (!launches->n_kernels)
		return;
	if (options->returns)
		columns_init(&table, "lrrrrrrll",
		             "PROCESS|LAUNCHES|/S|AVG CALL|MAX CALL|CAPTURED|FAILED|GRID x BLOCK|"
		             "KERNEL");
	else
		columns_init(&table, "lrrrrll",
		             "PROCESS|LAUNCHES|/S|CAPTURED|FAILED|GRID x BLOCK|KERNEL");
	table.screen = options->width;
	for (size_t i = 0; i < launches->n_kernels && i < options->top; i++)
		add_row(&table, page, &launches->kernels[i], options->returns);
	columns_print(&table, out);
	live_more(out, launches->n_kernels, options);
	add_histogram(launches, "  threads of a launch\n", false, out);
	if (options->returns)
		add_histogram(launches, "  time in the launching call\n", true, out);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

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

static void kernel_json(struct json *json, const struct watch_page *page,
                        const struct watch_kernel *kernel, bool returns)
{
	char handle[24];

	json_open(json, NULL, '{');
	live_json_process(json, kernel->process);
	json_bool(json, "ended", kernel->ended);
	if (kernel->kernel) {
		json_string(json, "kernel", kernel->kernel->name);
		json_bool(json, "resolved", kernel->kernel->resolved);
	} else {
		snprintf(handle, sizeof(handle), "0x%llx", (unsigned long long)kernel->handle);
		json_string(json, "graph", handle);
	}
	json_u64(json, "launches", kernel->count);
	json_fixed(json, "per_second", live_rate_thousandths(page, kernel->count, kernel->before),
	           3);
	json_u64(json, "captured", kernel->captured);
	json_u64(json, "failed", kernel->failed);
	if (returns) {
		json_u64(json, "call_ns", kernel->ns);
		json_u64(json, "max_call_ns", kernel->max_ns);
		live_histogram_json(json, "calls_by_ns", kernel->duration);
	}
	live_histogram_json(json, "launches_by_threads", kernel->threads);
	shapes_json(json, kernel);
	json_close(json, '}');
}

void live_launches_json(const struct watch_page *page, const struct live_options *options,
                        struct json *json)
{
	const struct watch_launches *launches = page->launches;

	struct totals kernels = sum(launches, false), graphs = sum(launches, true);

	json_open(json, "launches", '{');
	json_u64(json, "kernel_launches", kernels.now);
	json_u64(json, "graph_launches", graphs.now);
	json_fixed(json, "per_second", live_rate_thousandths(page, kernels.now, kernels.before), 3);
	json_open(json, "kernels", '[');
	for (size_t i = 0; i < launches->n_kernels; i++)
		kernel_json(json, page, &launches->kernels[i], options->returns);
	json_close(json, ']');
	json_close(json, '}');
}
