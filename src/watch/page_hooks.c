// SPDX-License-Identifier: MIT
/* What hooks of one's own saw, by process and hook. */
#include "watch/page.h"

#define AT(member) TABLE_AT(struct line, member)

/* A row with what is not known where there is none of it. */
struct line {
	const struct watch_hook *hook;
	const struct process *process;
	const struct function *function;
	uint64_t bytes, bytes_now, ns, mean_ns, max_ns;
};

static const struct table_column columns[] = {
	{ "PROCESS", TABLE_WORDS },
	{ TABLE_JSON(TABLE_VIA(struct line, process, pid), "pid") },
	{ TABLE_JSON(TABLE_VIA(struct line, process, comm), "process") },
	{ TABLE_JSON(TABLE_VIA(struct line, hook, ended), "ended") },
	{ TABLE_JSON(TABLE_VIA(struct line, function, lib), "library") },
	{ TABLE_JSON(TABLE_VIA(struct line, function, name), "hook") },
	{ "CALLS", TABLE_NUMBER, TABLE_VIA(struct line, hook, calls), "calls" },
	{ "/S", TABLE_FIGURE },
	{ .key = "calls_per_second", .decimals = 3 },
	{ "UNFINISHED", TABLE_NUMBER, TABLE_VIA(struct line, hook, unfinished), "unfinished",
	  .flags = TABLE_NO_ZERO },
	{ "BYTES", TABLE_BYTES, AT(bytes), "bytes", .flags = TABLE_ABSENT },
	{ "NOW", TABLE_RATE, AT(bytes_now), "bytes_per_second",
	  .flags = TABLE_ABSENT | TABLE_NO_ZERO },
	{ "IN CALLS", TABLE_DURATION, AT(ns), "call_ns", .flags = TABLE_ABSENT,
	  .needs = PAGE_RETURNS },
	{ "MEAN", TABLE_DURATION, AT(mean_ns), "mean_call_ns", .flags = TABLE_ABSENT,
	  .needs = PAGE_RETURNS },
	{ "LONGEST", TABLE_DURATION, AT(max_ns), "max_call_ns", .flags = TABLE_ABSENT,
	  .needs = PAGE_RETURNS },
	{ "HOOK", TABLE_TEXT, TABLE_VIA(struct line, function, name) },
};

static struct line line_of(const struct watch_page *page, const struct watch_hook *hook)
{
	struct line line = { .hook = hook,
		             .process = hook->process,
		             .function = hook->function,
		             .bytes = TABLE_NOT_KNOWN,
		             .bytes_now = TABLE_NOT_KNOWN,
		             .ns = TABLE_NOT_KNOWN,
		             .mean_ns = TABLE_NOT_KNOWN,
		             .max_ns = TABLE_NOT_KNOWN };

	if (hook->sized) {
		line.bytes = hook->bytes;
		line.bytes_now =
			page_rate_thousandths(page, hook->bytes, hook->bytes_before) / 1000;
	}
	if (hook->timed) {
		line.ns = hook->ns;
		line.mean_ns = hook->ns / hook->timed;
		line.max_ns = hook->max_ns;
	}
	return line;
}

static void add_row(const struct page_out *out, const struct watch_hook *hook)
{
	const struct line line = line_of(out->page, hook);
	struct table *table = out->table;
	struct buf rate = { 0 };

	page_add_rate(&rate, out->page, hook->calls, hook->calls_before);
	page_process_cell(table, hook->process);
	table_fields(table, &line);
	table_text(table, rate.data);
	table_u64(table, page_rate_thousandths(out->page, hook->calls, hook->calls_before));
	table_row(table, &line);
	buf_free(&rate);
}

static uint64_t sum(const struct watch_hooks *hooks, bool before)
{
	uint64_t total = 0;

	for (size_t i = 0; i < hooks->n_rows; i++)
		total += before ? hooks->rows[i].calls_before : hooks->rows[i].calls;
	return total;
}

static void add_head(const struct page_out *out)
{
	const struct watch_hooks *hooks = out->page->hooks;
	uint64_t calls = sum(hooks, false), before = sum(hooks, true);

	if (out->json) {
		json_u64(out->json, "calls", calls);
		json_fixed(out->json, "calls_per_second",
		           page_rate_thousandths(out->page, calls, before), 3);
		return;
	}
	buf_printf(out->text, "Hooks: %llu call%s, ", (unsigned long long)calls,
	           calls == 1 ? "" : "s");
	page_add_rate(out->text, out->page, calls, before);
	buf_puts(out->text, " a second\n");
}

void page_hooks(const struct page_out *out)
{
	const struct watch_hooks *hooks = out->page->hooks;

	if (out->json)
		json_open(out->json, "hooks", '{');
	add_head(out);
	table_begin(out->table, "rows", NULL, TABLE_COLUMNS(columns));
	for (size_t i = 0; i < hooks->n_rows; i++)
		add_row(out, &hooks->rows[i]);
	page_note_more(out, hooks->n_rows);
	table_end(out->table, NULL);
	if (out->json)
		json_close(out->json, '}');
}
