// SPDX-License-Identifier: MIT
#include "analysis/managed_use.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/memory.h"
#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"

/*
 * A sum of memory that nobody has now is looked for among all that were freed: so many of these are
 * looked at in all, and so many more for each event. What is beyond is counted as without room.
 */
#define LOOKS_FIRST 1000000000ull
#define LOOKS_EACH  64

struct managed_use {
	struct consumer consumer; /* first: what callers hold */
	struct memory *memory;    /* knows what is freed by which call */
	struct managed_row rows[MANAGED_ROWS];
	size_t n_rows;
	struct managed_allocation *all, *sorted; /* live ones and those that were hit */
	size_t n_all;
	uint16_t live[MANAGED_ALLOCATIONS];  /* of all, by process and address */
	uint16_t spare[MANAGED_ALLOCATIONS]; /* freed before they were hit; some were since */
	size_t n_live, n_spare;
	size_t last; /* that was found */
	size_t none; /* the same, of those for what is no allocation's */
	uint64_t looks, dropped;
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
	while (use->n_spare) {
		struct managed_allocation *at = &use->all[use->spare[--use->n_spare]];

		if (!is_hit(at))
			return at;
	}
	return NULL;
}

/* How many of the live ones begin before that address of a process. */
static size_t live_before(const struct managed_use *use, const struct process *process,
                          uint64_t address)
{
	return ARRAY_BEFORE(use->n_live, i,
	                    use->all[use->live[i]].process->id < process->id ||
	                            (use->all[use->live[i]].process->id == process->id &&
	                             use->all[use->live[i]].address < address));
}

static void become_live(struct managed_use *use, const struct managed_allocation *at)
{
	size_t before = live_before(use, at->process, at->address);

	memmove(&use->live[before + 1], &use->live[before],
	        (use->n_live++ - before) * sizeof(use->live[0]));
	use->live[before] = (uint16_t)(at - use->all);
}

static void become_freed(struct managed_use *use, const struct memory_allocation *of)
{
	size_t i = live_before(use, of->process, of->address);
	struct managed_allocation *at = i < use->n_live ? &use->all[use->live[i]] : NULL;

	if (!at || at->process != of->process || at->address != of->address)
		return; /* there was no room for it */
	at->live = false;
	if (!is_hit(at))
		use->spare[use->n_spare++] = use->live[i];
	memmove(&use->live[i], &use->live[i + 1], (--use->n_live - i) * sizeof(use->live[0]));
}

static void follow(void *data, const struct memory_change *change)
{
	const struct memory_allocation *of = change->allocation;
	struct managed_use *use = data;
	struct managed_allocation *at;

	if (of->kind != MEMORY_MANAGED)
		return;
	if (change->fate != MEMORY_MADE) {
		become_freed(use, of);
		return;
	}
	at = room(use);
	if (!at)
		return;
	*at = (struct managed_allocation){ .process = of->process,
		                           .function = of->function,
		                           .stack = of->stack,
		                           .address = of->address,
		                           .bytes = of->bytes,
		                           .live = true };
	become_live(use, at);
}

static bool covers(const struct managed_allocation *at, const struct process *process,
                   uint64_t first, uint64_t last)
{
	return at->process == process && at->function && first < at->address + at->bytes &&
	       last >= at->address;
}

/* The first that has any of it, of those that are live. */
static struct managed_allocation *find_live(struct managed_use *use, const struct process *process,
                                            uint64_t first, uint64_t last)
{
	size_t i = live_before(use, process, first);

	for (i -= i > 0; i < use->n_live; i++) {
		struct managed_allocation *at = &use->all[use->live[i]];

		if (covers(at, process, first, last))
			return at;
		if (at->process->id > process->id ||
		    (at->process == process && at->address >= first))
			return NULL;
	}
	return NULL;
}

/* Whether the row of what is none of a process's allocations, which was found last, is its own. */
static bool is_none(const struct managed_use *use, const struct process *process)
{
	return use->none < use->n_all && use->all[use->none].process == process &&
	       !use->all[use->none].function;
}

/* What is none of those that were freed has a row, too; where there are no looks left, all is that
 * which is none of the live ones. */
static struct managed_allocation *find_freed(struct managed_use *use, const struct process *process,
                                             uint64_t first, uint64_t last)
{
	struct managed_allocation *freed = NULL, *none = NULL, *at;

	if (use->looks < use->n_all)
		return is_none(use, process) ? &use->all[use->none] : NULL;
	use->looks -= use->n_all;
	for (size_t i = 0; i < use->n_all; i++) {
		at = &use->all[i];
		if (at->process == process && !at->function)
			none = &use->all[use->none = i];
		if (covers(at, process, first, last))
			freed = at;
	}
	if (freed || none)
		return freed ? freed : none;
	at = room(use);
	if (!at)
		return NULL;
	*at = (struct managed_allocation){ .process = process };
	use->none = (size_t)(at - use->all);
	return at;
}

/* A live one first: its address may have been another's before. */
static struct managed_allocation *find(struct managed_use *use, const struct process *process,
                                       uint64_t first, uint64_t last)
{
	struct managed_allocation *at;

	if (use->last < use->n_all && use->all[use->last].live &&
	    covers(&use->all[use->last], process, first, last))
		return &use->all[use->last];
	at = find_live(use, process, first, last);
	if (!at)
		return find_freed(use, process, first, last);
	use->last = (size_t)(at - use->all);
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

	use->looks += LOOKS_EACH;
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
	FREE_ALL(use->all, use->sorted, use);
}

struct consumer *managed_use_new(void)
{
	static const struct consumer_ops ops = { .event = use_event, .free = use_free };
	struct managed_use *use = xcalloc(1, sizeof(*use));

	use->consumer.ops = &ops;
	use->memory = memory_new();
	use->looks = LOOKS_FIRST;
	use->all = xcalloc(MANAGED_ALLOCATIONS, sizeof(*use->all));
	memory_tell_changes(use->memory, follow, use);
	return &use->consumer;
}

/* ---- results ------------------------------------------------------------------------------- */

ORDER_BY(by_kind, struct managed_row, UP(event.kind), DOWN(count), UP(process->id));

const struct managed_row *managed_use_rows(struct consumer *self, size_t *n)
{
	struct managed_use *use = (struct managed_use *)self;

	SORT(use->rows, use->n_rows, by_kind);
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

	free(use->sorted);
	use->sorted = xcalloc(use->n_all + 1, sizeof(*use->sorted));
	*n = 0;
	for (size_t i = 0; i < use->n_all; i++)
		if (is_hit(&use->all[i]))
			use->sorted[(*n)++] = use->all[i];
	SORT(use->sorted, *n, by_weight);
	return use->sorted;
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
