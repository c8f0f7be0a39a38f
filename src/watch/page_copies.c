// SPDX-License-Identifier: MIT
/* What was copied and set, by process, direction and memory of the host. */
#include "watch/page.h"

#include "base/number.h"

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

#define AT(member) TABLE_AT(struct watch_copies_row, member)

static const struct table_column columns[] = {
	{ "PROCESS", TABLE_WORDS },
	{ TABLE_JSON(TABLE_VIA(struct watch_copies_row, process, pid), "pid") },
	{ TABLE_JSON(TABLE_VIA(struct watch_copies_row, process, comm), "process") },
	{ TABLE_JSON(AT(ended), "ended") },
	{ "DIRECTION", TABLE_WORDS, .key = "direction" },
	{ "CALL", TABLE_WORDS },
	{ TABLE_JSON(AT(async), "async") },
	{ "HOST MEMORY", TABLE_WORDS },
	{ .key = "host", .flags = TABLE_ABSENT },
	{ "CALLS", TABLE_NUMBER, AT(calls), "calls" },
	{ "BYTES", TABLE_BYTES, AT(bytes), "bytes" },
	{ .key = "calls_per_second", .decimals = 3 },
	{ "NOW", TABLE_RATE, .key = "bytes_per_second", .flags = TABLE_NO_ZERO },
	{ TABLE_JSON(AT(unsized), "unknown_size") },
	{ TABLE_JSON(AT(captured), "captured") },
	{ TABLE_JSON(AT(failed), "failed") },
	{ "IN CALLS", TABLE_DURATION, AT(ns), "call_ns", .needs = PAGE_RETURNS },
	{ "LONGEST", TABLE_DURATION, AT(max_ns), "max_call_ns", .needs = PAGE_RETURNS },
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

static void add_row(const struct page_out *out, const struct watch_copies_row *row)
{
	struct table *table = out->table;

	page_process_cell(table, row->process);
	table_fields(table, row);
	table_text(table, direction_of(row));
	table_text(table, row->async ? "async" : "sync");
	table_fields(table, row);
	table_text(table, host_texts[row->host]);
	table_text(table, host_names[row->host]);
	table_fields(table, row);
	table_u64(table, page_rate_thousandths(out->page, row->calls, row->calls_before));
	table_u64(table, page_rate_thousandths(out->page, row->bytes, row->bytes_before) / 1000);
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
	if (unsized)
		table_note(out->table, "%llu of the calls are of an unknown size: batches, arrays",
		           (unsigned long long)unsized);
	if (captured)
		table_note(out->table, "%llu calls were recorded into a graph and did not run",
		           (unsigned long long)captured);
	if (failed)
		table_note(out->table, "%llu calls failed", (unsigned long long)failed);
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

static uint64_t sum(const struct watch_copies *copies, bool before)
{
	uint64_t total = 0;

	for (size_t i = 0; i < copies->n_rows; i++)
		total += before ? copies->rows[i].bytes_before : copies->rows[i].bytes;
	return total;
}

static void add_head(const struct page_out *out)
{
	const struct watch_copies *copies = out->page->copies;
	uint64_t bytes = sum(copies, false);
	uint64_t now = page_rate_thousandths(out->page, bytes, sum(copies, true)) / 1000;

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
	add_head(out);
	table_begin(out->table, "rows", NULL, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < copies->n_rows; i++) {
		if (!out->json && !copies->rows[i].calls)
			continue;
		add_row(out, &copies->rows[i]);
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
