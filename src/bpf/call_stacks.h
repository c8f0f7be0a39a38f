/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Stacks of calls, walked as they begin: a wait has nothing else to do then. A walk costs ten times
 * what tracing the call does, so not each may be walked.
 */
#pragma once

#ifdef STACKS
#include "bpf/walk.h"

#define AHEAD               64            /* walks */
#define WAIT_NS             1000000ull    /* between two waits of a thread, on average */
#define ALLOCATION_NS       100000ull     /* so many allocations of a thread in the long run, */
#define ALLOCATION_AHEAD_NS 1000000000ull /* and what that makes in a second at once */

/*
 * Launches come in bursts, a training step's within a millisecond. So a thread saves up to AHEAD
 * walks while it makes none. The fewer are left, the more it is chance which are walked: where
 * there are always too many, all are walked in the end, and not only those that a step begins with.
 * `paid` is until when the thread's walks are paid for.
 */
static __always_inline int stack_is_due(__u64 *paid, __u64 now, __u64 between)
{
	__u64 ahead = AHEAD * between, from = now > ahead ? now - ahead : 0;

	if (*paid < from)
		*paid = from;
	if (now < *paid || (bpf_get_prandom_u32() % (AHEAD / 2)) * between > now - *paid)
		return 0;
	*paid += between;
	return 1;
}

/*
 * Where memory leaks is found only if the one allocation that leaks is walked. So all are, up to a
 * rate: `paid` is until when the thread's walks are paid for, and may lie ahead.
 */
static __always_inline int allocation_is_due(__u64 *paid, __u64 now)
{
	__u64 from = *paid > now ? *paid : now;

	if (from - now >= ALLOCATION_AHEAD_NS)
		return 0;
	*paid = from + ALLOCATION_NS;
	return 1;
}

static __always_inline int call_stack_is_due(struct wire_thread *thread, __u32 kind, __u64 now)
{
	__u64 *clock = &thread->stack_ns[BOUNDED(kind, WIRE_STACK_KINDS - 1)];

	if (!(settings.call_stacks >> kind & 1))
		return 0;
	if (kind == STACK_OF_ALLOCATION || kind == STACK_OF_FREE) {
		if (allocation_is_due(clock, now))
			return 1;
		if (kind == STACK_OF_ALLOCATION)
			__sync_fetch_and_add(&state.stacks_left_out, 1);
		return 0;
	}
	if (kind == STACK_OF_WAIT)
		return stack_is_due(clock, now, WAIT_NS);
	if (settings.call_stack_one_in > 1)
		return bpf_get_prandom_u32() % settings.call_stack_one_in == 0;
	return !settings.call_stack_ns || stack_is_due(clock, now, settings.call_stack_ns);
}

static __always_inline void walk_from_entry(struct walk *walk, struct pt_regs *ctx)
{
#ifdef __TARGET_ARCH_arm64
	USER_REGS *regs = (void *)ctx;
#else
	USER_REGS *regs = ctx;
#endif

	walk->pc = REGS_PC(regs);
	walk->sp = REGS_SP(regs);
	walk->fp = REGS_FP(regs);
	walk->extra = REGS_EXTRA(regs);
}

/* The number of the stack at a function's entry; 0: there was no room to walk it. */
static __always_inline __u64 entry_walk(struct pt_regs *ctx, __u64 id, __u64 now)
{
	__u32 slot = walk_claim();
	struct walk *walk = slot < WALK_SLOTS ? walk_of(slot) : 0;
	__u64 stack;

	if (!walk)
		return 0;
	walk_begin(walk, id);
	walk_from_entry(walk, ctx);
	stack = walk_all(slot, id, now);
	buffer_release(&walk->busy);
	return stack;
}

/* Returns the time of its record: when the walk was over, which is no time of the call's. */
static __always_inline __u64 stack_send(struct pt_regs *ctx, __u64 id, __u64 now, __u8 type)
{
	struct wire_call_stack record = { .stack = entry_walk(ctx, id, now) };

	if (record.stack)
		now = bpf_ktime_get_ns();
	head_fill(&record.head, type, id, now);
	emit_or_count(&record, sizeof(record), WAKE_IF_FULL, LOST_RECORDS);
	return now;
}

/* When the call begins: now, or when it has been walked. */
static __always_inline __u64 call_stack_walk(struct pt_regs *ctx, struct wire_thread *thread,
                                             __u32 kind, __u64 id, __u64 now)
{
	return call_stack_is_due(thread, kind, now) ? stack_send(ctx, id, now, WIRE_CALL_STACK)
	                                            : now;
}

/* Of an allocation that is folded. It is walked as it begins, whether it will succeed or not. */
static __always_inline void allocation_walk(struct pt_regs *ctx, struct wire_thread *thread,
                                            const struct fold_plan *plan, __u64 id, __u64 now)
{
	thread->allocation_stack = 0;
	if (!settings.stacks || plan->op != FOLD_ALLOC)
		return;
	if (!allocation_is_due(&thread->stack_ns[STACK_OF_ALLOCATION], now)) {
		__sync_fetch_and_add(&state.stacks_left_out, 1);
		return;
	}
	thread->allocation_stack = entry_walk(ctx, id, now);
	if (!thread->allocation_stack)
		__sync_fetch_and_add(&state.lost_stacks, 1);
}

/*
 * Of a span of a hook. The number of the stack; 0: none was walked. What the walk takes is no time
 * of the call's, which begins then. Of a function of the kernel it is the stack of its caller in
 * the program.
 */
static __always_inline __u64 hook_walk(struct pt_regs *ctx, struct wire_thread *thread, __u64 id,
                                       __u64 *begin_ns, int kernel)
{
	__u64 stack = 0;
	struct walk *walk;
	__u32 slot;

	if (FOLDING || !(settings.call_stacks >> STACK_OF_HOOK & 1) ||
	    !call_stack_is_due(thread, STACK_OF_HOOK, *begin_ns))
		return 0;
	slot = walk_claim();
	walk = slot < WALK_SLOTS ? walk_of(slot) : 0;
	if (!walk) {
		__sync_fetch_and_add(&state.lost_stacks, 1);
		return 0;
	}
	walk_begin(walk, id);
	if (!kernel)
		walk_from_entry(walk, ctx);
	if (!kernel || !walk_from_kernel(walk))
		stack = walk_all(slot, id, *begin_ns);
	buffer_release(&walk->busy);
	*begin_ns = bpf_ktime_get_ns();
	return stack;
}

static __always_inline void backward_begun(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (thread_get(id))
		stack_send(ctx, id, bpf_ktime_get_ns(), WIRE_BACKWARD);
}

/*
 * What a graph runs is where its nodes were made, as often as it runs: so each is walked, at the
 * rate of allocations.
 */
static __always_inline void node_made(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	struct wire_node_stack record = { .node = PT_REGS_PARM1(ctx) };
	struct wire_thread *thread = thread_get(id);

	if (!thread)
		return;
	if (!allocation_is_due(&thread->stack_ns[STACK_OF_NODE], now)) {
		__sync_fetch_and_add(&state.stacks_left_out, 1);
		return;
	}
	record.stack = entry_walk(ctx, id, now);
	if (!record.stack)
		__sync_fetch_and_add(&state.lost_stacks, 1);
	head_fill(&record.head, WIRE_NODE, id, now);
	emit_or_count(&record, sizeof(record), WAKE_IF_FULL, LOST_RECORDS);
}

#else

static __always_inline __u64 call_stack_walk(struct pt_regs *ctx, struct wire_thread *thread,
                                             __u32 kind, __u64 id, __u64 now)
{
	return now;
}

static __always_inline void allocation_walk(struct pt_regs *ctx, struct wire_thread *thread,
                                            const struct fold_plan *plan, __u64 id, __u64 now)
{
}

static __always_inline __u64 hook_walk(struct pt_regs *ctx, struct wire_thread *thread, __u64 id,
                                       __u64 *begin_ns, int kernel)
{
	return 0;
}

#endif
