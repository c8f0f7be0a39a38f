/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Live allocations, and where they were made. The same rules as in src/analysis/memory.c. */
#ifndef CUSCOPE_BPF_FOLD_MEMORY_H
#define CUSCOPE_BPF_FOLD_MEMORY_H

#include "bpf/fold.h"

/* ---- stacks -------------------------------------------------------------------------------- */

static __always_inline __u64 stack_hash(const struct wire_stack *stack)
{
	__u64 hash = 0xcbf29ce484222325ull;

	for (__u32 i = 0; i < WIRE_FRAMES_MAX; i++) {
		if (i >= stack->frames)
			break;
		hash = (hash ^ stack->frame[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
}

/* Sends a stack that is new in its process. Returns its hash, 0 where it could not be kept. */
static __always_inline __u64 stack_keep(void *ctx, const struct folded *f, struct wire_stack *stack)
{
	struct fold_stack_key key = { .born_ns = f->born_ns, .tgid = f->tgid };
	long bytes = bpf_get_stack(ctx, stack->frame, sizeof(stack->frame), BPF_F_USER_STACK);
	__u8 yes = 1;
	__u64 size;

	if (bytes <= 0)
		return 0;
	size = BOUNDED(bytes, 1023);
	if (size > sizeof(stack->frame))
		return 0;
	stack->frames = size / 8;
	key.hash = stack_hash(stack);
	if (bpf_map_lookup_elem(&fold_stacks, &key))
		return key.hash;
	stack->head = f->call->head;
	stack->head.type = WIRE_USER_STACK;
	stack->head.flags = 0;
	stack->born_ns = f->born_ns;
	stack->hash = key.hash;
	if (emit(stack, WIRE_USER_STACK_BYTES(0) + size, WAKE_NOW))
		return 0;
	bpf_map_update_elem(&fold_stacks, &key, &yes, BPF_ANY);
	return key.hash;
}

/*
 * The user stack of an allocation, walked at its return: there the instruction pointer is already
 * in the caller and the frame pointer is the caller's again. On entry the caller would be missing
 * (its frame pointer is pushed by the instruction that the probe stands on).
 */
static __always_inline __u64 stack_of(void *ctx, const struct folded *f)
{
	__u32 zero = 0;
	struct stack_slots *slots;
	__u64 hash = 0;

	if (!settings.stacks || !fold_has_return(f))
		return 0;
	slots = bpf_map_lookup_elem(&fold_stack_slots, &zero);
	if (!slots)
		return 0;
	for (__u32 i = 0; i < STACK_SLOTS; i++) {
		if (slots->busy[i])
			continue;
		slots->busy[i] = 1;
		hash = stack_keep(ctx, f, &slots->stack[i]);
		slots->busy[i] = 0;
		break;
	}
	if (!hash)
		__sync_fetch_and_add(&state.lost_stacks, 1);
	return hash;
}

/* ---- allocations --------------------------------------------------------------------------- */

static __always_inline struct fold_totals *totals_of(const struct folded *f, __u32 memory)
{
	struct fold_process_key key = { .born_ns = f->born_ns, .tgid = f->tgid, .memory = memory };
	int made;

	return FOLD_ROW(&fold_totals, &key, &made);
}

/* Adds to what is live, with 2's complement to take away. */
static __always_inline void live_add(struct fold_process *process, __u32 memory, __u32 space,
                                     __u64 bytes)
{
	if (memory == FOLD_VMM_VA)
		return;
	if (space == FOLD_SPACE_HANDLE)
		FOLD_ADD(process->handle_bytes, bytes);
	else
		FOLD_ADD(process->live_bytes, bytes);
	fold_max(&process->peak_bytes, process->live_bytes + process->handle_bytes);
}

/* Whether it is thought to have gone with its context: see forget_context() in memory.c. */
static __always_inline int with_context(const struct fold_process *process,
                                        const struct fold_live_key *key)
{
	return key->space == FOLD_SPACE_ADDRESS && key->time_ns < process->context_ns;
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
	row = FOLD_ROW(&fold_failures, &key, &made);
	if (row)
		fold_count(row, f->plan->flags & FOLD_ARRAY ? 0 : fold_bytes(f));
	else
		fold_lost_row();
}

static __always_inline struct fold_latest *latest_of(const struct folded *f, __u64 address,
                                                     int make)
{
	struct fold_address_key key = {
		.address = address, .born_ns = f->born_ns, .tgid = f->tgid, .space = f->plan->space
	};
	int made;

	return make ? FOLD_ROW(&fold_latest, &key, &made) : bpf_map_lookup_elem(&fold_latest, &key);
}

/* Its address was given out again: its free was not seen, or will be seen in a moment. */
static __always_inline void memory_replaced(const struct folded *f, struct fold_process *process,
                                            struct fold_latest *latest,
                                            const struct fold_live_key *key)
{
	const struct fold_allocation *a = bpf_map_lookup_elem(&fold_live, key);
	struct fold_totals *totals;
	__u32 memory;
	__u64 bytes;
	long failed;

	if (!a)
		return;
	bytes = a->bytes;
	memory = a->memory;
	totals = totals_of(f, memory);
	/* before it is taken out: the free that finds it gone looks for it here */
	latest->replaced_memory = memory;
	FOLD_ADD(latest->replaced_bytes, bytes);
	FOLD_ADD(latest->replaced, 1);
	failed = bpf_map_delete_elem(&fold_live, key);
	if (failed || with_context(process, key)) {
		FOLD_ADD(latest->replaced_bytes, -bytes);
		FOLD_ADD(latest->replaced, -1ull);
		if (totals && !failed)
			fold_count(&totals->context, bytes);
		return;
	}
	if (totals)
		fold_count(&totals->replaced, bytes);
	live_add(process, memory, key->space, -bytes);
}

static __always_inline void memory_allocated(void *ctx, const struct folded *f)
{
	struct fold_allocation a = { .hook = f->call->head.hook, .memory = f->plan->memory };
	struct fold_live_key key = { .address = FOLD_VALUE(f, FOLD_AT_ADDRESS),
		                     .born_ns = f->born_ns,
		                     .tgid = f->tgid,
		                     .space = f->plan->space };
	struct fold_process *process = fold_process(f);
	struct fold_totals *totals = totals_of(f, f->plan->memory);
	struct fold_latest *latest;

	a.bytes = fold_alloc_bytes(f);
	if (!key.address && !a.bytes) /* nothing asked for, nothing given */
		return;
	if (!process || !totals) {
		fold_lost_row();
		return;
	}
	fold_count(&totals->allocated, a.bytes);
	latest = key.address ? latest_of(f, key.address, 1) : 0;
	if (!latest) {
		fold_count(&totals->untracked, a.bytes);
		if (key.address)
			fold_lost_row();
		return;
	}
	key.time_ns = latest->time_ns;
	if (key.time_ns)
		memory_replaced(f, process, latest, &key);
	key.time_ns = f->call->head.time_ns;
	a.stack = stack_of(ctx, f);
	if (bpf_map_update_elem(&fold_live, &key, &a, BPF_ANY)) {
		fold_count(&totals->untracked, a.bytes);
		fold_lost_row();
		return;
	}
	latest->time_ns = key.time_ns;
	live_add(process, a.memory, key.space, a.bytes);
}

/* Of several that were replaced the mean is taken, which the last one makes exact. */
static __always_inline void memory_freed_late(const struct folded *f, struct fold_process *process,
                                              struct fold_latest *latest)
{
	struct fold_totals *totals = totals_of(f, latest->replaced_memory);
	__u64 replaced = latest->replaced, bytes;

	if (!replaced) {
		FOLD_ADD(process->unknown_frees, 1);
		return;
	}
	bytes = latest->replaced_bytes / replaced;
	FOLD_ADD(latest->replaced_bytes, -bytes);
	FOLD_ADD(latest->replaced, -1ull);
	if (!totals)
		return;
	fold_uncount(&totals->replaced, bytes);
	fold_count(&totals->freed, bytes);
}

/*
 * A free is counted when it returns. Another thread may by then have been given the same address
 * and have returned first, or be returning at this moment: then what stands there is younger than
 * this call, and what this call freed was counted as replaced.
 */
static __always_inline void memory_freed(const struct folded *f)
{
	struct fold_live_key key = { .address = FOLD_VALUE(f, FOLD_AT_ADDRESS),
		                     .born_ns = f->born_ns,
		                     .tgid = f->tgid,
		                     .space = f->plan->space };
	struct fold_process *process = fold_process(f);
	const struct fold_allocation *a;
	struct fold_latest *latest;
	struct fold_totals *totals;
	__u32 memory;
	__u64 bytes;

	if (!key.address || !process) /* free(NULL) */
		return;
	latest = latest_of(f, key.address, 0);
	if (!latest) {
		FOLD_ADD(process->unknown_frees, 1);
		return;
	}
	key.time_ns = latest->time_ns;
	a = key.time_ns < f->call->begin_ns ? bpf_map_lookup_elem(&fold_live, &key) : 0;
	bytes = a ? a->bytes : 0;
	memory = a ? a->memory : 0;
	if (!a || bpf_map_delete_elem(&fold_live, &key)) {
		memory_freed_late(f, process, latest);
		return;
	}
	totals = totals_of(f, memory);
	if (totals)
		fold_count(&totals->freed, bytes);
	if (!with_context(process, &key))
		live_add(process, memory, key.space, -bytes);
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
