// SPDX-License-Identifier: MIT
/* The page of `cuscope memleak` as an object of JSON. */
#include "watch/page.h"

static uint64_t age_ns(const struct watch_page *page, uint64_t time_ns)
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

static void add_frame(struct json *json, const char *key, const struct stack_frame *frame)
{
	json_open(json, key, '{');
	if (frame->function)
		json_string(json, "function", frame->function);
	if (frame->module)
		json_string(json, "module", frame->module);
	if (frame->file)
		json_string(json, "file", frame->file);
	if (frame->line)
		json_u64(json, "line", frame->line);
	if (frame->offset)
		json_u64(json, "offset", frame->offset);
	json_close(json, '}');
}

static void add_stack(struct json *json, const struct held_place *place)
{
	const struct stack *stack = place->stack;
	struct buf label = { 0 };

	place_label(place->frame, &label);
	json_string(json, "place_name", label.data);
	add_frame(json, "place", place->frame);
	json_u64(json, "stacks", place->stacks);
	json_bool(json, "stack_whole", stack->end == STACK_WHOLE && !stack->python_cut);
	if (stack->end != STACK_WHOLE)
		json_string(json, "stack_ends_by", stack_end_text(stack->end));
	json_open(json, "stack", '[');
	for (size_t i = 0; i < stack->n_frames; i++)
		add_frame(json, NULL, stack->frames[i]);
	json_close(json, ']');
	buf_free(&label);
}

static void add_place(struct json *json, const struct watch_page *page,
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
	json_u64(json, "oldest_ns", age_ns(page, place->oldest_ns));
	json_string(json, "trend", trend_text(place->trend));
	json_u64(json, "grew", place->grew);
	json_s64(json, "grown_bytes", place->grown_bytes);
	if (place->stack)
		add_stack(json, place);
	json_close(json, '}');
}

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
		add_place(json, page, &list[i]);
	json_close(json, ']');
	page_memory_failures(out);
	json_u64(json, "without_stack", memory->no_stack);
	json_u64(json, "too_fast_for_stacks", memory->too_fast);
	json_close(json, '}');
}
