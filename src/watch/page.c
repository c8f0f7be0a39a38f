// SPDX-License-Identifier: MIT
#include "watch/page.h"

#include <string.h>
#include <time.h>

#include "analysis/missed.h"
#include "base/number.h"
#include "base/text.h"

/* ---- page hooks ---------------------------------------------------------------------------- */

/* What hooks of one's own saw, by process and hook. */

#define AT(member) TABLE_AT(struct hooks_line, member)

/* A row with what is not known where there is none of it. */
struct hooks_line {
	const struct watch_hook *hook;
	const struct process *process;
	const struct function *function;
	uint64_t bytes, bytes_now, ns, mean_ns, max_ns;
};

static const struct table_column hooks_columns[] = {
	{ "PROCESS", TABLE_WORDS },
	{ TABLE_JSON(TABLE_VIA(struct hooks_line, process, pid), "pid") },
	{ TABLE_JSON(TABLE_VIA(struct hooks_line, process, comm), "process") },
	{ TABLE_JSON(TABLE_VIA(struct hooks_line, hook, ended), "ended") },
	{ TABLE_JSON(TABLE_VIA(struct hooks_line, function, lib), "library") },
	{ TABLE_JSON(TABLE_VIA(struct hooks_line, function, name), "hook") },
	{ "CALLS", TABLE_NUMBER, TABLE_VIA(struct hooks_line, hook, calls), "calls" },
	{ "/S", TABLE_FIGURE },
	{ .key = "calls_per_second", .decimals = 3 },
	{ "UNFINISHED", TABLE_NUMBER, TABLE_VIA(struct hooks_line, hook, unfinished), "unfinished",
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
	{ "HOOK", TABLE_TEXT, TABLE_VIA(struct hooks_line, function, name) },
};

static struct hooks_line line_of(const struct watch_page *page, const struct watch_hook *hook)
{
	struct hooks_line line = { .hook = hook,
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
	const struct hooks_line line = line_of(out->page, hook);
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

static uint64_t hooks_sum(const struct watch_hooks *hooks, bool before)
{
	uint64_t total = 0;

	for (size_t i = 0; i < hooks->n_rows; i++)
		total += before ? hooks->rows[i].calls_before : hooks->rows[i].calls;
	return total;
}

static void add_head(const struct page_out *out)
{
	const struct watch_hooks *hooks = out->page->hooks;
	uint64_t calls = hooks_sum(hooks, false), before = hooks_sum(hooks, true);

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

static void page_hooks(const struct page_out *out)
{
	const struct watch_hooks *hooks = out->page->hooks;

	if (out->json)
		json_open(out->json, "hooks", '{');
	add_head(out);
	table_begin(out->table, "rows", NULL, TABLE_COLUMNS(hooks_columns));
	for (size_t i = 0; i < hooks->n_rows; i++)
		add_row(out, &hooks->rows[i]);
	page_note_more(out, hooks->n_rows);
	table_end(out->table, NULL);
	if (out->json)
		json_close(out->json, '}');
}

/* ---- page ---------------------------------------------------------------------------------- */

#define BAR_COLUMNS    40
#define EMPTY_ROWS_MAX 2 /* in a row: more than that are one line */

/* ---- pieces -------------------------------------------------------------------------------- */

void page_add_process(struct buf *out, const struct process *process)
{
	buf_u64(out, process->pid);
	buf_puts(out, " (");
	text_add_safe(out, process->comm);
	buf_putc(out, ')');
}

void page_process_cell(struct table *table, const struct process *process)
{
	struct buf text = { 0 };

	page_add_process(&text, process);
	table_text(table, text.data);
	buf_free(&text);
}

void page_json_process(struct json *json, const struct process *process)
{
	json_u64(json, "pid", process->pid);
	json_string(json, "process", process->comm);
}

uint64_t page_rate_thousandths(const struct watch_page *page, uint64_t now, uint64_t before)
{
	uint64_t ns = page->time_ns - page->before_ns;

	return ns ? number_u64((double)(now - before) * 1e12 / (double)ns) : 0;
}

void page_add_rate(struct buf *out, const struct watch_page *page, uint64_t now, uint64_t before)
{
	uint64_t rate = page_rate_thousandths(page, now, before);

	if (rate >= 10000 || !rate)
		buf_u64(out, (rate + 500) / 1000);
	else
		buf_fixed(out, (rate + 50) / 100, 1);
}

static void add_value(struct buf *out, uint64_t value, enum page_unit unit)
{
	if (unit == PAGE_BYTES)
		buf_bytes(out, value);
	else if (unit == PAGE_NS)
		buf_duration(out, value);
	else
		buf_u64(out, value);
}

static void add_histogram_row(struct buf *out, int log, uint64_t count, uint64_t most,
                              enum page_unit unit)
{
	size_t line = out->len;

	buf_puts(out, "    from ");
	add_value(out, 1ull << log, unit);
	text_pad(out, line, 22);
	buf_printf(out, "%12llu  ", (unsigned long long)count);
	for (uint64_t k = 0; k < (count * BAR_COLUMNS + most - 1) / most; k++)
		buf_putc(out, '#');
	while (out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buf_putc(out, '\n');
}

/* How many rows from `i` on are empty, of those before `end`. */
static int empty_rows(const uint64_t logs[WATCH_LOGS], int i, int end)
{
	int begin = i;

	while (i < end && !logs[i])
		i++;
	return i - begin;
}

void page_histogram_text(const uint64_t logs[WATCH_LOGS], enum page_unit unit, struct buf *out)
{
	int first = empty_rows(logs, 0, WATCH_LOGS), last = WATCH_LOGS - 1;
	uint64_t most = 0;

	while (last > first && !logs[last])
		last--;
	for (int i = first; i <= last; i++)
		most = logs[i] > most ? logs[i] : most;
	for (int i = first; i <= last; i++) {
		int empty = empty_rows(logs, i, last);

		if (empty > EMPTY_ROWS_MAX) {
			buf_puts(out, "    ...\n");
			i += empty;
		}
		add_histogram_row(out, i, logs[i], most, unit);
	}
}

void page_histogram_json(struct json *json, const char *key, const uint64_t logs[WATCH_LOGS])
{
	json_open(json, key, '[');
	for (int i = 0; i < WATCH_LOGS; i++) {
		if (!logs[i])
			continue;
		json_open(json, NULL, '{');
		json_u64(json, "from", i ? 1ull << i : 0);
		json_u64(json, "count", logs[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

struct table *page_table(const struct page_out *out)
{
	return table_open(
		&(struct table_options){ .page = out->text,
	                                 .json = out->json,
	                                 .width = out->options->width,
	                                 .color = out->options->color,
	                                 .top = out->options->top,
	                                 .has = out->options->returns ? PAGE_RETURNS : 0 },
		false);
}

void page_note_more(const struct page_out *out, size_t rows)
{
	if (rows > out->options->top)
		table_note(out->table, "... and %zu more (--top)", rows - out->options->top);
}

/* ---- what a page says of itself ------------------------------------------------------------ */

static void add_time(struct buf *out, const struct watch_page *page, const char *format)
{
	time_t seconds = (page->time_ns + page->realtime_offset_ns) / 1000000000;
	struct tm at;
	char text[64];

	localtime_r(&seconds, &at);
	strftime(text, sizeof(text), format, &at);
	buf_puts(out, text);
}

/* What was missed so far, as other sources tell it. */
static struct run_info run_of(const struct watch_page *page)
{
	struct run_info run = { .misses = page->misses,
		                .n_misses = page->n_misses,
		                .estimate_scale = 1 };

	memcpy(run.lost, page->lost, sizeof(run.lost));
	return run;
}

static void add_losses(const struct watch_page *page, struct buf *out)
{
	const struct run_info run = run_of(page);

	if (page->last || missed_events(run.lost))
		missed_text(out, &run);
}

static void add_parts(const struct watch_page *page, const struct page_options *options,
                      struct buf *text, struct json *json)
{
	struct page_out out = { .page = page, .options = options, .text = text, .json = json };

	out.table = page_table(&out);
	if (page->memory)
		(json ? page_memory_json : page_memory_text)(&out);
	if (page->launches)
		page_launches(&out);
	if (page->copies)
		page_copies(&out);
	if (page->hooks)
		page_hooks(&out);
	table_close(out.table);
}

void page_text(const struct watch_page *page, const struct page_options *options, struct buf *out)
{
	size_t from = out->len;

	add_time(out, page, "%H:%M:%S");
	buf_puts(out, page->last ? ", at the end, after " : ", after ");
	buf_duration(out, page->time_ns - page->begin_ns);
	buf_putc(out, '\n');
	add_parts(page, options, out, NULL);
	add_losses(page, out);
	buf_putc(out, '\n');
	text_wrap_lines(out, from, options->width);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void page_json(const struct watch_page *page, const struct page_options *options, struct buf *out)
{
	const struct run_info run = run_of(page);
	struct json json = { .out = out };

	json_open(&json, NULL, '{');
	json_u64(&json, "page", page->number);
	json_bool(&json, "last", page->last);
	json_u64(&json, "time_ns", page->time_ns + page->realtime_offset_ns);
	json_fixed(&json, "elapsed_s", (page->time_ns - page->begin_ns) / 1000000, 3);
	json_fixed(&json, "interval_s", (page->time_ns - page->before_ns) / 1000000, 3);
	add_parts(page, options, NULL, &json);
	json_open(&json, "missed", '{');
	missed_json(&json, &run);
	json_u64(&json, "no_room", page->lost[LOST_SUMS]);
	json_close(&json, '}');
	json_close(&json, '}');
	buf_putc(out, '\n');
}
