/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Stacks of calls, walked as they begin: a wait has nothing else to do then. Which calls says
 * wire_due.h.
 */
#pragma once

#ifdef STACKS
#include "bpf/walk.h"
#include "bpf/wire_due.h"

static __always_inline struct wire_due stacks_due(void)
{
	return (struct wire_due){ settings.call_stack_ns, settings.call_stack_one_in };
}

static __always_inline int call_stack_is_due(struct wire_thread *thread, __u32 kind, __u64 now)
{
	__u64 *paid = &thread->stack_ns[BOUNDED(kind, WIRE_STACK_KINDS - 1)];
	struct wire_due due = stacks_due();

	if (!(settings.call_stacks >> kind & 1))
		return 0;
	if (due_call(&due, paid, kind, now, bpf_get_prandom_u32()))
		return 1;
	if (kind == STACK_OF_ALLOCATION)
		__sync_fetch_and_add(&state.stacks_left_out, 1);
	return 0;
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

/* The number of the stack from the registers of `walk_from_...`; 0: there was no room to walk it.
 */
static __always_inline __u64 walk_now(struct walk *walk, __u32 slot, __u64 id, __u64 now)
{
	__u64 stack = walk_all(slot, id, now);

	buffer_release(&walk->busy);
	return stack;
}

static __always_inline struct walk *walk_new(__u32 *slot, __u64 id)
{
	struct walk *walk;

	*slot = walk_claim();
	walk = *slot < WALK_SLOTS ? walk_of(*slot) : 0;
	if (walk)
		walk_begin(walk, id);
	return walk;
}

/* The number of the stack at a function's entry; 0: there was no room to walk it. */
static __always_inline __u64 entry_walk(struct pt_regs *ctx, __u64 id, __u64 now)
{
	__u32 slot;
	struct walk *walk = walk_new(&slot, id);

	if (!walk)
		return 0;
	walk_from_entry(walk, ctx);
	return walk_now(walk, slot, id, now);
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
	if (!due_allocation(&thread->stack_ns[STACK_OF_ALLOCATION], now, 0)) {
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
	walk = walk_new(&slot, id);
	if (!walk) {
		__sync_fetch_and_add(&state.lost_stacks, 1);
		return 0;
	}
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
static __always_inline void node_made(struct pt_regs *ctx, struct wire_thread *thread, __u64 id,
                                      __u64 now)
{
	struct wire_node_stack record = { .node = PT_REGS_PARM1(ctx) };

	if (!due_allocation(&thread->stack_ns[STACK_OF_NODE], now, 0)) {
		__sync_fetch_and_add(&state.stacks_left_out, 1);
		return;
	}
	record.stack = entry_walk(ctx, id, now);
	if (!record.stack)
		__sync_fetch_and_add(&state.lost_stacks, 1);
	head_fill(&record.head, WIRE_NODE, id, now);
	emit_or_count(&record, sizeof(record), WAKE_IF_FULL, LOST_RECORDS);
}

/*
 * A call that the agent records, as it begins: its stack is that of the function's entry, where the
 * agent's code was jumped to. What a process says of that is of its own stack alone.
 */
static __always_inline void call_begun(struct pt_regs *ctx, struct wire_thread *thread, __u32 kind,
                                       __u64 id, __u64 now)
{
	__u64 *paid = &thread->stack_ns[BOUNDED(kind, WIRE_STACK_KINDS - 1)];
	struct wire_call_stack record = { .walk = PT_REGS_PARM1(ctx) };
	struct wire_due due = stacks_due();
	struct walk *walk;
	__u32 slot;

	if (!record.walk || !(settings.call_stacks >> kind & 1) ||
	    !due_asked(&due, paid, kind, now))
		return;
	walk = walk_new(&slot, id);
	if (walk) {
		walk->pc = PT_REGS_PARM3(ctx);
		walk->sp = PT_REGS_PARM4(ctx);
		walk->fp = PT_REGS_PARM5(ctx);
		walk->extra = 0;
		record.stack = walk_now(walk, slot, id, now);
	}
	head_fill(&record.head, WIRE_CALL_STACK, id, now);
	emit_or_count(&record, sizeof(record), WAKE_IF_FULL, LOST_RECORDS);
}

/* In a function that the agent calls for this: WIRE_WALK_FUNCTION. */
static __always_inline void agent_asked(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	struct wire_thread *thread = thread_get(id);
	__u64 kind = PT_REGS_PARM2(ctx);

	if (!thread)
		return;
	if (kind == STACK_OF_NODE)
		node_made(ctx, thread, id, now);
	else if (kind < WIRE_STACK_KINDS)
		call_begun(ctx, thread, kind, id, now);
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
