// SPDX-License-Identifier: MIT
#include "analysis/managed_use.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/memory.h"
#include "base/order.h"
#include "base/xalloc.h"

struct managed_use {
	struct consumer consumer; /* first: what callers hold */
	struct memory *memory;    /* knows what is freed by which call */
	struct managed_row rows[MANAGED_ROWS];
	size_t n_rows;
	struct managed_allocation *all; /* live ones and those that were hit */
	size_t n_all;
	size_t last; /* that was found */
	uint64_t dropped;
};

/* ---- allocations --------------------------------------------------------------------------- */

static bool is_hit(const struct managed_allocation *at)
{
	return at->cpu_faults || at->gpu_faults || at->moved_bytes || at->thrashing;
}

/* A place for another one: that of one that was freed and never hit gives way. */
static struct managed_allocation *room(struct managed_use *use)
{
	if (use->n_all < MANAGED_ALLOCATIONS)
		return &use->all[use->n_all++];
	for (size_t i = 0; i < use->n_all; i++) {
		if (!use->all[i].live && !is_hit(&use->all[i]))
			return &use->all[i];
	}
	return NULL;
}

static void follow(void *data, const struct memory_change *change)
{
	const struct memory_allocation *of = change->allocation;
	struct managed_use *use = data;
	struct managed_allocation *at;

	if (of->kind != MEMORY_MANAGED)
		return;
	if (change->fate == MEMORY_MADE) {
		at = room(use);
		if (at)
			*at = (struct managed_allocation){ .process = of->process,
				                           .function = of->function,
				                           .stack = of->stack,
				                           .address = of->address,
				                           .bytes = of->bytes,
				                           .live = true };
		return;
	}
	for (size_t i = 0; i < use->n_all; i++) {
		at = &use->all[i];
		if (at->live && at->process == of->process && at->address == of->address)
			at->live = false;
	}
}

static bool covers(const struct managed_allocation *at, const struct process *process,
                   uint64_t first, uint64_t last)
{
	return at->process == process && at->function && first < at->address + at->bytes &&
	       last >= at->address;
}

/* A live one first: its address may have been another's before. What is none has a row, too. */
static struct managed_allocation *find(struct managed_use *use, const struct process *process,
                                       uint64_t first, uint64_t last)
{
	struct managed_allocation *freed = NULL, *none = NULL, *at;

	if (use->last < use->n_all && use->all[use->last].live &&
	    covers(&use->all[use->last], process, first, last))
		return &use->all[use->last];
	for (size_t i = 0; i < use->n_all; i++) {
		at = &use->all[i];
		if (at->process == process && !at->function)
			none = at;
		if (!covers(at, process, first, last))
			continue;
		use->last = i;
		if (at->live)
			return at;
		freed = at;
	}
	if (freed || none)
		return freed ? freed : none;
	at = room(use);
	if (at)
		*at = (struct managed_allocation){ .process = process };
	return at;
}

static void hit(struct managed_use *use, const struct event *event, const struct managed *what)
{
	const uint64_t *arg = event->call->args.arg;
	struct managed_allocation *at;

	if (what->kind > MANAGED_FATAL_FAULT || what->kind == MANAGED_REVOCATION)
		return;
	at = find(use, event->process, arg[SUM_FIRST], arg[SUM_LAST]);
	if (!at) {
		use->dropped += arg[SUM_COUNT];
		return;
	}
	at->cpu_faults += what->kind == MANAGED_CPU_FAULT ? arg[SUM_COUNT] : 0;
	at->gpu_faults += what->kind == MANAGED_GPU_FAULT ? arg[SUM_COUNT] : 0;
	at->thrashing += what->kind == MANAGED_THRASHING ? arg[SUM_COUNT] : 0;
	if (what->kind != MANAGED_MIGRATION)
		return;
	at->moved_bytes += arg[SUM_BYTES];
	if (what->dst)
		at->to_gpu_bytes += arg[SUM_BYTES];
	else
		at->to_cpu_bytes += arg[SUM_BYTES];
	if (!strcmp(managed_cause_name(what->cause), "eviction"))
		at->evicted_bytes += arg[SUM_BYTES];
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct managed_row *row_of(struct managed_use *use, const struct process *process,
                                  const struct managed *what)
{
	struct managed_row *row;

	for (size_t i = 0; i < use->n_rows; i++) {
		row = &use->rows[i];
		if (row->process == process && row->event.kind == what->kind &&
		    row->event.cause == what->cause && row->event.src == what->src &&
		    row->event.dst == what->dst)
			return row;
	}
	if (use->n_rows == MANAGED_ROWS)
		return NULL;
	row = &use->rows[use->n_rows++];
	row->process = process;
	row->event = *what;
	return row;
}

/* "12 0 3": the numbers of a histogram. */
static void add_sizes(struct managed_row *row, const char *text)
{
	char *end;

	for (int i = 0; text && i < MANAGED_SIZES; i++, text = end) {
		unsigned long long n = strtoull(text, &end, 10);

		if (end == text)
			return;
		row->sizes[i] += n;
	}
}

static void add(struct managed_use *use, const struct event *event, const struct managed *what)
{
	const struct call *call = event->call;
	struct managed_row *row = row_of(use, event->process, what);

	if (!row) {
		use->dropped += call->args.arg[SUM_COUNT];
		return;
	}
	if (!row->count)
		row->first_ns = call->begin_ns;
	row->last_ns = call->end_ns;
	row->count += call->args.arg[SUM_COUNT];
	row->bytes += call->args.arg[SUM_BYTES];
	row->time_ns += call->args.arg[SUM_TIME];
	add_sizes(row, call->text);
}

static int use_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct managed_use *use = (struct managed_use *)self;
	struct managed what;

	memory_event(use->memory, event);
	if (event->type != EVENT_OTHER_CALL || event->call->function->layer != LAYER_KERNEL ||
	    !managed_parse(event->call->function->name, &what) || !what.sum)
		return 0;
	add(use, event, &what);
	hit(use, event, &what);
	return 0;
}

static void use_free(struct consumer *self)
{
	struct managed_use *use = (struct managed_use *)self;

	memory_free(use->memory);
	free(use->all);
	free(use);
}

struct consumer *managed_use_new(void)
{
	static const struct consumer_ops ops = { .event = use_event, .free = use_free };
	struct managed_use *use = xcalloc(1, sizeof(*use));

	use->consumer.ops = &ops;
	use->memory = memory_new();
	use->all = xcalloc(MANAGED_ALLOCATIONS, sizeof(*use->all));
	memory_tell_changes(use->memory, follow, use);
	return &use->consumer;
}

/* ---- results ------------------------------------------------------------------------------- */

ORDER_BY(by_kind, struct managed_row, UP(event.kind), DOWN(count), UP(process->id));

const struct managed_row *managed_use_rows(struct consumer *self, size_t *n)
{
	struct managed_use *use = (struct managed_use *)self;

	qsort(use->rows, use->n_rows, sizeof(*use->rows), by_kind);
	*n = use->n_rows;
	return use->rows;
}

static uint64_t weight(const struct managed_allocation *at)
{
	return at->moved_bytes + at->cpu_faults + at->gpu_faults + at->thrashing;
}

ORDER_BY(by_weight, struct managed_allocation, DOWN_OF(weight), UP(address));

const struct managed_allocation *managed_use_allocations(struct consumer *self, size_t *n)
{
	struct managed_use *use = (struct managed_use *)self;

	qsort(use->all, use->n_all, sizeof(*use->all), by_weight);
	for (*n = 0; *n < use->n_all && is_hit(&use->all[*n]);)
		++*n;
	return use->all;
}

uint64_t managed_use_dropped(const struct consumer *self)
{
	return ((const struct managed_use *)self)->dropped;
}

uint64_t managed_median(const struct managed_row *row)
{
	uint64_t seen = 0;

	for (int i = 0; i < MANAGED_SIZES; i++) {
		seen += row->sizes[i];
		if (seen && seen * 2 >= row->count)
			return 4096ull << i;
	}
	return 0;
}
