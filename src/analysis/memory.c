// SPDX-License-Identifier: MIT
#include "analysis/memory.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/xalloc.h"

/* Handles of cuMemCreate and reserved ranges are numbers of their own: 1 can be both. */
enum space { SPACE_ADDRESS, SPACE_HANDLE, SPACE_RANGE };

struct key {
	uint64_t address;
	uint64_t space; /* as wide as the address: no padding for the hash to read */
};

struct allocation {
	struct key key;
	uint64_t bytes;
	enum api_memory kind;
	bool with_context; /* thought to have gone with a context, see forget_context() */
	UT_hash_handle hh;
};

/* Made by a process's first allocation, gone with its end. */
struct process_memory {
	uint32_t id, pid;
	uint64_t live_bytes[MEMORY_COUNT]; /* MEMORY_NONE: of all that are in totals */
	struct allocation *allocations;
	UT_hash_handle by_id, by_pid;
};

struct memory {
	struct process_memory *by_id, *by_pid;
	struct memory_totals totals[MEMORY_COUNT];
	uint64_t unknown_frees;
};

struct memory *memory_new(void)
{
	return xcalloc(1, sizeof(struct memory));
}

bool call_counts(const struct call *call)
{
	return !(call->flags & (CALL_NESTED | CALL_UNFINISHED | CALL_CAPTURED | CALL_FAILED));
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

/* ---- totals -------------------------------------------------------------------------------- */

static void count(struct memory_count *into, uint64_t bytes)
{
	into->count++;
	into->bytes += bytes;
}

/* The same column of a kind's totals and of those of all kinds. */
#define COUNT(memory, kind, column, bytes)                                                         \
	do {                                                                                       \
		count(&(memory)->totals[kind].column, bytes);                                      \
		if (in_totals(kind))                                                               \
			count(&(memory)->totals[MEMORY_NONE].column, bytes);                       \
	} while (0)

static void grow(struct memory_totals *totals, uint64_t bytes)
{
	count(&totals->live, bytes);
	if (totals->live.bytes > totals->peak_bytes)
		totals->peak_bytes = totals->live.bytes;
}

static void shrink(struct memory_totals *totals, uint64_t bytes)
{
	totals->live.count--;
	totals->live.bytes -= bytes;
}

static void become_live(struct memory *memory, struct process_memory *process,
                        const struct allocation *a)
{
	grow(&memory->totals[a->kind], a->bytes);
	process->live_bytes[a->kind] += a->bytes;
	if (!in_totals(a->kind))
		return;
	grow(&memory->totals[MEMORY_NONE], a->bytes);
	process->live_bytes[MEMORY_NONE] += a->bytes;
}

static void become_dead(struct memory *memory, struct process_memory *process,
                        const struct allocation *a)
{
	shrink(&memory->totals[a->kind], a->bytes);
	process->live_bytes[a->kind] -= a->bytes;
	if (!in_totals(a->kind))
		return;
	shrink(&memory->totals[MEMORY_NONE], a->bytes);
	process->live_bytes[MEMORY_NONE] -= a->bytes;
}

/* ---- allocations --------------------------------------------------------------------------- */

static struct process_memory *find_process(const struct memory *memory, uint32_t id)
{
	struct process_memory *found;

	HASH_FIND(by_id, memory->by_id, &id, sizeof(id), found);
	return found;
}

static struct process_memory *make_process(struct memory *memory, const struct process *process)
{
	struct process_memory *made = xcalloc(1, sizeof(*made));

	made->id = process->id;
	made->pid = process->pid;
	HASH_ADD(by_id, memory->by_id, id, sizeof(made->id), made);
	HASH_ADD(by_pid, memory->by_pid, pid, sizeof(made->pid), made);
	return made;
}

static struct allocation *find(struct process_memory *process, const struct key *key)
{
	struct allocation *a = NULL;

	if (process)
		HASH_FIND(hh, process->allocations, key, sizeof(*key), a);
	return a;
}

static void drop(struct process_memory *process, struct allocation *a)
{
	HASH_DELETE(hh, process->allocations, a);
	free(a);
}

static uint64_t add_allocation(struct memory *memory, const struct process *owner,
                               enum api_memory kind, const struct call *call)
{
	struct process_memory *process = find_process(memory, owner->id);
	struct key key = { call->args.address, space_of(kind) };
	struct allocation *a = find(process, &key);
	uint64_t bytes = call->args.bytes;

	if (!key.address && !bytes) /* nothing asked for, nothing given */
		return 0;
	COUNT(memory, kind, allocated, bytes);
	if (!key.address) {
		COUNT(memory, kind, untracked, bytes);
		return bytes;
	}
	if (a && !a->with_context) {
		become_dead(memory, process, a);
		COUNT(memory, a->kind, replaced, a->bytes);
	}
	if (a)
		drop(process, a);
	if (!process)
		process = make_process(memory, owner);
	a = xcalloc(1, sizeof(*a));
	a->key = key;
	a->bytes = bytes;
	a->kind = kind;
	HASH_ADD(hh, process->allocations, key, sizeof(a->key), a);
	become_live(memory, process, a);
	return bytes;
}

/* It was freed by a call after all, so its context had not ended: the call is the truth. */
static void take_back_from_context(struct memory *memory, const struct allocation *a)
{
	struct memory_totals *const both[] = { &memory->totals[a->kind],
		                               &memory->totals[MEMORY_NONE] };

	for (size_t i = 0; i < 2; i++) {
		both[i]->context.count--;
		both[i]->context.bytes -= a->bytes;
	}
}

static uint64_t remove_allocation(struct memory *memory, const struct process *owner,
                                  enum api_memory kind, uint64_t address)
{
	struct process_memory *process = find_process(memory, owner->id);
	struct key key = { address, space_of(kind) };
	struct allocation *a = find(process, &key);
	uint64_t bytes;

	if (!address) /* free(NULL) */
		return 0;
	if (!a) {
		memory->unknown_frees++;
		return 0;
	}
	bytes = a->bytes;
	if (a->with_context)
		take_back_from_context(memory, a);
	else
		become_dead(memory, process, a);
	COUNT(memory, a->kind, freed, bytes);
	drop(process, a);
	return bytes;
}

/*
 * A context or device was destroyed or reset, and its memory with it. Which allocations are its
 * own is not known: all of the process's are taken to be, but those of cuMemCreate, which
 * belong to none. An allocation that is freed later shows that guess wrong and is counted right;
 * until the next such call its address is kept for that.
 */
static void forget_context(struct memory *memory, const struct process *owner)
{
	struct process_memory *process = find_process(memory, owner->id);
	struct allocation *a, *next;

	if (!process)
		return;
	HASH_ITER (hh, process->allocations, a, next) {
		if (a->key.space != SPACE_ADDRESS)
			continue;
		if (a->with_context) {
			drop(process, a);
			continue;
		}
		become_dead(memory, process, a);
		COUNT(memory, a->kind, context, a->bytes);
		a->with_context = true;
	}
}

static void forget_process(struct memory *memory, struct process_memory *process)
{
	struct allocation *a, *next;

	HASH_ITER (hh, process->allocations, a, next)
		drop(process, a);
	HASH_DELETE(by_id, memory->by_id, process);
	HASH_DELETE(by_pid, memory->by_pid, process);
	free(process);
}

static void end_process(struct memory *memory, struct process_memory *process)
{
	struct allocation *a, *next;

	if (!process)
		return;
	HASH_ITER (hh, process->allocations, a, next) {
		if (a->with_context)
			continue;
		become_dead(memory, process, a);
		COUNT(memory, a->kind, exit, a->bytes);
	}
	forget_process(memory, process);
}

/* A pid that starts again is an exec, or a process whose end was lost: its old memory is gone. */
static void begin_process(struct memory *memory, const struct process *process)
{
	struct process_memory *old;

	HASH_FIND(by_pid, memory->by_pid, &process->pid, sizeof(process->pid), old);
	if (old && old->id != process->id)
		end_process(memory, old);
}

/* ---- the outside --------------------------------------------------------------------------- */

static uint64_t follow_call(struct memory *memory, const struct event *event)
{
	const struct call *call = event->call;
	enum api_memory kind;

	if (!call_counts(call) || !call->function->api)
		return 0;
	if (call->op == OP_CONTEXT_DESTROY)
		forget_context(memory, event->process);
	kind = api_memory(call->function->api);
	if (kind == MEMORY_NONE)
		return 0;
	if (call->op == OP_ALLOC)
		return add_allocation(memory, event->process, kind, call);
	if (call->op == OP_FREE)
		return remove_allocation(memory, event->process, kind, call->args.address);
	return 0;
}

uint64_t memory_event(struct memory *memory, const struct event *event)
{
	switch (event->type) {
	case EVENT_CALL:
		return follow_call(memory, event);
	case EVENT_PROCESS:
		begin_process(memory, event->process);
		break;
	case EVENT_EXIT:
		end_process(memory, find_process(memory, event->process->id));
		break;
	case EVENT_CALL_BEGIN:
	case EVENT_THREAD:
	case EVENT_ACTIVITY:
		break;
	}
	return 0;
}

uint64_t memory_live_bytes(const struct memory *memory, const struct process *process)
{
	return memory_live_of_kind(memory, process, MEMORY_NONE);
}

uint64_t memory_live_of_kind(const struct memory *memory, const struct process *process,
                             enum api_memory kind)
{
	const struct process_memory *found = find_process(memory, process->id);

	return found ? found->live_bytes[kind] : 0;
}

const struct memory_totals *memory_totals(const struct memory *memory, enum api_memory kind)
{
	return &memory->totals[kind];
}

uint64_t memory_unknown_frees(const struct memory *memory)
{
	return memory->unknown_frees;
}

void memory_free(struct memory *memory)
{
	struct process_memory *process, *next;

	if (!memory)
		return;
	HASH_ITER (by_id, memory->by_id, process, next)
		forget_process(memory, process);
	free(memory);
}
