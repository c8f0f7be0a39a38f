// SPDX-License-Identifier: MIT
#include "report/memory_use.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/place.h"
#include "base/map.h"
#include "base/order.h"
#include "table/longest.h"

/* No padding: it is hashed whole. */
struct place_use_key {
	uint32_t function, place;
};

struct place_use {
	struct place_use_key key;
	struct memory_place_row row; /* its label is set when rows are made */
	UT_hash_handle hh;
};

struct memory_use {
	struct consumer consumer; /* first: what callers hold */
	struct memory *memory;
	struct memory_nvml *nvml;          /* NULL: NVML told nothing */
	const struct process **processes;  /* by id: those that allocated */
	const struct function **functions; /* by id: those that did it */
	size_t n_processes, n_functions;
	struct longest exited; /* struct kept_allocation, so far */
	struct longest kept;   /* and what is live: made for memory_use_kept() */
	struct memory_kind_row *kinds;
	struct memory_function_row *by_function;
	struct stack_places *places;
	struct place_use *place_uses;
	struct memory_place_row *by_place;
};

ORDER_BY(bigger, struct kept_allocation, DOWN(allocation.bytes), UP(allocation.time_ns));

static void keep_big(struct longest *biggest, const struct memory_allocation *allocation,
                     bool exited)
{
	if (allocation->kind != MEMORY_VMM_VA) /* no memory */
		longest_keep(biggest, &(struct kept_allocation){ *allocation, exited });
}

static struct memory_totals *place_totals(struct memory_use *use, const struct memory_allocation *a)
{
	const struct place_use_key key = { a->function->id,
		                           stack_places_number(use->places, a->stack) };
	struct place_use *place = MAP_FIND(use->place_uses, &key);

	if (!place) {
		place = MAP_ADD(use->place_uses, key, &key);
		place->row.function = a->function;
	}
	return &place->row.totals;
}

static void add(struct memory_count *count, uint64_t bytes)
{
	count->count++;
	count->bytes += bytes;
}

static void count_place(struct memory_use *use, const struct memory_change *change)
{
	struct memory_totals *totals = place_totals(use, change->allocation);
	uint64_t bytes = change->allocation->bytes;

	if (change->fate == MEMORY_MADE) {
		add(&totals->allocated, bytes);
		add(&totals->live, bytes);
		if (totals->live.bytes > totals->peak_bytes)
			totals->peak_bytes = totals->live.bytes;
		return;
	}
	totals->live.count--;
	totals->live.bytes -= bytes;
	if (change->fate == MEMORY_FREED)
		add(&totals->freed, bytes);
	else if (change->fate == MEMORY_WENT_WITH_PROCESS)
		add(&totals->exit, bytes);
}

static void changed(void *data, const struct memory_change *change)
{
	struct memory_use *use = data;

	memory_nvml_changed(use->nvml, change);
	if (change->allocation->kind != MEMORY_VMM_VA) /* no memory */
		count_place(use, change);
	if (change->fate == MEMORY_WENT_WITH_PROCESS)
		keep_big(&use->exited, change->allocation, true);
}

static int memory_use_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct memory_use *use = (struct memory_use *)self;

	memory_nvml_free(use->nvml);
	use->nvml = memory_nvml_new(run);
	return 0;
}

static int memory_use_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct memory_use *use = (struct memory_use *)self;
	const struct call *call = event->call;

	memory_nvml_event(use->nvml, event);
	memory_event(use->memory, event);
	if (event->type != EVENT_CALL || call->op != OP_ALLOC)
		return 0;
	*BY_ID(use->processes, use->n_processes, event->process->id) = event->process;
	*BY_ID(use->functions, use->n_functions, call->function->id) = call->function;
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool has_anything(const struct memory_totals *totals)
{
	return totals && (totals->allocated.count || totals->failed.count);
}

static void add_kinds(struct memory_use *use, const struct process *process, size_t *n)
{
	for (int kind = MEMORY_NONE; kind < MEMORY_COUNT; kind++) {
		const struct memory_totals *totals =
			process ? memory_process_totals(use->memory, process, kind)
				: memory_totals(use->memory, kind);

		if (has_anything(totals))
			use->kinds[(*n)++] = (struct memory_kind_row){ process, kind, totals };
	}
}

const struct memory_kind_row *memory_use_kinds(struct consumer *self, size_t *n)
{
	struct memory_use *use = (struct memory_use *)self;
	size_t processes = 0;

	for (size_t i = 0; i < use->n_processes; i++)
		processes += use->processes[i] != NULL;
	free(use->kinds);
	use->kinds = xcalloc((processes + 1) * MEMORY_COUNT, sizeof(*use->kinds));
	*n = 0;
	if (processes > 1)
		add_kinds(use, NULL, n);
	for (size_t i = 0; i < use->n_processes; i++) {
		if (use->processes[i])
			add_kinds(use, use->processes[i], n);
	}
	return use->kinds;
}

ORDER_BY(by_bytes, struct memory_function_row, DOWN(totals->allocated.bytes),
         BY_TEXT(function->name));

const struct memory_function_row *memory_use_functions(struct consumer *self, size_t *n)
{
	struct memory_use *use = (struct memory_use *)self;

	free(use->by_function);
	use->by_function = xcalloc(use->n_functions + 1, sizeof(*use->by_function));
	*n = 0;
	for (size_t i = 0; i < use->n_functions; i++) {
		const struct function *function = use->functions[i];
		const struct memory_totals *totals =
			function ? memory_function_totals(use->memory, function) : NULL;

		if (has_anything(totals))
			use->by_function[(*n)++] = (struct memory_function_row){ function, totals };
	}
	qsort(use->by_function, *n, sizeof(*use->by_function), by_bytes);
	return use->by_function;
}

static uint64_t not_freed(const struct memory_place_row *row)
{
	return row->totals.exit.bytes + row->totals.live.bytes;
}

ORDER_BY(by_what_stayed, struct memory_place_row, DOWN_OF(not_freed), DOWN(totals.allocated.bytes),
         BY_TEXT(place), BY_TEXT(function->name));

const struct memory_place_row *memory_use_places(struct consumer *self, size_t *n)
{
	struct memory_use *use = (struct memory_use *)self;
	struct place_use *place, *next;

	*n = 0;
	if (stack_places_count(use->places) == 1) /* of what has no stack */
		return NULL;
	free(use->by_place);
	use->by_place = xcalloc(HASH_COUNT(use->place_uses) + 1, sizeof(*use->by_place));
	HASH_ITER (hh, use->place_uses, place, next) {
		place->row.place = stack_places_label(use->places, place->key.place);
		use->by_place[(*n)++] = place->row;
	}
	qsort(use->by_place, *n, sizeof(*use->by_place), by_what_stayed);
	return use->by_place;
}

const char *memory_use_place(struct consumer *self, const struct memory_allocation *allocation)
{
	struct memory_use *use = (struct memory_use *)self;

	return stack_places_label(use->places, stack_places_number(use->places, allocation->stack));
}

static void keep_live(void *data, const struct memory_allocation *allocation)
{
	keep_big(data, allocation, false);
}

const struct kept_allocation *memory_use_kept(struct consumer *self, size_t *n)
{
	struct memory_use *use = (struct memory_use *)self;
	const struct kept_allocation *exited = longest_rows(&use->exited, n);

	longest_clear(&use->kept);
	for (size_t i = 0; i < *n; i++)
		longest_keep(&use->kept, &exited[i]);
	memory_each_live(use->memory, keep_live, &use->kept);
	return longest_rows(&use->kept, n);
}

const struct memory_nvml_row *memory_use_nvml(struct consumer *self, size_t *n)
{
	return memory_nvml_rows(((struct memory_use *)self)->nvml, n);
}

const struct memory *memory_use_memory(const struct consumer *self)
{
	return ((const struct memory_use *)self)->memory;
}

static void memory_use_free(struct consumer *self)
{
	struct memory_use *use = (struct memory_use *)self;

	MAP_FREE(use->place_uses, free);
	stack_places_free(use->places);
	free(use->by_place);
	memory_free(use->memory);
	memory_nvml_free(use->nvml);
	longest_free(&use->exited);
	longest_free(&use->kept);
	free(use->processes);
	free(use->functions);
	free(use->kinds);
	free(use->by_function);
	free(use);
}

static const struct consumer_ops memory_use_ops = { .begin = memory_use_begin,
	                                            .event = memory_use_event,
	                                            .free = memory_use_free };

struct consumer *memory_use_new(void)
{
	struct memory_use *use = xcalloc(1, sizeof(*use));

	use->consumer.ops = &memory_use_ops;
	use->memory = memory_new();
	use->places = stack_places_new();
	memory_tell_changes(use->memory, changed, use);
	longest_init(&use->exited, sizeof(struct kept_allocation), MEMORY_BIGGEST, bigger);
	longest_init(&use->kept, sizeof(struct kept_allocation), MEMORY_BIGGEST, bigger);
	return &use->consumer;
}
