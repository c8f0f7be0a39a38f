// SPDX-License-Identifier: MIT
#include "live/live.h"

#include <string.h>

#include "table/columns.h"
#include "base/number.h"
#include "base/text.h"
#include "cuda/error.h"

#define BESIDE_PLACE 58 /* columns before the name of a place */
#define PLACE_LEAST  32
#define PLACE_MOST   100 /* where no terminal says how much there is */
#define FAILURES_MAX 5

struct printer {
	const struct watch_page *page;
	const struct live_options *options;
	struct buf *out;
};

/* ---- pieces -------------------------------------------------------------------------------- */

static void title(const struct printer *p, const char *text)
{
	buf_printf(p->out, p->options->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static void end_cell(struct columns *table)
{
	columns_end_cell(table);
}

static void bytes_cell(struct columns *table, uint64_t bytes)
{
	buf_bytes(&table->cells, bytes);
	end_cell(table);
}

static void count_cell(struct columns *table, uint64_t n)
{
	buf_u64(&table->cells, n);
	end_cell(table);
}

/* "+1.20 MiB/s" */
static void rate_cell(const struct printer *p, struct columns *table, int64_t bytes)
{
	uint64_t ns = p->page->time_ns - p->page->before_ns;
	double rate = ns ? (double)bytes * 1e9 / (double)ns : 0;

	if (rate) {
		buf_putc(&table->cells, rate < 0 ? '-' : '+');
		buf_bytes(&table->cells, number_u64(rate < 0 ? -rate : rate));
		buf_puts(&table->cells, "/s");
	} else {
		buf_putc(&table->cells, '0');
	}
	end_cell(table);
}

/* "812 ms", "9.1 s", "4 min", "3 h" */
static void add_age(struct buf *out, uint64_t ns)
{
	uint64_t seconds = ns / 1000000000;

	if (seconds < 1)
		buf_printf(out, "%llu ms", (unsigned long long)ns / 1000000);
	else if (seconds < 120)
		buf_printf(out, "%.1f s", (double)ns / 1e9);
	else if (seconds < 7200)
		buf_printf(out, "%llu min", (unsigned long long)seconds / 60);
	else
		buf_printf(out, "%llu h", (unsigned long long)seconds / 3600);
}

static void process_cell(struct columns *table, const struct process *process, bool ended)
{
	live_add_process(&table->cells, process);
	if (ended)
		buf_puts(&table->cells, ", ended");
	end_cell(table);
}

static uint64_t age_ns(const struct printer *p, uint64_t time_ns)
{
	return p->page->time_ns > time_ns ? p->page->time_ns - time_ns : 0;
}

/* ---- the head ------------------------------------------------------------------------------ */

/* "Memory: 2 processes hold 1.20 GiB"; for one that ran before nothing is not the whole truth. */
static void print_head(const struct printer *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), holding = 0;
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		holding += !processes[i].memory->ended && processes[i].memory->live.count;
		bytes += processes[i].memory->ended ? 0 : processes[i].memory->live.bytes;
	}
	if (!n) {
		buf_puts(p->out,
		         "Memory: nothing was allocated since the watch began (what was there "
		         "before is not known)\n");
		return;
	}
	buf_printf(p->out, "Memory: %zu process%s hold%s ", holding, holding == 1 ? "" : "es",
	           holding == 1 ? "s" : "");
	buf_bytes(p->out, bytes);
	buf_putc(p->out, '\n');
}

/* ---- processes ------------------------------------------------------------------------------- */

static void kind_row(struct columns *table, const struct watch_memory_totals *totals)
{
	buf_printf(&table->cells, "  %s", api_memory_name(totals->kind));
	end_cell(table);
	bytes_cell(table, totals->live.bytes);
	count_cell(table, totals->live.count);
	for (int i = 0; i < 4; i++)
		columns_text(table, "-");
}

/* Kinds are told apart where there is something to tell apart. */
static bool is_all_device(const struct held_process *process)
{
	for (size_t i = 0; i < process->n_totals; i++)
		if (process->totals[i].live.count && process->totals[i].kind != MEMORY_DEVICE)
			return false;
	return true;
}

static void process_rows(const struct printer *p, struct columns *table,
                         const struct held_process *process)
{
	const struct watch_process_memory *memory = process->memory;

	process_cell(table, memory->process, memory->ended);
	bytes_cell(table, memory->live.bytes);
	count_cell(table, memory->live.count);
	bytes_cell(table, memory->peak_bytes);
	rate_cell(p, table, process->grown_bytes);
	count_cell(table, memory->failed);
	count_cell(table, memory->unknown_frees);
	for (size_t i = 0; i < process->n_totals && !is_all_device(process); i++)
		if (process->totals[i].live.count)
			kind_row(table, &process->totals[i]);
}

/* Those that still run come first: of a long watch the last page has all that ever ended. */
static void print_processes(const struct printer *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), shown = 0;
	struct columns table;

	if (!n)
		return;
	columns_init(&table, "lrrrrrr", "PROCESS|LIVE|COUNT|PEAK|GROWTH|FAILED|FREES UNKNOWN");
	for (int ended = 0; ended < 2; ended++) {
		for (size_t i = 0; i < n && shown < p->options->top; i++) {
			if (processes[i].memory->ended != ended)
				continue;
			process_rows(p, &table, &processes[i]);
			shown++;
		}
	}
	buf_putc(p->out, '\n');
	table.screen = p->options->width;
	columns_print(&table, p->out);
	live_more(p->out, n, p->options);
}

/* "12 (python) ended; it had not freed 3 allocations, 12.00 MiB" */
static void print_ended(const struct printer *p)
{
	const struct held_process *processes;
	size_t n = places_processes(p->options->places, &processes), ended = 0;

	for (size_t i = 0; i < n; i++) {
		const struct held_process *process = &processes[i];

		if (!process->memory->ended || ended++ >= p->options->top)
			continue;
		buf_putc(p->out, '\n');
		live_add_process(p->out, process->memory->process);
		buf_puts(p->out, " ended; ");
		if (!process->unfreed.count) {
			buf_puts(p->out, "it had freed everything\n");
			continue;
		}
		buf_printf(p->out, "it had not freed %llu allocation%s, ",
		           (unsigned long long)process->unfreed.count,
		           process->unfreed.count == 1 ? "" : "s");
		buf_bytes(p->out, process->unfreed.bytes);
		buf_putc(p->out, '\n');
	}
	live_more(p->out, ended, p->options);
}

/* ---- places ---------------------------------------------------------------------------------- */

static size_t place_width(const struct printer *p)
{
	size_t width = p->options->width;

	if (!width)
		return PLACE_MOST;
	return width > BESIDE_PLACE + PLACE_LEAST ? width - BESIDE_PLACE : PLACE_LEAST;
}

/* "leaky::Model::grow_cache(unsigned long), app" */
static void add_frame(struct buf *out, const struct frame *frame, size_t width)
{
	struct buf name = { 0 }, short_name = { 0 };

	frame_add_name(&name, frame);
	text_add_name(&short_name, name.data, width);
	text_add_safe(out, short_name.data);
	if (frame->function) {
		buf_puts(out, "  ");
		text_add_safe(out, frame->module);
	}
	buf_free(&name);
	buf_free(&short_name);
}

static void place_cell(const struct printer *p, struct columns *table,
                       const struct held_place *place)
{
	if (place->frames && place->place.frames)
		add_frame(&table->cells, &place->frames[place->place.named], place_width(p));
	else
		buf_puts(&table->cells, "(no stack)");
	if (place->stacks > 1)
		buf_printf(&table->cells, "  by %zu ways", place->stacks);
	end_cell(table);
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

static void place_row(const struct printer *p, struct columns *table,
                      const struct held_place *place)
{
	bytes_cell(table, place->ended ? place->bytes : place->older_bytes);
	count_cell(table, place->ended ? place->count : place->older_count);
	add_age(&table->cells, age_ns(p, place->oldest_ns));
	end_cell(table);
	add_trend(&table->cells, place);
	end_cell(table);
	buf_u64(&table->cells, place->process->pid);
	end_cell(table);
	columns_text(table, place->function ? place->function->name : api_memory_name(place->kind));
	place_cell(p, table, place);
}

static void print_stack(const struct printer *p, const struct held_place *place)
{
	const struct place *where = &place->place;

	for (size_t i = 0; place->frames && i < where->frames; i++) {
		buf_printf(p->out, "    %s#%zu  ", i < 10 ? " " : "", i);
		add_frame(p->out, &place->frames[i],
		          p->options->width > 30 ? p->options->width - 20 : 400);
		buf_putc(p->out, '\n');
	}
	if (place->frames && where->deep)
		buf_printf(p->out, "     ...  more frames than are recorded\n");
	else if (place->frames && where->ends_in) {
		buf_puts(p->out, "     ...  cut short: no frame pointers in ");
		text_add_safe(p->out, where->ends_in);
		buf_putc(p->out, '\n');
	}
}

/* One line of a table; returns the next one. */
static const char *print_line(const struct printer *p, const char *line, bool red)
{
	size_t len = strcspn(line, "\n");

	buf_puts(p->out, red ? "\033[31m" : "");
	buf_add(p->out, line, len);
	buf_puts(p->out, red ? "\033[0m\n" : "\n");
	return line + len + 1;
}

/* Each row with its stack below it: one table all the same, so that its columns are in line. */
static void print_rows(const struct printer *p, const struct held_place *list, size_t n)
{
	struct columns table;
	struct buf text = { 0 };
	const char *line;

	columns_init(&table, "rrrlrll", "BYTES|COUNT|OLDEST|TREND|PID|FUNCTION|PLACE");
	for (size_t i = 0; i < n; i++)
		place_row(p, &table, &list[i]);
	columns_print(&table, &text);
	line = print_line(p, text.data, false);
	for (size_t i = 0; i < n; i++) {
		bool suspect = list[i].trend == TREND_SUSPECT && !list[i].ended;

		line = print_line(p, line, p->options->color && suspect);
		if (p->options->stacks)
			print_stack(p, &list[i]);
	}
	buf_free(&text);
}

static void print_places(const struct printer *p, const struct held_place *list, size_t n,
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

static void print_nothing_old(const struct printer *p, uint64_t older_ns)
{
	buf_puts(p->out, "  nothing of it is older than ");
	add_age(p->out, older_ns);
	buf_putc(p->out, '\n');
}

/* The list has old places first, then young ones, then those of processes that have ended. */
static void print_all_places(const struct printer *p)
{
	const struct held_place *list;
	size_t n = places_list(p->options->places, &list), old = 0, live;
	uint64_t older_ns = p->page->memory->older_ns;
	struct buf text = { 0 };

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
	print_places(p, list + live, n - live, "PLACES OF WHAT WAS NOT FREED");
	buf_free(&text);
}

/* Which modules cut stacks short: said once, below. */
static void print_cut_short(const struct printer *p)
{
	const struct held_place *list;
	size_t n = places_list(p->options->places, &list), cut = 0;
	const char *module = NULL;
	bool others = false;

	for (size_t i = 0; i < n; i++) {
		const struct held_place *place = &list[i];

		if (!place->frames || !place->place.ends_in ||
		    !(place->older_count || place->ended))
			continue;
		cut++;
		others |= module && strcmp(module, place->place.ends_in);
		module = module ? module : place->place.ends_in;
	}
	if (!cut || p->options->stacks)
		return;
	buf_printf(p->out,
	           "  %zu of these have stacks that may be cut short: no frame pointers in ", cut);
	text_add_safe(p->out, module);
	buf_puts(p->out, others ? " and others; --stacks shows which\n" : "\n");
}

/* ---- failures, losses ------------------------------------------------------------------------ */

static void print_failures(const struct printer *p)
{
	const struct watch_memory *memory = p->page->memory;
	struct columns table;

	if (!memory->n_failures)
		return;
	title(p, "FAILED ALLOCATIONS");
	columns_init(&table, "rrrll", "COUNT|BYTES|PID|FUNCTION|RESULT");
	for (size_t i = 0; i < memory->n_failures && i < FAILURES_MAX; i++) {
		const struct watch_failure *failure = &memory->failures[i];
		const char *result = failure->function ? cuda_error_name(failure->function->layer,
		                                                         failure->result)
		                                       : NULL;

		count_cell(&table, failure->count);
		bytes_cell(&table, failure->bytes);
		count_cell(&table, failure->process->pid);
		columns_text(&table, failure->function ? failure->function->name : "?");
		if (result)
			buf_puts(&table.cells, result);
		else
			buf_s64(&table.cells, failure->result);
		end_cell(&table);
	}
	table.screen = p->options->width;
	columns_print(&table, p->out);
}

static void print_missed(const struct printer *p)
{
	if (p->page->memory->no_stack)
		buf_printf(p->out, "  %llu allocations without a place: their stack was not kept\n",
		           (unsigned long long)p->page->memory->no_stack);
}

void live_memory_text(const struct watch_page *page, const struct live_options *options,
                      struct buf *out)
{
	struct printer p = { page, options, out };

	print_head(&p);
	print_processes(&p);
	print_ended(&p);
	print_all_places(&p);
	print_cut_short(&p);
	print_failures(&p);
	print_missed(&p);
}
