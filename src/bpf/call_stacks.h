/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Stacks of calls that ask for work. A walk costs ten times the call, so not each may be walked. */
#ifndef CUSCOPE_BPF_CALL_STACKS_H
#define CUSCOPE_BPF_CALL_STACKS_H

#ifdef STACKS
#include "bpf/walk.h"

/* By chance, so that calls that come in the same order each time are all walked in the end. */
static __always_inline int call_stack_is_due(struct wire_thread *thread, __u64 now)
{
	__u32 chance;

	if (!settings.call_stacks)
		return 0;
	if (settings.call_stack_one_in > 1)
		return bpf_get_prandom_u32() % settings.call_stack_one_in == 0;
	if (!settings.call_stack_ns)
		return 1;
	if (now < thread->stack_ns)
		return 0;
	chance = bpf_get_prandom_u32() & 1023;
	thread->stack_ns =
		now + settings.call_stack_ns / 2 + settings.call_stack_ns / 1024 * chance;
	return 1;
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

static __always_inline void stack_send(struct pt_regs *ctx, __u64 id, __u64 now, __u8 type)
{
	struct wire_call_stack record = {};
	struct walk *walk;
	__u32 slot;

	slot = walk_claim();
	walk = slot < WALK_SLOTS ? walk_of(slot) : 0;
	if (walk) {
		walk_begin(walk, id);
		walk_from_entry(walk, ctx);
		record.stack = walk_all(slot, walk, id, now);
		buffer_release(&walk->busy);
	}
	head_fill(&record.head, type, id, now);
	emit_or_count(&record, sizeof(record), WAKE_IF_FULL, LOST_RECORDS);
}

static __always_inline void call_stack_walk(struct pt_regs *ctx, struct wire_thread *thread,
                                            __u64 id, __u64 now)
{
	if (call_stack_is_due(thread, now))
		stack_send(ctx, id, now, WIRE_CALL_STACK);
}

static __always_inline void backward_begun(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (thread_get(id))
		stack_send(ctx, id, bpf_ktime_get_ns(), WIRE_BACKWARD);
}

#else

static __always_inline void call_stack_walk(struct pt_regs *ctx, struct wire_thread *thread,
                                            __u64 id, __u64 now)
{
}

#endif

#endif
