// SPDX-License-Identifier: MIT
#include "report/memory_use.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/place.h"
#include "base/map.h"
#include "base/order.h"
#include "table/longest.h"

/* ---- what NVML told -------------------------------------------------------------------------- */

/*
 * The moments are known when the reading of a file begins: events are followed, and each moment is
 * taken when the first event from then on comes.
 */

/* What the last process with this number holds by calls; there is one of each that NVML told of. */
struct nvml_holder {
	uint64_t key;                  /* machine_pid() */
	const struct process *process; /* NULL: none was met yet */
	uint64_t by_calls, by_nccl;
	UT_hash_handle hh;
};

struct nvml_moment {
	struct memory_nvml_row row; /* of its `beyond` the number of bytes, until it is taken */
	uint64_t key;
	size_t of; /* which of `states` */
};

struct memory_nvml {
	struct nvml_moment *moments; /* by time */
	size_t n, taken;
	struct memory_beyond *states; /* of each process */
	struct nvml_holder *holders;
	struct memory_nvml_row *rows;
};

ORDER_BY(by_time, struct nvml_moment, UP(row.time_ns), UP(of), UP(row.moment));
ORDER_BY(by_process, struct memory_nvml_row, UP(process->id), UP(time_ns));

/* One reading is one row, whatever it is. */
static bool is_told_already(const struct run_memory *memory, enum run_memory_moment moment)
{
	return (moment != RUN_MEMORY_FIRST &&
	        memory[moment].time_ns == memory[RUN_MEMORY_FIRST].time_ns) ||
	       (moment == RUN_MEMORY_MOST &&
	        memory[moment].time_ns == memory[RUN_MEMORY_LAST].time_ns);
}

static void add_process(struct memory_nvml *nvml, const struct run_identity *one, size_t of)
{
	const uint64_t key = (uint64_t)one->machine << 32 | one->pid;

	nvml->states[of].whole = one->memory_whole;
	MAP_MAKE(nvml->holders, key, &key);
	for (enum run_memory_moment i = 0; i < RUN_MEMORIES; i++) {
		struct nvml_moment *moment = &nvml->moments[nvml->n];

		if (!one->memory[i].time_ns || is_told_already(one->memory, i))
			continue;
		moment->row.time_ns = one->memory[i].time_ns;
		moment->row.moment = i;
		moment->row.beyond.gpu_bytes = one->memory[i].bytes;
		moment->key = key;
		moment->of = of;
		nvml->n++;
	}
}

static void memory_nvml_free(struct memory_nvml *nvml)
{
	if (!nvml)
		return;
	MAP_FREE(nvml->holders, free);
	FREE_ALL(nvml->moments, nvml->states, nvml->rows, nvml);
}

/* NULL: NVML told nothing. */
static struct memory_nvml *memory_nvml_new(const struct run_info *run)
{
	size_t n = run->n_identities;
	struct memory_nvml *nvml = xcalloc(1, sizeof(*nvml));

	nvml->moments = xcalloc(n * RUN_MEMORIES + 1, sizeof(*nvml->moments));
	nvml->states = xcalloc(n + 1, sizeof(*nvml->states));
	for (size_t i = 0; i < n; i++) {
		if (run->identities[i].memory[RUN_MEMORY_FIRST].time_ns)
			add_process(nvml, &run->identities[i], i);
	}
	SORT(nvml->moments, nvml->n, by_time);
	if (nvml->n)
		return nvml;
	memory_nvml_free(nvml);
	return NULL;
}

static void take(struct memory_nvml *nvml, struct nvml_moment *moment)
{
	const struct nvml_holder *holder = MAP_FIND(nvml->holders, &moment->key);
	struct memory_beyond *state = &nvml->states[moment->of];

	if (!holder->process)
		return;
	memory_beyond_take(state, moment->row.beyond.gpu_bytes, holder->by_calls, holder->by_nccl);
	moment->row.process = holder->process;
	moment->row.beyond = *state;
}

static struct nvml_holder *holder_of(struct memory_nvml *nvml, const struct process *process)
{
	const uint64_t key = machine_pid(process);
	struct nvml_holder *holder = MAP_FIND(nvml->holders, &key);

	if (holder && holder->process != process) {
		holder->process = process;
		holder->by_calls = holder->by_nccl = 0;
	}
	return holder;
}

/* Before what the event changes. */
static void memory_nvml_event(struct memory_nvml *nvml, const struct event *event)
{
	if (!nvml)
		return;
	while (nvml->taken < nvml->n && nvml->moments[nvml->taken].row.time_ns < event->time_ns)
		take(nvml, &nvml->moments[nvml->taken++]);
	if (event->type == EVENT_PROCESS)
		holder_of(nvml, event->process);
}

static void memory_nvml_changed(struct memory_nvml *nvml, const struct memory_change *change)
{
	const struct memory_allocation *a = change->allocation;
	struct nvml_holder *holder;
	uint64_t bytes;

	if (!nvml || !memory_is_in_nvml(a->kind))
		return;
	holder = holder_of(nvml, a->process);
	if (!holder)
		return;
	bytes = change->fate == MEMORY_MADE ? a->bytes : -a->bytes;
	holder->by_calls += bytes;
	if (memory_is_of_nccl(a->stack))
		holder->by_nccl += bytes;
}

static const struct memory_nvml_row *memory_nvml_rows(struct memory_nvml *nvml, size_t *n)
{
	*n = 0;
	if (!nvml)
		return NULL;
	while (nvml->taken < nvml->n)
		take(nvml, &nvml->moments[nvml->taken++]);
	free(nvml->rows);
	nvml->rows = xcalloc(nvml->n, sizeof(*nvml->rows));
	for (size_t i = 0; i < nvml->n; i++) {
		if (nvml->moments[i].row.process)
			nvml->rows[(*n)++] = nvml->moments[i].row;
	}
	SORT(nvml->rows, *n, by_process);
	return nvml->rows;
}

/* ---- what calls did -------------------------------------------------------------------------- */

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

static void count_place(struct memory_use *use, const struct memory_change *change)
{
	struct memory_totals *totals = place_totals(use, change->allocation);
	uint64_t bytes = change->allocation->bytes;

	if (change->fate == MEMORY_MADE) {
		memory_count_add(&totals->allocated, bytes);
		memory_count_add(&totals->live, bytes);
		if (totals->live.bytes > totals->peak_bytes)
			totals->peak_bytes = totals->live.bytes;
		return;
	}
	totals->live.count--;
	totals->live.bytes -= bytes;
	if (change->fate == MEMORY_FREED)
		memory_count_add(&totals->freed, bytes);
	else if (change->fate == MEMORY_WENT_WITH_PROCESS)
		memory_count_add(&totals->exit, bytes);
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
	SORT(use->by_function, *n, by_bytes);
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
	SORT(use->by_place, *n, by_what_stayed);
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
	FREE_ALL(use->processes, use->functions, use->kinds, use->by_function, use);
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
