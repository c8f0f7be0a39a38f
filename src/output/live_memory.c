// SPDX-License-Identifier: MIT
#include "output/live.h"

#include "analysis/columns.h"
#include "base/text.h"
#include "cuda/error.h"

/* ---- totals -------------------------------------------------------------------------------- */

static void count_cell(struct columns *table, struct watch_count count)
{
	if (count.count) {
		buf_u64(&table->cells, count.count);
		buf_puts(&table->cells, " / ");
		buf_bytes(&table->cells, count.bytes);
	} else {
		buf_putc(&table->cells, '-');
	}
	columns_end_cell(table);
}

static void add_totals(const struct watch_memory *memory, const struct live_options *options,
                       struct buf *out)
{
	struct columns table;

	if (!memory->n_totals)
		return;
	columns_init(&table, "llrrrrr", "PROCESS|KIND|LIVE|ALLOCATED|FREED|AT EXIT|WITH CONTEXT");
	for (size_t i = 0; i < memory->n_totals && i < options->top; i++) {
		const struct watch_memory_totals *totals = &memory->totals[i];

		live_add_process(&table.cells, totals->process);
		columns_end_cell(&table);
		columns_text(&table, api_memory_name(totals->kind));
		count_cell(&table, totals->live);
		count_cell(&table, totals->allocated);
		count_cell(&table, totals->freed);
		count_cell(&table, totals->exit);
		count_cell(&table, totals->context);
	}
	columns_print(&table, out);
	live_more(out, memory->n_totals, options);
}

/* ---- places -------------------------------------------------------------------------------- */

static void add_frames(const struct watch_stack *stack, const struct live_options *options,
                       struct buf *out)
{
	size_t count = stack ? stack->n_frames : 0;

	if (count && !options->stacks)
		count = 1;
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s0x%llx", i ? " < " : "", (unsigned long long)stack->frames[i]);
	if (!count)
		buf_putc(out, '-');
	if (options->stacks && stack && stack->deep)
		buf_puts(out, " < ...");
}

static void add_places(const struct watch_page *page, const struct live_options *options,
                       struct buf *out)
{
	const struct watch_memory *memory = page->memory;
	size_t older = 0;
	struct columns table;

	columns_init(&table, "lrrrlll", "PROCESS|LIVE|BYTES|OLDEST|KIND|FUNCTION|FROM");
	for (size_t i = 0; i < memory->n_places; i++) {
		const struct watch_place *place = &memory->places[i];

		if (!place->older_count || older++ >= options->top)
			continue;
		live_add_process(&table.cells, place->process);
		columns_end_cell(&table);
		buf_u64(&table.cells, place->older_count);
		columns_end_cell(&table);
		buf_bytes(&table.cells, place->older_bytes);
		columns_end_cell(&table);
		buf_duration(&table.cells, page->time_ns - place->oldest_ns);
		columns_end_cell(&table);
		columns_text(&table, api_memory_name(place->kind));
		columns_text(&table, place->function ? place->function->name : "?");
		add_frames(place->stack, options, &table.cells);
		columns_end_cell(&table);
	}
	if (older) {
		buf_puts(out, "  live for ");
		buf_duration(out, memory->older_ns);
		buf_puts(out, " and longer\n");
		columns_print(&table, out);
	} else {
		buf_free(&table.cells);
	}
	live_more(out, older, options);
}

static void add_failures(const struct watch_memory *memory, const struct live_options *options,
                         struct buf *out)
{
	for (size_t i = 0; i < memory->n_failures && i < options->top; i++) {
		const struct watch_failure *failure = &memory->failures[i];
		const char *name = failure->function ? cuda_error_name(failure->function->layer,
		                                                       failure->result)
		                                     : NULL;

		buf_puts(out, "  failed in ");
		live_add_process(out, failure->process);
		buf_printf(out, ": %s %llu times, %s (%d)\n",
		           failure->function ? failure->function->name : "?",
		           (unsigned long long)failure->count, name ? name : "error",
		           failure->result);
	}
	live_more(out, memory->n_failures, options);
}

void live_memory_text(const struct watch_page *page, const struct live_options *options,
                      struct buf *out)
{
	const struct watch_memory *memory = page->memory;

	buf_puts(out, "Memory\n");
	add_totals(memory, options, out);
	add_places(page, options, out);
	add_failures(memory, options, out);
	for (size_t i = 0; i < memory->n_processes; i++) {
		if (!memory->processes[i].unknown_frees)
			continue;
		buf_puts(out, "  ");
		live_add_process(out, memory->processes[i].process);
		buf_printf(out, " freed %llu addresses whose allocation was not seen\n",
		           (unsigned long long)memory->processes[i].unknown_frees);
	}
	if (memory->no_stack)
		buf_printf(out, "  %llu allocations without a place: their stack was not kept\n",
		           (unsigned long long)memory->no_stack);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void count_json(struct json *json, const char *key, struct watch_count count)
{
	json_open(json, key, '{');
	json_u64(json, "count", count.count);
	json_u64(json, "bytes", count.bytes);
	json_close(json, '}');
}

static void processes_json(struct json *json, const struct watch_memory *memory)
{
	json_open(json, "processes", '[');
	for (size_t i = 0; i < memory->n_processes; i++) {
		const struct watch_process_memory *process = &memory->processes[i];

		json_open(json, NULL, '{');
		live_json_process(json, process->process);
		json_bool(json, "ended", process->ended);
		count_json(json, "live", process->live);
		json_u64(json, "peak_bytes", process->peak_bytes);
		json_u64(json, "failed", process->failed);
		json_u64(json, "unknown_frees", process->unknown_frees);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void kinds_json(struct json *json, const struct watch_memory *memory)
{
	json_open(json, "kinds", '[');
	for (size_t i = 0; i < memory->n_totals; i++) {
		const struct watch_memory_totals *totals = &memory->totals[i];

		json_open(json, NULL, '{');
		live_json_process(json, totals->process);
		json_string(json, "kind", api_memory_name(totals->kind));
		count_json(json, "allocated", totals->allocated);
		count_json(json, "freed", totals->freed);
		count_json(json, "replaced", totals->replaced);
		count_json(json, "released_with_context", totals->context);
		count_json(json, "released_by_exit", totals->exit);
		count_json(json, "untracked", totals->untracked);
		count_json(json, "live", totals->live);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void stack_json(struct json *json, const struct watch_stack *stack)
{
	char text[24];

	json_open(json, "stack", '[');
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)stack->frames[i]);
		json_string(json, NULL, text);
	}
	json_close(json, ']');
	if (stack && stack->deep)
		json_bool(json, "cut_short", true);
}

static void places_json(struct json *json, const struct watch_page *page)
{
	const struct watch_memory *memory = page->memory;

	json_open(json, "places", '[');
	for (size_t i = 0; i < memory->n_places; i++) {
		const struct watch_place *place = &memory->places[i];

		json_open(json, NULL, '{');
		live_json_process(json, place->process);
		json_string(json, "kind", api_memory_name(place->kind));
		if (place->function)
			json_string(json, "function", place->function->name);
		json_u64(json, "count", place->count);
		json_u64(json, "bytes", place->bytes);
		json_u64(json, "older_count", place->older_count);
		json_u64(json, "older_bytes", place->older_bytes);
		json_u64(json, "oldest_ns", page->time_ns - place->oldest_ns);
		stack_json(json, place->stack);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void failures_json(struct json *json, const struct watch_memory *memory)
{
	json_open(json, "failures", '[');
	for (size_t i = 0; i < memory->n_failures; i++) {
		const struct watch_failure *failure = &memory->failures[i];
		const char *name = failure->function ? cuda_error_name(failure->function->layer,
		                                                       failure->result)
		                                     : NULL;

		json_open(json, NULL, '{');
		live_json_process(json, failure->process);
		if (failure->function)
			json_string(json, "function", failure->function->name);
		json_s64(json, "code", failure->result);
		if (name)
			json_string(json, "error", name);
		json_u64(json, "count", failure->count);
		json_u64(json, "bytes", failure->bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void live_memory_json(const struct watch_page *page, const struct live_options *options,
                      struct json *json)
{
	json_open(json, "memory", '{');
	processes_json(json, page->memory);
	kinds_json(json, page->memory);
	places_json(json, page);
	failures_json(json, page->memory);
	json_u64(json, "without_stack", page->memory->no_stack);
	json_close(json, '}');
}
