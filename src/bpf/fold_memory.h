/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Live allocations, and where they were made. The same rules as in src/analysis/memory.c. */
#pragma once

#include "bpf/fold_captures.h"

/* ---- rows ---------------------------------------------------------------------------------- */

/*
 * Whether the process may have another row. A user but root may have no more than three times as
 * many as are free: alone three quarters of all, two of them three sevenths each. So however many
 * processes they have, there are some for the next user.
 */
static __always_inline int live_has_room(const struct folded *f, const struct fold_share *share)
{
	__s64 free = (__s64)settings.share[FOLD_SHARE_ROOM] - state.live_rows;
	__s64 rows = state.user_rows[BOUNDED(f->user, WIRE_USERS - 1)];

	return share_has_room(share, FOLD_SHARE_LIVE, FOLD_SHARE_LIVE) &&
	       (!f->user || rows < 3 * free);
}

static __always_inline void live_made(const struct folded *f, struct fold_share *share, __u64 rows)
{
	share_add(share, FOLD_SHARE_LIVE, rows);
	user_rows_add(f->user, rows);
}

/* It is counted as whose it was made. */
static __always_inline void live_gone(const struct folded *f, __u32 user)
{
	share_add(fold_share(f), FOLD_SHARE_LIVE, -1ull);
	user_rows_add(user, -1ull);
}

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
		                     .user = f->user,
		                     .memory = f->plan->memory,
		                     .held = 1 },
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
	if (old) {
		a.user = old->user;
		memory_replaced(f, process, old);
	}
	if ((!old && !live_has_room(f, share)) ||
	    bpf_map_update_elem(&fold_live, &key, &a, BPF_ANY)) {
		fold_count(&totals->untracked, a.bytes);
		fold_lost_row();
		return;
	}
	live_made(f, share, !old);
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
	if (!a || (key.space == FOLD_SPACE_HANDLE && a->held > 1))
		return;
	thread->freed.time_ns = a->time_ns;
	thread->freed.address = key.address;
	thread->freed.bytes = a->bytes;
	thread->freed.stack = a->stack;
	thread->freed.hook = a->hook;
	thread->freed.user = a->user;
	thread->freed.memory = a->memory;
	thread->freed.space = key.space;
	if (bpf_map_delete_elem(&fold_live, &key))
		thread->freed.time_ns = 0; /* freed twice, and the other was first */
}

/*
 * A handle's memory is held once less. What gives it back for the last time is who takes it out:
 * with two at once both see that nobody holds it, and one of them finds it gone.
 */
static __always_inline int handle_given_back(const struct folded *f, struct fold_process *process,
                                             __u64 handle)
{
	struct fold_memory_key key = { .address = handle,
		                       .born_ns = f->born_ns,
		                       .tgid = f->tgid,
		                       .space = FOLD_SPACE_HANDLE };
	struct fold_allocation *a = bpf_map_lookup_elem(&fold_live, &key);
	struct fold_totals *totals;
	__u64 bytes;
	__u32 user;

	if (!a || !process)
		return 0;
	FOLD_ADD(a->held, -1ull);
	bytes = a->bytes;
	user = a->user;
	if (a->held || bpf_map_delete_elem(&fold_live, &key))
		return 1;
	live_gone(f, user);
	totals = bytes ? totals_of(f, FOLD_VMM) : 0; /* without: another process's */
	if (totals)
		fold_count(&totals->freed, bytes);
	live_add(process, FOLD_VMM, FOLD_SPACE_HANDLE, -bytes);
	return 1;
}

static __always_inline struct fold_memory_key graph_key(const struct folded *f, __u64 address)
{
	return (struct fold_memory_key){ .address = address,
		                         .born_ns = f->born_ns,
		                         .tgid = f->tgid,
		                         .space = FOLD_SPACE_GRAPH };
}

/* What runs when is not known here: memory of graphs is in no sum, and frees of it are none. */
static __always_inline int is_of_graph(const struct folded *f, __u64 address)
{
	struct fold_memory_key key = graph_key(f, address);

	return bpf_map_lookup_elem(&fold_live, &key) != 0;
}

static __always_inline void memory_recorded(const struct folded *f)
{
	struct fold_memory_key key = graph_key(f, FOLD_VALUE(f, FOLD_AT_ADDRESS));
	struct fold_allocation a = { .time_ns = f->call->head.time_ns, .user = f->user };
	struct fold_share *share = fold_share(f);

	if (key.address && live_has_room(f, share) &&
	    !bpf_map_update_elem(&fold_live, &key, &a, BPF_NOEXIST))
		live_made(f, share, 1);
}

static __always_inline void memory_freed(struct wire_thread *thread, const struct folded *f)
{
	struct fold_process *process = fold_process(f);
	struct wire_freed *freed = &thread->freed;
	struct fold_totals *totals;
	__u64 time_ns = freed->time_ns, address = FOLD_VALUE(f, FOLD_AT_ADDRESS);

	freed->time_ns = 0;
	if (!process || !address)
		return;
	if (!time_ns) {
		if (f->plan->space == FOLD_SPACE_HANDLE ? !handle_given_back(f, process, address)
		                                        : !is_of_graph(f, address))
			FOLD_ADD(process->unknown_frees, 1);
		return;
	}
	live_gone(f, freed->user);
	if (freed->space == FOLD_SPACE_HANDLE && !freed->bytes)
		return;
	totals = totals_of(f, freed->memory);
	if (totals)
		fold_count(&totals->freed, freed->bytes);
	if (!with_context(process, time_ns, freed->space))
		live_add(process, freed->memory, freed->space, -freed->bytes);
}

/* ---- virtual memory management ------------------------------------------------------------- */

static __always_inline struct fold_memory_key mapped_key(const struct folded *f, __u64 address)
{
	return (struct fold_memory_key){ .address = address,
		                         .born_ns = f->born_ns,
		                         .tgid = f->tgid,
		                         .space = FOLD_SPACE_MAPPED };
}

/* Its bytes; 0: there was none, or another is taking it out, or it came after this call began. */
static __always_inline __u64 mapping_forgotten(const struct folded *f, struct fold_process *process,
                                               const struct fold_memory_key *key, __u64 before_ns)
{
	const struct fold_allocation *mapping = bpf_map_lookup_elem(&fold_live, key);
	__u64 bytes, handle;
	__u32 user;

	if (!mapping || mapping->time_ns > before_ns)
		return 0;
	bytes = mapping->bytes;
	user = mapping->user;
	handle = mapping->held;
	if (bpf_map_delete_elem(&fold_live, key))
		return 0;
	live_gone(f, user);
	handle_given_back(f, process, handle);
	return bytes;
}

static __always_inline void memory_mapped(const struct folded *f)
{
	struct fold_memory_key key = mapped_key(f, FOLD_VALUE(f, FOLD_AT_SOURCE));
	struct fold_allocation mapping = { .time_ns = f->call->head.time_ns,
		                           .held = key.address,
		                           .user = f->user,
		                           .memory = FOLD_VMM };
	struct fold_process *process = fold_process(f);
	struct fold_share *share = fold_share(f);
	struct fold_allocation *of;

	mapping.bytes = fold_bytes(f);
	key.space = FOLD_SPACE_HANDLE;
	of = bpf_map_lookup_elem(&fold_live, &key);
	if (of)
		FOLD_ADD(of->held, 1);
	key.space = FOLD_SPACE_MAPPED;
	key.address = FOLD_VALUE(f, FOLD_AT_ADDRESS);
	mapping_forgotten(f, process, &key,
	                  ~0ull); /* whose unmapping is not over, or was not seen */
	if (!of || !mapping.bytes)
		return;
	if (!live_has_room(f, share) || bpf_map_update_elem(&fold_live, &key, &mapping, BPF_ANY)) {
		fold_lost_row(); /* it is held to the end of the process */
		return;
	}
	live_made(f, share, 1);
}

#define UNMAPPED_MOST 4 /* mappings, by one call: what allocators do is one each */

static __always_inline void memory_unmapped(const struct folded *f)
{
	struct fold_memory_key key = mapped_key(f, FOLD_VALUE(f, FOLD_AT_ADDRESS));
	struct fold_process *process = fold_process(f);
	__u64 left = fold_bytes(f), bytes = 0;

	for (int i = 0; i < UNMAPPED_MOST && left; i++) {
		bytes = mapping_forgotten(f, process, &key, f->call->begin_ns);
		if (!bytes)
			return;
		key.address += bytes;
		left = bytes < left ? left - bytes : 0;
	}
	if (left && bpf_map_lookup_elem(&fold_live, &key))
		fold_lost_row();
}

/* A handle of memory that there is; of another process's only that it is to be given back. */
static __always_inline void memory_retained(const struct folded *f)
{
	struct fold_memory_key key = mapped_key(f, FOLD_VALUE(f, FOLD_AT_ADDRESS));
	struct fold_allocation a = { .time_ns = f->call->head.time_ns,
		                     .hook = f->call->head.hook,
		                     .user = f->user,
		                     .memory = FOLD_VMM,
		                     .held = 1 },
			       *known;
	struct fold_share *share = fold_share(f);

	key.space = FOLD_SPACE_HANDLE;
	known = bpf_map_lookup_elem(&fold_live, &key);
	if (known)
		FOLD_ADD(known->held, 1);
	else if (key.address && live_has_room(f, share) &&
	         !bpf_map_update_elem(&fold_live, &key, &a, BPF_NOEXIST))
		live_made(f, share, 1);
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
