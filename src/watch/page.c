// SPDX-License-Identifier: MIT
#include "watch/page.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "analysis/missed.h"
#include "base/number.h"
#include "base/text.h"
#include "cuda/error.h"

/* ---- page classic -------------------------------------------------------------------------- */

/*
 * The lines that gpuprobe-daemon prints at each interval, to the letter: scripts read them. It
 * prints none for copies, so those are the ones of gpuprobe, its predecessor.
 */

/* ---- memory -------------------------------------------------------------------------------- */

/* An address is listed for device memory of any kind: host memory is not "on GPU". */
static bool is_on_gpu(const struct watch_allocation *a)
{
	return a->kind != MEMORY_HOST;
}

static void add_allocations(const struct watch_memory *memory, struct buf *out)
{
	buf_puts(out, "per-process memory maps:\n");
	for (size_t p = 0, i = 0; p < memory->n_processes; p++) {
		const struct process *process = memory->processes[p].process;
		bool any = false;

		buf_printf(out, "process %u\n", process->pid);
		while (i < memory->n_allocations && memory->allocations[i].process == process) {
			const struct watch_allocation *a = &memory->allocations[i++];

			if (!is_on_gpu(a))
				continue;
			buf_printf(out, "\t0x%016lx: %lu Bytes\n", a->address, a->bytes);
			any = true;
		}
		if (!any)
			buf_puts(out, "\tNo allocations on GPU\n");
	}
}

/* Its names of errors begin with a capital. */
static void add_error(const struct watch_failure *failure, struct buf *out)
{
	const char *name = failure->function
	                           ? cuda_error_name(failure->function->layer, failure->result)
	                           : NULL;

	if (name) {
		buf_putc(out, (char)toupper((unsigned char)name[0]));
		buf_puts(out, name + 1);
	} else {
		buf_printf(out, "%d", failure->result);
	}
}

static void add_failures(const struct watch_memory *memory, struct buf *out)
{
	buf_puts(out, "per-process error histograms:\n");
	for (size_t p = 0; p < memory->n_processes; p++) {
		const struct process *process = memory->processes[p].process;
		bool any = false;

		buf_printf(out, "process %u\n", process->pid);
		for (size_t i = 0; i < memory->n_failures; i++) {
			const struct watch_failure *failure = &memory->failures[i];

			if (failure->process != process)
				continue;
			buf_printf(out, "\t(%s[",
			           failure->function ? failure->function->name : "?");
			add_error(failure, out);
			buf_printf(out, "]): %lu\n", failure->count);
			any = true;
		}
		if (!any)
			buf_puts(out, "\tNo errors to report\n");
	}
}

/* ---- launches ------------------------------------------------------------------------------ */

static bool is_first_of_process(const struct watch_launches *launches, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (launches->kernels[i].process == launches->kernels[at].process)
			return false;
	}
	return true;
}

static void add_kernels(const struct watch_launches *launches, const struct process *process,
                        struct buf *out)
{
	buf_printf(out, "pid: %u\n", process->pid);
	for (size_t i = 0; i < launches->n_kernels; i++) {
		const struct watch_kernel *kernel = &launches->kernels[i];

		if (kernel->process != process || !kernel->kernel)
			continue;
		buf_printf(out, "\t0x%lx (", kernel->handle);
		if (kernel->kernel->resolved)
			text_add_safe(out, kernel->kernel->mangled);
		else
			buf_puts(out, "unknown kernel");
		buf_printf(out, ") -> %lu\n", kernel->count);
	}
}

static void add_launches(const struct watch_launches *launches, struct buf *out)
{
	uint64_t total = 0;

	for (size_t i = 0; i < launches->n_kernels; i++)
		total += launches->kernels[i].kernel ? launches->kernels[i].count : 0;
	buf_printf(out, "total kernel launches: %lu\n", total);
	for (size_t i = 0; i < launches->n_kernels; i++) {
		if (is_first_of_process(launches, i))
			add_kernels(launches, launches->kernels[i].process, out);
	}
}

/* ---- copies -------------------------------------------------------------------------------- */

/* It times synchronous copies, and takes their bytes by that time for the bandwidth. */
static void add_copies(const struct watch_copies *copies, struct buf *out)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < copies->n_rows; i++)
		calls += copies->rows[i].set || copies->rows[i].async ? 0 : copies->rows[i].calls;
	buf_printf(out, "Traced %lu cudaMemcpy calls\n", calls);
	for (size_t i = 0; i < copies->n_rows; i++) {
		const struct watch_copies_row *row = &copies->rows[i];
		double seconds = (double)row->ns / 1e9;

		if (row->set || row->async || !row->ns)
			continue;
		buf_printf(out, "\t%s %.5f bytes/sec for %.5f secs\n",
		           api_direction_name(row->direction), (double)row->bytes / seconds,
		           seconds);
	}
}

void page_classic(const struct watch_page *page, const struct page_options *options,
                  struct buf *out)
{
	if (page->memory) {
		add_allocations(page->memory, out);
		add_failures(page->memory, out);
	}
	if (page->launches)
		add_launches(page->launches, out);
	if (page->copies)
		add_copies(page->copies, out);
}

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
	AT_END(buf_free) struct buf rate = { 0 };

	page_add_rate(&rate, out->page, hook->calls, hook->calls_before);
	page_process_cell(table, hook->process);
	table_fields(table, &line);
	TABLE_CELLS(table, rate.data,
	            page_rate_thousandths(out->page, hook->calls, hook->calls_before));
	table_row(table, &line);
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
	buf_printf(out->text, "Hooks: %lu call%s, ", calls, calls == 1 ? "" : "s");
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
	AT_END(buf_free) struct buf text = { 0 };

	page_add_process(&text, process);
	table_text(table, text.data);
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
	buf_printf(out, "%12lu  ", count);
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
	table_note_if(out->table, rows > out->options->top, "... and %zu more (--top)",
	              rows - out->options->top);
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

#define FAILURES_MAX 1000 /* of one process on one page */

/* What failed most often in a process: pages do not tell which calls failed since the last one. */
static const struct watch_failure *usual_failure(const struct watch_memory *memory,
                                                 const struct process *process)
{
	for (size_t i = 0; i < memory->n_failures; i++)
		if (memory->failures[i].process == process)
			return &memory->failures[i];
	return NULL;
}

static void plot_failures(struct memory_plot *plot, const struct watch_page *page,
                          const struct held_process *process)
{
	const struct process *who = process->memory->process;
	const struct watch_failure *failure = usual_failure(page->memory, who);
	enum api_memory kind = MEMORY_DEVICE;
	uint64_t bytes = 0;

	if (failure && failure->function && failure->function->api)
		kind = api_memory(failure->function->api);
	if (failure && failure->count)
		bytes = failure->bytes / failure->count;
	for (uint64_t i = 0; i < process->failed_since && i < FAILURES_MAX; i++)
		memory_plot_failure(plot, page->time_ns, who, kind, bytes);
}

void page_plot(struct memory_plot *plot, const struct watch_page *page, const struct places *places)
{
	const struct held_process *processes;
	size_t n = places_processes(places, &processes);

	for (size_t i = 0; i < n; i++) {
		const struct held_process *process = &processes[i];

		for (size_t k = 0; k < process->n_totals; k++) {
			const struct watch_memory_totals *totals = &process->totals[k];

			if (totals->kind != MEMORY_VMM_VA)
				memory_plot_sample(plot, page->time_ns, totals->process,
				                   totals->kind, totals->live.bytes);
		}
		plot_failures(plot, page, process);
	}
}
