/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Live allocations, and where they were made. The same rules as in src/analysis/memory.c. */
#ifndef CUSCOPE_BPF_FOLD_MEMORY_H
#define CUSCOPE_BPF_FOLD_MEMORY_H

#include "bpf/fold.h"

/* ---- allocations --------------------------------------------------------------------------- */

static __always_inline struct fold_totals *totals_of(const struct folded *f, __u32 memory)
{
	struct fold_process_key key = { .born_ns = f->born_ns, .tgid = f->tgid, .memory = memory };
	int made;

	return FOLD_ROW(&fold_totals, &key, &made);
}

/*
 * Adds to what is live, with 2's complement to take away. The sum can be below zero for a moment: a
 * context that is destroyed sets it to 0 while a free is about to take its share off.
 */
static __always_inline void live_add(struct fold_process *process, __u32 memory, __u32 space,
                                     __u64 bytes)
{
	__u64 live;

	if (memory == FOLD_VMM_VA)
		return;
	if (space == FOLD_SPACE_HANDLE)
		FOLD_ADD(process->handle_bytes, bytes);
	else
		FOLD_ADD(process->live_bytes, bytes);
	live = process->live_bytes + process->handle_bytes;
	if (!(live >> 63))
		fold_max(&process->peak_bytes, live);
}

/* Whether it is thought to have gone with its context: see forget_context() in memory.c. */
static __always_inline int with_context(const struct fold_process *process, __u64 time_ns,
                                        __u32 space)
{
	return space == FOLD_SPACE_ADDRESS && time_ns < process->context_ns;
}

static __always_inline void memory_failed(const struct folded *f)
{
	struct fold_failure_key key = { .born_ns = f->born_ns,
		                        .tgid = f->tgid,
		                        .result = f->call->result,
		                        .hook = f->call->head.hook };
	struct fold_process *process = fold_process(f);
	struct fold_count *row;
	int made;

	if (process)
		FOLD_ADD(process->failed, 1);
	row = FOLD_SHARED_ROW(f, &fold_failures, &key, FOLD_SHARE_FAILURES, FOLD_SHARE_FAILURES,
	                      &made);
	if (row)
		fold_count(row, f->plan->flags & FOLD_ARRAY ? 0 : fold_bytes(f));
	else
		fold_lost_row();
}

static __always_inline struct fold_memory_key memory_key(const struct folded *f)
{
	return (struct fold_memory_key){ .address = FOLD_VALUE(f, FOLD_AT_ADDRESS),
		                         .born_ns = f->born_ns,
		                         .tgid = f->tgid,
		                         .space = f->plan->space };
}

/* Its address was given out again: its free was not seen. */
static __always_inline void memory_replaced(const struct folded *f, struct fold_process *process,
                                            const struct fold_allocation *old)
{
	struct fold_totals *totals = totals_of(f, old->memory);
	__u32 space = f->plan->space;

	if (!totals)
		return;
	if (with_context(process, old->time_ns, space)) {
		fold_count(&totals->context, old->bytes);
		return;
	}
	fold_count(&totals->replaced, old->bytes);
	live_add(process, old->memory, space, -old->bytes);
}

static __always_inline void memory_allocated(const struct folded *f, __u64 stack)
{
	struct fold_allocation a = { .time_ns = f->call->head.time_ns,
		                     .stack = stack,
		                     .hook = f->call->head.hook,
		                     .memory = f->plan->memory },
			       *old;
	struct fold_memory_key key = memory_key(f);
	struct fold_process *process = fold_process(f);
	struct fold_totals *totals = totals_of(f, f->plan->memory);
	struct fold_share *share = fold_share(f);

	a.bytes = fold_alloc_bytes(f);
	if (!key.address && !a.bytes) /* nothing asked for, nothing given */
		return;
	if (!process || !totals) {
		fold_lost_row();
		return;
	}
	fold_count(&totals->allocated, a.bytes);
	if (!key.address) {
		fold_count(&totals->untracked, a.bytes);
		return;
	}
	old = bpf_map_lookup_elem(&fold_live, &key);
	if (old)
		memory_replaced(f, process, old);
	if ((!old && !share_has_room(share, FOLD_SHARE_LIVE, FOLD_SHARE_LIVE)) ||
	    bpf_map_update_elem(&fold_live, &key, &a, BPF_ANY)) {
		fold_count(&totals->untracked, a.bytes);
		fold_lost_row();
		return;
	}
	share_add(share, FOLD_SHARE_LIVE, !old);
	live_add(process, a.memory, key.space, a.bytes);
}

/*
 * A free takes its allocation out when it begins: as long as it has not begun, nobody else can be
 * given that address, so nothing else touches the entry. When it returns, another thread may have
 * been given the address already, and have returned before. What it is worth is counted at its end.
 */
static __always_inline void memory_taken(struct wire_thread *thread, const struct folded *f)
{
	struct fold_memory_key key = memory_key(f);
	const struct fold_allocation *a;

	thread->freed.time_ns = 0;
	if (!key.address) /* free(NULL) */
		return;
	a = bpf_map_lookup_elem(&fold_live, &key);
	if (!a)
		return;
	thread->freed.time_ns = a->time_ns;
	thread->freed.address = key.address;
	thread->freed.bytes = a->bytes;
	thread->freed.stack = a->stack;
	thread->freed.hook = a->hook;
	thread->freed.memory = a->memory;
	thread->freed.space = key.space;
	if (bpf_map_delete_elem(&fold_live, &key))
		thread->freed.time_ns = 0; /* freed twice, and the other was first */
}

static __always_inline void memory_freed(struct wire_thread *thread, const struct folded *f)
{
	struct fold_process *process = fold_process(f);
	struct wire_freed *freed = &thread->freed;
	struct fold_totals *totals;
	__u64 time_ns = freed->time_ns;

	freed->time_ns = 0;
	if (!process || !FOLD_VALUE(f, FOLD_AT_ADDRESS))
		return;
	if (!time_ns) {
		FOLD_ADD(process->unknown_frees, 1);
		return;
	}
	share_add(fold_share(f), FOLD_SHARE_LIVE, -1ull);
	totals = totals_of(f, freed->memory);
	if (totals)
		fold_count(&totals->freed, freed->bytes);
	if (!with_context(process, time_ns, freed->space))
		live_add(process, freed->memory, freed->space, -freed->bytes);
}

/* All memory of the process is taken to be of this context, but for what belongs to none. */
static __always_inline void memory_context_ended(const struct folded *f)
{
	struct fold_process *process = fold_process(f);

	if (!process)
		return;
	process->context_ns = f->call->head.time_ns;
	process->live_bytes = 0;
}

#endif
