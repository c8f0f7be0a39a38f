// SPDX-License-Identifier: MIT
/* The page of `cuscope memleak`: live memory by process and by place. */
#include "watch/page.h"

#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "cuda/error.h"

/* ---- page memory json ---------------------------------------------------------------------- */

/* The page of `cuscope memleak` as an object of JSON. */

static uint64_t json_age_ns(const struct watch_page *page, uint64_t time_ns)
{
	return page->time_ns > time_ns ? page->time_ns - time_ns : 0;
}

static void add_count(struct json *json, const char *key, const struct watch_count *count)
{
	json_open(json, key, '{');
	json_u64(json, "count", count->count);
	json_u64(json, "bytes", count->bytes);
	json_close(json, '}');
}

/* ---- processes ------------------------------------------------------------------------------- */

/* What is known of it since the page before; NULL for one whose end was told then. */
static const struct held_process *change_of(const struct places *places,
                                            const struct process *process)
{
	const struct held_process *list;
	size_t n = places_processes(places, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].memory->process == process)
			return &list[i];
	return NULL;
}

static void add_beyond(struct json *json, const struct memory_beyond *beyond)
{
	if (!beyond->told)
		return;
	json_open(json, "by_nvml", '{');
	json_u64(json, "bytes", beyond->gpu_bytes);
	json_u64(json, "held_by_calls", beyond->by_calls);
	json_u64(json, "held_by_nccl", beyond->nccl_bytes);
	json_s64(json, "rest", beyond->rest_bytes);
	if (beyond->whole)
		json_s64(json, "first_rest", beyond->first_rest);
	json_bool(json, "all_calls_seen", beyond->whole);
	json_close(json, '}');
}

static void add_process(struct json *json, const struct watch_process_memory *memory,
                        const struct held_process *change)
{
	json_open(json, NULL, '{');
	page_json_process(json, memory->process);
	json_bool(json, "ended", memory->ended);
	add_count(json, "live", &memory->live);
	json_u64(json, "peak_bytes", memory->peak_bytes);
	json_s64(json, "grown_bytes", change ? change->grown_bytes : 0);
	json_u64(json, "failed", memory->failed);
	json_u64(json, "failed_since", change ? change->failed_since : 0);
	json_u64(json, "unknown_frees", memory->unknown_frees);
	if (change)
		add_beyond(json, &change->beyond);
	json_close(json, '}');
}

static void add_kind(struct json *json, const struct watch_memory_totals *totals)
{
	json_open(json, NULL, '{');
	page_json_process(json, totals->process);
	json_string(json, "kind", api_memory_name(totals->kind));
	add_count(json, "allocated", &totals->allocated);
	add_count(json, "freed", &totals->freed);
	add_count(json, "replaced", &totals->replaced);
	add_count(json, "released_with_context", &totals->context);
	add_count(json, "released_by_exit", &totals->exit);
	add_count(json, "untracked", &totals->untracked);
	add_count(json, "live", &totals->live);
	json_close(json, '}');
}

/* ---- places ---------------------------------------------------------------------------------- */

static void json_add_frame(struct json *json, const char *key, const struct stack_frame *frame)
{
	json_open(json, key, '{');
	json_string_if(json, "function", frame->function);
	json_string_if(json, "module", frame->module);
	json_string_if(json, "file", frame->file);
	json_u64_if(json, "line", frame->line);
	json_u64_if(json, "offset", frame->offset);
	json_close(json, '}');
}

static void add_stack(struct json *json, const struct held_place *place)
{
	const struct stack *stack = place->stack;
	AT_END(buf_free) struct buf label = { 0 };

	place_label(place->frame, &label);
	json_string(json, "place_name", label.data);
	json_add_frame(json, "place", place->frame);
	json_u64(json, "stacks", place->stacks);
	json_bool(json, "stack_whole", stack->end == STACK_WHOLE && !stack->python_cut);
	if (stack->end != STACK_WHOLE)
		json_string(json, "stack_ends_by", stack_end_text(stack->end));
	json_open(json, "stack", '[');
	for (size_t i = 0; i < stack->n_frames; i++)
		json_add_frame(json, NULL, stack->frames[i]);
	json_close(json, ']');
}

static void json_add_place(struct json *json, const struct watch_page *page,
                           const struct held_place *place)
{
	json_open(json, NULL, '{');
	page_json_process(json, place->process);
	json_bool(json, "ended", place->ended);
	json_string(json, "kind", api_memory_name(place->kind));
	if (place->function)
		json_string(json, "function", place->function->name);
	json_u64(json, "count", place->count);
	json_u64(json, "bytes", place->bytes);
	json_u64(json, "older_count", place->older_count);
	json_u64(json, "older_bytes", place->older_bytes);
	json_u64(json, "oldest_ns", json_age_ns(page, place->oldest_ns));
	json_string(json, "trend", trend_text(place->trend));
	json_u64(json, "grew", place->grew);
	json_s64(json, "grown_bytes", place->grown_bytes);
	if (place->stack)
		add_stack(json, place);
	json_close(json, '}');
}

static void page_memory_failures(const struct page_out *out);

void page_memory_json(const struct page_out *out)
{
	const struct page_options *options = out->options;
	const struct watch_page *page = out->page;
	const struct watch_memory *memory = page->memory;
	struct json *json = out->json;
	const struct held_place *list;
	size_t n = places_list(options->places, &list);

	json_open(json, "memory", '{');
	json_u64(json, "older_ns", memory->older_ns);
	json_open(json, "processes", '[');
	for (size_t i = 0; i < memory->n_processes; i++)
		add_process(json, &memory->processes[i],
		            change_of(options->places, memory->processes[i].process));
	json_close(json, ']');
	json_open(json, "kinds", '[');
	for (size_t i = 0; i < memory->n_totals; i++)
		add_kind(json, &memory->totals[i]);
	json_close(json, ']');
	json_open(json, "places", '[');
	for (size_t i = 0; i < n; i++)
		json_add_place(json, page, &list[i]);
	json_close(json, ']');
	page_memory_failures(out);
	json_u64(json, "without_stack", memory->no_stack);
	json_u64(json, "too_fast_for_stacks", memory->too_fast);
	json_close(json, '}');
}

/* ---- page memory --------------------------------------------------------------------------- */

#define BESIDE_PLACE 58 /* columns before the name of a place */
#define PLACE_LEAST  32
#define PLACE_MOST   100 /* where no terminal says how much there is */
#define FAILURES_MAX 5

/* ---- pieces -------------------------------------------------------------------------------- */

static void title(const struct page_out *p, const char *text)
{
	buf_printf(p->text, p->options->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

/* "+1.20 MiB/s" */
static void add_growth(const struct page_out *p, struct buf *out, int64_t bytes)
{
	uint64_t ns = p->page->time_ns - p->page->before_ns;
	double rate = ns ? (double)bytes * 1e9 / (double)ns : 0;

	if (!rate) {
		buf_putc(out, '0');
		return;
	}
	buf_putc(out, rate < 0 ? '-' : '+');
	buf_bytes(out, number_u64(rate < 0 ? -rate : rate));
	buf_puts(out, "/s");
}

/* "812 ms", "9.1 s", "4 min", "3 h" */
static void add_age(struct buf *out, uint64_t ns)
{
	uint64_t seconds = ns / 1000000000;

	if (seconds < 1)
		buf_printf(out, "%lu ms", ns / 1000000);
	else if (seconds < 120)
		buf_printf(out, "%.1f s", (double)ns / 1e9);
	else if (seconds < 7200)
		buf_printf(out, "%lu min", seconds / 60);
	else
		buf_printf(out, "%lu h", seconds / 3600);
}

static uint64_t age_ns(const struct page_out *p, uint64_t time_ns)
{
	return p->page->time_ns > time_ns ? p->page->time_ns - time_ns : 0;
}

/* ---- the head ------------------------------------------------------------------------------ */

/* "Memory: 2 processes hold 1.20 GiB"; for one that ran before nothing is not the whole truth. */
static void print_head(const struct page_out *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), holding = 0;
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		holding += !processes[i].memory->ended && processes[i].memory->live.count;
		bytes += processes[i].memory->ended ? 0 : processes[i].memory->live.bytes;
	}
	if (!n) {
		buf_puts(p->text,
		         "Memory: nothing was allocated since the watch began (what was there "
		         "before is not known)\n");
		return;
	}
	buf_printf(p->text, "Memory: %zu process%s hold%s ", holding, holding == 1 ? "" : "es",
	           holding == 1 ? "s" : "");
	buf_bytes(p->text, bytes);
	buf_putc(p->text, '\n');
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A process, or below it what it holds of one kind. */
static const struct table_column process_columns[] = {
	{ "PROCESS", TABLE_WORDS },        { "LIVE", TABLE_BYTES },    { "COUNT", TABLE_NUMBER },
	{ "PEAK", TABLE_BYTES },           { "GROWTH", TABLE_FIGURE }, { "FAILED", TABLE_NUMBER },
	{ "FREES UNKNOWN", TABLE_NUMBER },
};

static void kind_row(struct table *table, const struct watch_memory_totals *totals)
{
	AT_END(buf_free) struct buf name = { 0 };

	buf_printf(&name, "  %s", api_memory_name(totals->kind));
	TABLE_CELLS(table, name.data, totals->live.bytes, totals->live.count);
	for (int i = 0; i < 4; i++)
		table_unknown(table);
	table_end_row(table);
}

/* Kinds are told apart where there is something to tell apart. */
static bool is_all_device(const struct held_process *process)
{
	for (size_t i = 0; i < process->n_totals; i++)
		if (process->totals[i].live.count && process->totals[i].kind != MEMORY_DEVICE)
			return false;
	return true;
}

static void process_rows(const struct page_out *p, const struct held_process *process)
{
	const struct watch_process_memory *memory = process->memory;
	AT_END(buf_free) struct buf who = { 0 }, growth = { 0 };

	page_add_process(&who, memory->process);
	buf_puts(&who, memory->ended ? ", ended" : "");
	add_growth(p, &growth, process->grown_bytes);
	TABLE_CELLS(p->table, who.data, memory->live.bytes, memory->live.count, memory->peak_bytes);
	if (memory->ended) /* what went with it in its last moments is no rate */
		table_unknown(p->table);
	else
		table_text(p->table, growth.data);
	TABLE_LAST(p->table, memory->failed, memory->unknown_frees);
	for (size_t i = 0; i < process->n_totals && !is_all_device(process); i++)
		if (process->totals[i].live.count)
			kind_row(p->table, &process->totals[i]);
}

/* Those that still run come first: of a long watch the last page has all that ever ended. */
static void print_processes(const struct page_out *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), shown = 0;

	if (!n)
		return;
	buf_putc(p->text, '\n');
	table_begin(p->table, NULL, NULL, TABLE_COLUMNS(process_columns));
	table_whole(p->table);
	for (int ended = 0; ended < 2; ended++) {
		for (size_t i = 0; i < n && shown < p->options->top; i++) {
			if (processes[i].memory->ended != ended)
				continue;
			process_rows(p, &processes[i]);
			shown++;
		}
	}
	page_note_more(p, n);
	table_end(p->table, NULL);
}

static const struct table_column beyond_columns[] = {
	{ "PROCESS", TABLE_WORDS },    { "BY NVML", TABLE_BYTES }, { "BY CALLS", TABLE_BYTES },
	{ "OF NCCL", TABLE_BYTES },    { "REST", TABLE_BYTES },    { "REST AT FIRST", TABLE_BYTES },
	{ "SINCE THEN", TABLE_WORDS },
};

static void beyond_row(const struct page_out *p, const struct held_process *process)
{
	const struct memory_beyond *beyond = &process->beyond;
	int64_t grown = beyond->rest_bytes - beyond->first_rest;
	AT_END(buf_free) struct buf who = { 0 }, since = { 0 };

	page_add_process(&who, process->memory->process);
	TABLE_CELLS(p->table, who.data, beyond->gpu_bytes, beyond->by_calls, beyond->nccl_bytes);
	if (beyond->rest_bytes < 0) {
		for (int i = 0; i < 3; i++)
			table_unknown(p->table);
		table_end_row(p->table);
		return;
	}
	TABLE_CELLS(p->table, (uint64_t)beyond->rest_bytes);
	if (!beyond->whole) {
		table_unknown(p->table);
		table_unknown(p->table);
		table_end_row(p->table);
		return;
	}
	buf_putc(&since, grown < 0 ? '-' : '+');
	buf_bytes(&since, (uint64_t)(grown < 0 ? -grown : grown));
	TABLE_LAST(p->table, (uint64_t)beyond->first_rest, since.data);
}

/* What NVML tells of processes and their calls do not. */
static void print_beyond(const struct page_out *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), told = 0, shown = 0;

	for (size_t i = 0; i < n; i++)
		told += processes[i].beyond.told;
	if (!told)
		return;
	title(p, "MEMORY THAT NO CALL HOLDS");
	table_begin(p->table, NULL, NULL, TABLE_COLUMNS(beyond_columns));
	table_whole(p->table);
	for (size_t i = 0; i < n && shown < p->options->top; i++) {
		if (!processes[i].beyond.told)
			continue;
		beyond_row(p, &processes[i]);
		shown++;
	}
	page_note_more(p, told);
	table_end(p->table, NULL);
}

/* "12 (python) ended; it had not freed 3 allocations, 12.00 MiB" */
static void print_ended(const struct page_out *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), ended = 0;

	for (size_t i = 0; i < n; i++) {
		const struct held_process *process = &processes[i];

		if (!process->memory->ended || ended++ >= p->options->top)
			continue;
		buf_putc(p->text, '\n');
		page_add_process(p->text, process->memory->process);
		buf_puts(p->text, " ended; ");
		if (!process->unfreed.count) {
			buf_puts(p->text, "it had freed everything\n");
			continue;
		}
		buf_printf(p->text, "it had not freed %lu allocation%s, ", process->unfreed.count,
		           process->unfreed.count == 1 ? "" : "s");
		buf_bytes(p->text, process->unfreed.bytes);
		buf_putc(p->text, '\n');
	}
	if (ended > p->options->top)
		buf_printf(p->text, "  ... and %zu more (--top)\n", ended - p->options->top);
}

/* ---- places ---------------------------------------------------------------------------------- */

static size_t place_width(const struct page_out *p)
{
	size_t width = p->options->width;

	if (!width)
		return PLACE_MOST;
	return width > BESIDE_PLACE + PLACE_LEAST ? width - BESIDE_PLACE : PLACE_LEAST;
}

/* "leaky::Model::grow_cache(unsigned long) (app)", "Cache.fill (train.py:88)": where the name is
 * too long it is cut, and not what stands behind. */
static void add_frame(struct buf *out, const struct stack_frame *frame, size_t width)
{
	size_t len = frame && frame->function ? strlen(frame->function) : 0;
	AT_END(buf_free) struct buf label = { 0 }, shown = { 0 };

	place_label(frame, &label);
	if (len)
		text_add_name(&shown, frame->function, width);
	buf_puts(&shown, label.data + len);
	text_add_safe(out, shown.data);
}

static void add_place(const struct page_out *p, struct buf *out, const struct held_place *place)
{
	add_frame(out, place->frame, place_width(p));
	if (place->stacks > 1)
		buf_printf(out, "  by %zu ways", place->stacks);
}

static void add_trend(struct buf *out, const struct held_place *place)
{
	if (place->ended) {
		buf_puts(out, "not freed");
		return;
	}
	buf_puts(out, trend_text(place->trend));
	if (place->trend == TREND_SUSPECT)
		buf_printf(out, " %ux", place->grew);
}

static const struct table_column place_columns[] = {
	{ "BYTES", TABLE_BYTES }, { "COUNT", TABLE_NUMBER }, { "OLDEST", TABLE_FIGURE },
	{ "TREND", TABLE_WORDS }, { "PID", TABLE_NUMBER },   { "FUNCTION", TABLE_WORDS },
	{ "PLACE", TABLE_TEXT },
};

static void place_row(const struct page_out *p, struct table *table, const struct held_place *place)
{
	AT_END(buf_free) struct buf age = { 0 }, trend = { 0 }, where = { 0 };

	add_age(&age, age_ns(p, place->oldest_ns));
	add_trend(&trend, place);
	add_place(p, &where, place);
	TABLE_LAST(table, place->ended ? place->bytes : place->older_bytes,
	           place->ended ? place->count : place->older_count, age.data, trend.data,
	           place->process->pid,
	           place->function ? place->function->name : api_memory_name(place->kind),
	           where.data);
}

static void print_stack(const struct page_out *p, const struct held_place *place)
{
	const struct stack *stack = place->stack;

	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		buf_printf(p->text, "    %s#%zu  ", i < 10 ? " " : "", i);
		add_frame(p->text, stack->frames[i],
		          p->options->width > 30 ? p->options->width - 20 : 400);
		buf_putc(p->text, '\n');
	}
	if (stack && stack->end != STACK_WHOLE)
		buf_printf(p->text, "     ...  %s: %s\n",
		           stack->end == STACK_BY_POINTERS ? "frames may be missing" : "cut short",
		           stack_end_text(stack->end));
	if (stack && stack->python_cut)
		buf_puts(p->text, "     ...  some frames of Python are not known\n");
}

/* One line of a table; returns the next one. */
static const char *print_line(const struct page_out *p, const char *line, bool red)
{
	size_t len = strcspn(line, "\n");

	buf_puts(p->text, red ? "\033[31m" : "");
	buf_add(p->text, line, len);
	buf_puts(p->text, red ? "\033[0m\n" : "\n");
	return line + len + 1;
}

/* Each row with its stack below it: one table all the same, so that its columns are in line. */
static void print_rows(const struct page_out *p, const struct held_place *list, size_t n)
{
	AT_END(buf_free) struct buf text = { 0 };
	struct table *table = table_open(&(struct table_options){ .page = &text }, false);
	const char *line;

	table_begin(table, NULL, NULL, TABLE_COLUMNS(place_columns));
	for (size_t i = 0; i < n; i++)
		place_row(p, table, &list[i]);
	table_end(table, NULL);
	table_close(table);
	line = print_line(p, text.data, false);
	for (size_t i = 0; i < n; i++) {
		bool suspect = list[i].trend == TREND_SUSPECT && !list[i].ended;

		line = print_line(p, line, p->options->color && suspect);
		if (p->options->stacks)
			print_stack(p, &list[i]);
	}
}

static void print_places(const struct page_out *p, const struct held_place *list, size_t n,
                         const char *what)
{
	size_t shown = p->options->top && n > p->options->top ? p->options->top : n;
	struct buf text = { 0 };

	if (!n)
		return;
	if (shown < n)
		buf_printf(&text, "THE LARGEST %zu OF %zu ", shown, n);
	buf_puts(&text, what);
	title(p, text.data);
	buf_free(&text);
	print_rows(p, list, shown);
}

static void print_nothing_old(const struct page_out *p, uint64_t older_ns)
{
	buf_puts(p->text, "  nothing of it is older than ");
	add_age(p->text, older_ns);
	buf_putc(p->text, '\n');
}

/* The list has old places first, then young ones, then those of processes that have ended. */
static void print_all_places(const struct page_out *p)
{
	const struct held_place *list;
	size_t n = places_list(p->options->places, &list), old = 0, live;
	uint64_t older_ns = p->page->memory->older_ns;
	AT_END(buf_free) struct buf text = { 0 };

	while (old < n && !list[old].ended && list[old].older_count)
		old++;
	for (live = old; live < n && !list[live].ended;)
		live++;
	buf_puts(&text, "PLACES WITH LIVE MEMORY");
	if (older_ns) {
		buf_puts(&text, " OLDER THAN ");
		add_age(&text, older_ns);
	}
	if (old)
		print_places(p, list, old, text.data);
	else if (live)
		print_nothing_old(p, older_ns);
	print_places(p, n ? list + live : list, n - live, "PLACES OF WHAT WAS NOT FREED");
}

/* Why stacks end early: said once, below. */
static void print_cut_short(const struct page_out *p)
{
	const struct held_place *list;
	size_t n = places_list(p->options->places, &list), cut = 0;
	enum stack_end end = STACK_WHOLE;
	bool others = false;

	for (size_t i = 0; i < n; i++) {
		const struct stack *stack = list[i].stack;

		if (!stack || stack->end == STACK_WHOLE || stack->end == STACK_BY_POINTERS ||
		    !(list[i].older_count || list[i].ended))
			continue;
		others |= cut++ && stack->end != end;
		end = stack->end;
	}
	if (cut && !p->options->stacks)
		buf_printf(p->text, "  %zu of these have stacks that are cut short: %s%s\n", cut,
		           stack_end_text(end), others ? " and others; --stacks shows which" : "");
}

/* ---- failures, losses ------------------------------------------------------------------------ */

#define AT(member) TABLE_AT(struct watch_failure, member)

static const struct table_column failure_columns[] = {
	{ TABLE_JSON(TABLE_VIA(struct watch_failure, process, pid), "pid") },
	{ TABLE_JSON(TABLE_VIA(struct watch_failure, process, comm), "process") },
	{ TABLE_JSON(TABLE_VIA(struct watch_failure, function, name), "function"), TABLE_ABSENT },
	{ TABLE_JSON(AT(result), "code") },
	{ .key = "error", .flags = TABLE_ABSENT },
	{ "COUNT", TABLE_NUMBER, AT(count), "count" },
	{ "BYTES", TABLE_BYTES, AT(bytes), "bytes" },
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct watch_failure, process, pid) },
	{ "FUNCTION", TABLE_WORDS },
	{ "RESULT", TABLE_TEXT },
};

static void failure_row(struct table *table, const struct watch_failure *failure)
{
	const struct function *function = failure->function;
	const char *error = function ? cuda_error_name(function->layer, failure->result) : NULL;

	table_fields(table, failure);
	table_text(table, error);
	table_fields(table, failure);
	table_text(table, function ? function->name : "?");
	if (error)
		table_text(table, error);
	else
		table_s64(table, failure->result);
	table_end_row(table);
}

static void page_memory_failures(const struct page_out *p)
{
	const struct watch_memory *memory = p->page->memory;

	table_begin(p->table, "failures", "FAILED ALLOCATIONS", TABLE_COLUMNS(failure_columns));
	table_whole(p->table);
	for (size_t i = 0; i < memory->n_failures && (p->json || i < FAILURES_MAX); i++)
		failure_row(p->table, &memory->failures[i]);
	table_end(p->table, NULL);
}

static void print_missed(const struct page_out *p)
{
	if (p->page->memory->no_stack)
		buf_printf(p->text, "  %lu allocations without a place: their stack was not kept\n",
		           p->page->memory->no_stack);
	if (p->page->memory->too_fast)
		buf_printf(p->text,
		           "  %lu allocations without a place: they came faster than stacks are "
		           "walked, 10,000 a second of a thread\n",
		           p->page->memory->too_fast);
}

void page_memory_text(const struct page_out *p)
{
	print_head(p);
	print_processes(p);
	print_beyond(p);
	print_ended(p);
	print_all_places(p);
	print_cut_short(p);
	page_memory_failures(p);
	print_missed(p);
}
