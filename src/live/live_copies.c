// SPDX-License-Identifier: MIT
#include "live/live.h"

#include "table/columns.h"
#include "base/number.h"
#include "base/text.h"

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

static const char *direction_of(const struct watch_copies_row *row)
{
	return row->set ? "set" : row->direction ? api_direction_name(row->direction) : "?";
}

/* Bytes a second of the time that was spent in the calls: 0 where that says nothing. */
static uint64_t rate_in_calls(const struct watch_copies_row *row)
{
	if (row->async || !row->ns)
		return 0;
	return number_u64((double)row->bytes * 1e9 / (double)row->ns);
}

static void add_speed(struct columns *table, uint64_t bytes)
{
	if (bytes) {
		buf_bytes(&table->cells, bytes);
		buf_puts(&table->cells, "/s");
	} else {
		buf_putc(&table->cells, '-');
	}
	columns_end_cell(table);
}

static void add_row(struct columns *table, const struct watch_page *page,
                    const struct watch_copies_row *row, bool returns)
{
	struct buf *cells = &table->cells;

	live_add_process(cells, row->process);
	columns_end_cell(table);
	columns_text(table, direction_of(row));
	columns_text(table, row->async ? "async" : "sync");
	columns_text(table, host_texts[row->host]);
	buf_u64(cells, row->calls);
	columns_end_cell(table);
	buf_bytes(cells, row->bytes);
	columns_end_cell(table);
	add_speed(table, live_rate_thousandths(page, row->bytes, row->bytes_before) / 1000);
	if (!returns)
		return;
	buf_duration(cells, row->ns);
	columns_end_cell(table);
	buf_duration(cells, row->max_ns);
	columns_end_cell(table);
	add_speed(table, rate_in_calls(row));
}

static void add_notes(const struct watch_copies *copies, struct buf *out)
{
	uint64_t unsized = 0, captured = 0, failed = 0;

	for (size_t i = 0; i < copies->n_rows; i++) {
		unsized += copies->rows[i].unsized;
		captured += copies->rows[i].captured;
		failed += copies->rows[i].failed;
	}
	if (unsized)
		buf_printf(out, "  %llu of the calls are of an unknown size: batches, arrays\n",
		           (unsigned long long)unsized);
	if (captured)
		buf_printf(out, "  %llu calls were recorded into a graph and did not run\n",
		           (unsigned long long)captured);
	if (failed)
		buf_printf(out, "  %llu calls failed\n", (unsigned long long)failed);
}

static void add_sizes(const struct watch_copies *copies, struct buf *out)
{
	uint64_t logs[WATCH_LOGS] = { 0 };

	for (size_t k = 0; k < copies->n_rows; k++) {
		for (int i = 0; i < WATCH_LOGS; i++)
			logs[i] += copies->rows[k].sizes[i];
	}
	buf_puts(out, "  size of a call\n");
	live_histogram_text(logs, LIVE_BYTES, out);
}

static uint64_t sum(const struct watch_copies *copies, bool before)
{
	uint64_t total = 0;

	for (size_t i = 0; i < copies->n_rows; i++)
		total += before ? copies->rows[i].bytes_before : copies->rows[i].bytes;
	return total;
}

void live_copies_text(const struct watch_page *page, const struct live_options *options,
                      struct buf *out)
{
	const struct watch_copies *copies = page->copies;
	struct columns table;
	size_t shown = 0;

	buf_puts(out, "Copies and sets: ");
	buf_bytes(out, sum(copies, false));
	buf_puts(out, ", ");
	buf_bytes(out, live_rate_thousandths(page, sum(copies, false), sum(copies, true)) / 1000);
	buf_puts(out, " a second\n");
	if (!copies->n_rows)
		return;
	if (options->returns)
		columns_init(&table, "llllrrrrrr",
		             "PROCESS|DIRECTION|CALL|HOST MEMORY|CALLS|BYTES|NOW|IN CALLS|LONGEST|"
		             "WHILE IN CALL");
	else
		columns_init(&table, "llllrrr",
		             "PROCESS|DIRECTION|CALL|HOST MEMORY|CALLS|BYTES|NOW");
	for (size_t i = 0; i < copies->n_rows; i++) {
		if (copies->rows[i].calls && shown++ < options->top)
			add_row(&table, page, &copies->rows[i], options->returns);
	}
	table.screen = options->width;
	columns_print(&table, out);
	live_more(out, shown, options);
	add_notes(copies, out);
	add_sizes(copies, out);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void row_json(struct json *json, const struct watch_page *page,
                     const struct watch_copies_row *row, bool returns)
{
	json_open(json, NULL, '{');
	live_json_process(json, row->process);
	json_bool(json, "ended", row->ended);
	json_string(json, "direction", direction_of(row));
	json_bool(json, "async", row->async);
	if (row->host)
		json_string(json, "host", host_names[row->host]);
	json_u64(json, "calls", row->calls);
	json_u64(json, "bytes", row->bytes);
	json_fixed(json, "calls_per_second",
	           live_rate_thousandths(page, row->calls, row->calls_before), 3);
	json_u64(json, "bytes_per_second",
	         live_rate_thousandths(page, row->bytes, row->bytes_before) / 1000);
	json_u64(json, "unknown_size", row->unsized);
	json_u64(json, "captured", row->captured);
	json_u64(json, "failed", row->failed);
	if (returns) {
		json_u64(json, "call_ns", row->ns);
		json_u64(json, "max_call_ns", row->max_ns);
	}
	live_histogram_json(json, "calls_by_bytes", row->sizes);
	json_close(json, '}');
}

void live_copies_json(const struct watch_page *page, const struct live_options *options,
                      struct json *json)
{
	const struct watch_copies *copies = page->copies;

	json_open(json, "bandwidth", '{');
	json_u64(json, "bytes", sum(copies, false));
	json_u64(json, "bytes_per_second",
	         live_rate_thousandths(page, sum(copies, false), sum(copies, true)) / 1000);
	json_open(json, "rows", '[');
	for (size_t i = 0; i < copies->n_rows; i++)
		row_json(json, page, &copies->rows[i], options->returns);
	json_close(json, ']');
	json_close(json, '}');
}
