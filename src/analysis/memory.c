// SPDX-License-Identifier: MIT
#include "analysis/memory.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "analysis/by_id.h"
#include "analysis/memory_inside.h"
#include "base/array.h"
#include "base/map.h"
#include "base/xalloc.h"

/* Addresses that wait for the end of a late free, beside those; see remove_allocation(). */
#define LATE_MAX 1024

struct memory *memory_new(void)
{
	return xcalloc(1, sizeof(struct memory));
}

void memory_tell_changes(struct memory *memory,
                         void (*changed)(void *data, const struct memory_change *change),
                         void *data)
{
	memory->changed = changed;
	memory->data = data;
}

static enum space space_of(enum api_memory kind)
{
	return kind == MEMORY_VMM      ? SPACE_HANDLE
	       : kind == MEMORY_VMM_VA ? SPACE_RANGE
	                               : SPACE_ADDRESS;
}

static bool in_totals(enum api_memory kind)
{
	return kind != MEMORY_NONE && kind != MEMORY_VMM_VA;
}

/* ---- processes and functions --------------------------------------------------------------- */

struct process_memory *memory_find_process(const struct memory *memory, uint32_t id)
{
	return id < memory->n_processes ? memory->processes[id] : NULL;
}

struct process_memory *memory_the_process(struct memory *memory, const struct process *process)
{
	struct process_memory *made = memory_find_process(memory, process->id);

	if (made)
		return made;
	made = MAP_ADD(memory->by_pid, pid, &process->pid);
	made->process = process;
	return *BY_ID(memory->processes, memory->n_processes, process->id) = made;
}

static struct memory_totals *the_function(struct memory *memory, const struct function *function)
{
	struct memory_totals **totals = BY_ID(memory->functions, memory->n_functions, function->id);

	if (!*totals)
		*totals = xcalloc(1, sizeof(**totals));
	return *totals;
}

/* ---- totals -------------------------------------------------------------------------------- */

/* The totals that an allocation is part of. */
struct books {
	struct memory_totals *of[5];
	size_t n;
};

static struct books books_of(struct memory *memory, const struct memory_allocation *a)
{
	struct process_memory *process = memory_the_process(memory, a->process);
	struct books books = { .of = { &memory->totals[a->kind], &process->totals[a->kind],
		                       the_function(memory, a->function) },
		               .n = 3 };

	if (in_totals(a->kind)) {
		books.of[books.n++] = &memory->totals[MEMORY_NONE];
		books.of[books.n++] = &process->totals[MEMORY_NONE];
	}
	return books;
}

/* One column of all books. */
#define COUNT(books, column, size)                                                                 \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (books)->n; i_++) {                                       \
			(books)->of[i_]->column.count++;                                           \
			(books)->of[i_]->column.bytes += (size);                                   \
		}                                                                                  \
	} while (0)

#define UNCOUNT(books, column, size)                                                               \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (books)->n; i_++) {                                       \
			(books)->of[i_]->column.count--;                                           \
			(books)->of[i_]->column.bytes -= (size);                                   \
		}                                                                                  \
	} while (0)

static void tell(const struct memory *memory, const struct memory_allocation *a,
                 enum memory_fate fate, uint64_t now_ns)
{
	struct memory_change change = { .allocation = a, .fate = fate, .time_ns = now_ns };

	if (!memory->changed)
		return;
	change.live_bytes = memory_find_process(memory, a->process->id)->totals[a->kind].live.bytes;
	memory->changed(memory->data, &change);
}

static void become_live(struct memory *memory, const struct memory_allocation *a)
{
	struct books books = books_of(memory, a);

	COUNT(&books, live, a->bytes);
	for (size_t i = 0; i < books.n; i++) {
		struct memory_totals *totals = books.of[i];

		if (totals->live.bytes > totals->peak_bytes) {
			totals->peak_bytes = totals->live.bytes;
			totals->peak_ns = a->time_ns;
		}
	}
	tell(memory, a, MEMORY_MADE, a->time_ns);
}

static void become_dead(struct memory *memory, const struct memory_allocation *a,
                        enum memory_fate fate, uint64_t now_ns)
{
	struct books books = books_of(memory, a);

	UNCOUNT(&books, live, a->bytes);
	switch (fate) {
	case MEMORY_FREED:
		COUNT(&books, freed, a->bytes);
		break;
	case MEMORY_REPLACED:
		COUNT(&books, replaced, a->bytes);
		break;
	case MEMORY_WENT_WITH_CONTEXT:
		COUNT(&books, context, a->bytes);
		break;
	case MEMORY_WENT_WITH_PROCESS:
		COUNT(&books, exit, a->bytes);
		break;
	case MEMORY_MADE:
		break;
	}
	tell(memory, a, fate, now_ns);
}

/* ---- allocations --------------------------------------------------------------------------- */

static struct allocation **table_of(struct process_memory *process, const struct memory_key *key)
{
	return &process->allocations[key->space != SPACE_ADDRESS];
}

struct allocation *memory_find(struct process_memory *process, const struct memory_key *key)
{
	struct allocation *a = NULL;

	if (process)
		a = MAP_FIND(*table_of(process, key), key);
	return a;
}

/* It is in the table still, and what is in the table is live no longer. */
static void take_out(struct memory *memory, struct process_memory *process, struct allocation *a)
{
	struct allocation **table = table_of(process, &a->key);

	if (a->late) {
		DL_DELETE(memory->late, a);
		memory->n_late--;
	} else {
		memory->n_allocations--;
	}
	HASH_DELETE(hh, *table, a);
}

void memory_drop(struct memory *memory, struct process_memory *process, struct allocation *a)
{
	take_out(memory, process, a);
	free(a);
}

static void become_late(struct memory *memory, struct allocation *a)
{
	struct allocation *oldest = memory->late;

	if (memory->n_late >= LATE_MAX)
		memory_drop(memory, memory_find_process(memory, oldest->about.process->id), oldest);
	a->late = true;
	DL_APPEND(memory->late, a);
	memory->n_late++;
	memory->n_allocations--;
}

struct memory_allocation memory_about(const struct event *event, enum api_memory kind)
{
	const struct call *call = event->call;

	return (struct memory_allocation){
		.process = event->process,
		.function = call->function,
		.stack = call->stack,
		.tid = event->tid,
		.kind = kind,
		.time_ns = event->time_ns,
		.address = call->args.address,
		.bytes = call->args.bytes,
	};
}

struct allocation *memory_keep(struct memory *memory, struct process_memory *process,
                               const struct memory_key *key, const struct memory_allocation *wanted)
{
	struct allocation **table = table_of(process, key), *a = MAP_ADD(*table, key, key);

	a->about = *wanted;
	a->held = 1;
	memory->n_allocations++;
	return a;
}

/* What stood at its address until `made` was given it. */
static void set_replaced(struct memory *memory, struct allocation *made,
                         const struct allocation *old)
{
	if (old->late) {
		made->has_replaced = true;
		made->replaced = old->replaced;
	} else if (!old->with_context) {
		become_dead(memory, &old->about, MEMORY_REPLACED, made->about.time_ns);
		made->has_replaced = true;
		made->replaced = old->about;
	}
}

uint64_t memory_add(struct memory *memory, const struct memory_allocation *wanted)
{
	struct memory_allocation made = *wanted;
	struct memory_key key = { made.address, space_of(made.kind) };
	struct process_memory *process;
	struct allocation *old, *new;
	struct books books;

	if (!made.address && !made.bytes) /* nothing asked for, nothing given */
		return 0;
	books = books_of(memory, &made);
	COUNT(&books, allocated, made.bytes);
	process = memory_the_process(memory, made.process);
	old = memory_find(process, &key);
	if (old && !memory_is_own(old)) { /* one that was imported, whose end was not seen */
		memory_drop(memory, process, old);
		old = NULL;
	}
	if (!made.address || ((!old || old->late) && memory->n_allocations >= ALLOCATIONS_MAX)) {
		COUNT(&books, untracked, made.bytes);
		return made.bytes;
	}
	if (old)
		take_out(memory, process, old);
	new = memory_keep(memory, process, &key, &made);
	if (old)
		set_replaced(memory, new, old);
	free(old);
	become_live(memory, &made);
	return made.bytes;
}

void memory_add_untracked(struct memory *memory, const struct memory_allocation *made, uint64_t n)
{
	struct books books = books_of(memory, made);

	for (size_t i = 0; i < books.n; i++) {
		books.of[i]->allocated.count += n;
		books.of[i]->allocated.bytes += made->bytes;
		books.of[i]->untracked.count += n;
		books.of[i]->untracked.bytes += made->bytes;
	}
}

static void add_failure(struct memory *memory, const struct event *event, enum api_memory kind)
{
	struct memory_allocation wanted = memory_about(event, kind);
	struct books books = books_of(memory, &wanted);

	COUNT(&books, failed, wanted.bytes);
}

/* It was freed by a call after all, so its context had not ended: the call is the truth. */
static void take_back_from_context(struct memory *memory, const struct memory_allocation *a)
{
	struct books books = books_of(memory, a);

	UNCOUNT(&books, context, a->bytes);
	COUNT(&books, freed, a->bytes);
}

/*
 * A free that began before what stands at its address was there freed what stood there before:
 * another thread was given the address, and its call ended first.
 */
static uint64_t remove_replaced(struct memory *memory, struct allocation *a, uint64_t begin_ns)
{
	struct books books;

	if (!a->has_replaced || begin_ns >= a->about.time_ns) {
		memory->unknown_frees++;
		return 0;
	}
	books = books_of(memory, &a->replaced);
	UNCOUNT(&books, replaced, a->replaced.bytes);
	COUNT(&books, freed, a->replaced.bytes);
	a->has_replaced = false;
	return a->replaced.bytes;
}

/*
 * Calls come in the order of their ends. What replaced another one at its address may itself be
 * freed before the free of that other one ends: one thread was interrupted on its way out of it.
 */
static void leave(struct memory *memory, struct process_memory *process, struct allocation *a)
{
	if (a->has_replaced)
		become_late(memory, a);
	else
		memory_drop(memory, process, a);
}

uint64_t memory_give_back(struct memory *memory, struct process_memory *process,
                          struct allocation *a, uint64_t now_ns)
{
	uint64_t bytes = a->about.bytes;

	if (--a->held)
		return 0;
	if (!memory_is_own(a)) {
		memory_drop(memory, process, a);
		return 0;
	}
	if (a->with_context)
		take_back_from_context(memory, &a->about);
	else
		become_dead(memory, &a->about, MEMORY_FREED, now_ns);
	leave(memory, process, a);
	return bytes;
}

static uint64_t remove_allocation(struct memory *memory, const struct event *event,
                                  enum api_memory kind)
{
	struct process_memory *process = memory_find_process(memory, event->process->id);
	struct memory_key key = { event->call->args.address, space_of(kind) };
	struct allocation *a = memory_find(process, &key);
	uint64_t bytes;

	if (!key.address) /* free(NULL) */
		return 0;
	if (!a) {
		memory->unknown_frees++;
		return 0;
	}
	if (a->late || event->call->begin_ns < a->about.time_ns) {
		bytes = remove_replaced(memory, a, event->call->begin_ns);
		if (a->late && !a->has_replaced)
			memory_drop(memory, process, a);
		return bytes;
	}
	return memory_give_back(memory, process, a, event->time_ns);
}

/*
 * A context or device was destroyed or reset, and its memory with it. Which allocations are its
 * own is not known: all of the process's are taken to be, but those of cuMemCreate, which
 * belong to none. An allocation that is freed later shows that guess wrong and is counted right;
 * until the next such call its address is kept for that. So each is met twice at most, however
 * many such calls there are.
 */
static void forget_context(struct memory *memory, const struct event *event)
{
	struct process_memory *process = memory_find_process(memory, event->process->id);
	struct allocation *a, *next;

	if (!process)
		return;
	HASH_ITER (hh, process->allocations[0], a, next) {
		if (a->with_context || a->late) {
			memory_drop(memory, process, a);
			continue;
		}
		become_dead(memory, &a->about, MEMORY_WENT_WITH_CONTEXT, event->time_ns);
		a->with_context = true;
	}
}

static bool is_live(const struct allocation *a)
{
	return !a->with_context && !a->late && memory_is_own(a);
}

static void end_process(struct memory *memory, struct process_memory *process, uint64_t now_ns)
{
	struct allocation *a, *next;

	if (!process)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(process->allocations); i++) {
		HASH_ITER (hh, process->allocations[i], a, next) {
			if (is_live(a))
				become_dead(memory, &a->about, MEMORY_WENT_WITH_PROCESS, now_ns);
			memory_drop(memory, process, a);
		}
	}
	memory_free_graphs(memory, process);
	if (!process->ended)
		HASH_DELETE(hh, memory->by_pid, process);
	process->ended = true;
}

/* A pid that starts again is an exec, or a process whose end was lost: its old memory is gone. */
static void begin_process(struct memory *memory, const struct event *event)
{
	struct process_memory *old = MAP_FIND(memory->by_pid, &event->process->pid);

	if (old && old->process->id != event->process->id)
		end_process(memory, old, event->time_ns);
}

/* ---- the outside --------------------------------------------------------------------------- */

/* Apart, as are few events: the others leave before anything is saved for it. */
static __attribute__((noinline)) uint64_t follow_call(struct memory *memory,
                                                      const struct event *event)
{
	const struct call *call = event->call;
	struct memory_allocation made;
	enum api_memory kind;

	if (!call->function->api)
		return 0;
	if ((call->flags & (CALL_CAPTURED | CALL_NESTED | CALL_FAILED | CALL_UNFINISHED)) ==
	    CALL_CAPTURED)
		memory_follow_captured(memory, event);
	kind = api_memory(call->function->api);
	if (call->op == OP_ALLOC && kind != MEMORY_NONE &&
	    (call->flags & (CALL_NESTED | CALL_FAILED)) == CALL_FAILED)
		add_failure(memory, event, kind);
	if (!call_counts(call))
		return 0;
	if (call->op == OP_CONTEXT_DESTROY)
		forget_context(memory, event);
	if (kind == MEMORY_NONE) {
		memory_follow_graph(memory, event);
		return 0;
	}
	made = memory_about(event, kind);
	if (call->op == OP_ALLOC)
		return memory_add(memory, &made);
	if (call->op == OP_FREE)
		return remove_allocation(memory, event, kind);
	return memory_follow_vmm(memory, event);
}

uint64_t memory_event(struct memory *memory, const struct event *event)
{
	memory->n_events++;
	switch (event->type) {
	case EVENT_CALL:
		return memory_follows(event->call->op) ? follow_call(memory, event) : 0;
	case EVENT_PROCESS:
		begin_process(memory, event);
		break;
	case EVENT_EXIT:
		end_process(memory, memory_find_process(memory, event->process->id),
		            event->time_ns);
		break;
	case EVENT_CALL_BEGIN:
	case EVENT_THREAD:
	case EVENT_ACTIVITY:
	case EVENT_RANGE:
	case EVENT_SAMPLE:
	case EVENT_METRICS:
	case EVENT_STALL:
	case EVENT_OTHER_CALL:
		break;
	}
	return 0;
}

void memory_each_live(const struct memory *memory,
                      void (*each)(void *data, const struct memory_allocation *allocation),
                      void *data)
{
	for (size_t i = 0; i < memory->n_processes; i++) {
		const struct process_memory *process = memory->processes[i];

		for (size_t j = 0; process && j < ARRAY_SIZE(process->allocations); j++) {
			for (const struct allocation *a = process->allocations[j]; a;
			     a = a->hh.next) {
				if (is_live(a))
					each(data, &a->about);
			}
		}
	}
}

uint64_t memory_live_bytes(const struct memory *memory, const struct process *process)
{
	return memory_live_of_kind(memory, process, MEMORY_NONE);
}

uint64_t memory_live_of_kind(const struct memory *memory, const struct process *process,
                             enum api_memory kind)
{
	const struct process_memory *found = memory_find_process(memory, process->id);

	return found ? found->totals[kind].live.bytes : 0;
}

const struct memory_totals *memory_totals(const struct memory *memory, enum api_memory kind)
{
	return &memory->totals[kind];
}

const struct memory_totals *memory_process_totals(const struct memory *memory,
                                                  const struct process *process,
                                                  enum api_memory kind)
{
	const struct process_memory *found = memory_find_process(memory, process->id);

	return found ? &found->totals[kind] : NULL;
}

const struct memory_totals *memory_function_totals(const struct memory *memory,
                                                   const struct function *function)
{
	return function->id < memory->n_functions ? memory->functions[function->id] : NULL;
}

static void forget_peaks(struct memory_totals *totals, size_t n)
{
	for (size_t i = 0; totals && i < n; i++)
		totals[i].peak_bytes = totals[i].live.bytes;
}

void memory_forget_peaks(struct memory *memory)
{
	forget_peaks(memory->totals, MEMORY_COUNT);
	for (size_t i = 0; i < memory->n_processes; i++) {
		if (memory->processes[i])
			forget_peaks(memory->processes[i]->totals, MEMORY_COUNT);
	}
	for (size_t i = 0; i < memory->n_functions; i++)
		forget_peaks(memory->functions[i], 1);
}

uint64_t memory_unknown_frees(const struct memory *memory)
{
	return memory->unknown_frees;
}

void memory_free(struct memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->n_processes; i++) {
		struct process_memory *process = memory->processes[i];
		struct allocation *a, *next;

		if (!process)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(process->allocations); j++)
			HASH_ITER (hh, process->allocations[j], a, next)
				memory_drop(memory, process, a);
		memory_free_graphs(memory, process);
		if (!process->ended)
			HASH_DELETE(hh, memory->by_pid, process);
		free(process);
	}
	for (size_t i = 0; i < memory->n_functions; i++)
		free(memory->functions[i]);
	quota_free(&memory->graph_work);
	FREE_ALL(memory->processes, memory->functions, memory);
}
