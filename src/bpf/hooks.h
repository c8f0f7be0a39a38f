/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Hooks that users ask for: what a plan says is recorded at an entry, a return or a moment, and
 * sent, or added up, if its filter says so. Apart from the calls of CUDA: other frames, nothing
 * nested.
 *
 * Global functions are as in hook_values.h.
 */
#pragma once

#include "bpf/call_shares.h"
#include "bpf/call_stacks.h"
#include "bpf/calls.h"
#include "bpf/fold_hooks.h"
#include "bpf/hook_values.h"
#include "bpf/wire_hooks.h"

/* Slot 0: where the stubs of old kernels go on; slot 1 of the first: at a return. */
MAP(PROG_ARRAY, 1, __u32, __u32)
hook_exit SEC(".maps"), khook_exit SEC(".maps"), khook_return_exit SEC(".maps"),
	trace_exit SEC(".maps");

/* ---- frames -------------------------------------------------------------------------------- */

static __always_inline __u64 hook_frame_key(__u64 id, int kernel, __u32 depth)
{
	return (id & 0xffffffff) << 8 | (kernel ? 128 : 0) | depth;
}

/* Its frame is no longer waited with. */
static __always_inline void hook_forget(__u64 key, __u32 tgid)
{
	struct call_share *share = call_share_known(tgid);

	if (!bpf_map_delete_elem(&hook_frames, &key))
		call_share_took(share ? &share->hooks : 0);
}

static __always_inline void hook_send_record(struct wire_hook *hook)
{
	__u64 bytes = WIRE_HOOK_BYTES(BOUNDED(hook->head.words, 31));

	if (hook->head.bytes)
		bytes = WIRE_HOOK_BYTES(WIRE_HOOK_VALUES) +
		        BOUNDED(hook->head.bytes - 1, WIRE_HOOK_TEXT - 1) + 1;
	if (bytes > sizeof(*hook))
		bytes = sizeof(*hook);
	emit_or_count(hook, bytes, hook->head.time_ns & 0x780 ? WAKE_NOBODY : WAKE_IF_FULL,
	              LOST_RING_FULL);
}

static __always_inline void hook_send(struct wire_hook_frame *frame)
{
	const struct wire_hook_plan *plan;

	if (frame->hook.head.flags & WIRE_UNREADABLE)
		count_lost(LOST_UNREADABLE);
	if (!FOLDING) {
		hook_send_record(&frame->hook);
		return;
	}
	plan = hook_plan_of(frame);
	if (plan)
		fold_hook(plan, hook_cookie_plan(frame->cookie), &frame->hook);
}

/* What a slot holds, if its filter lets it. */
__attribute__((noinline)) int hook_send_slot(__u32 slot)
{
	struct hook_slot *s = hook_slot_at(slot);

	if (s)
		hook_send(&s->frame);
	return 0;
}

/* A call that will not return; its frame is gone then. */
__attribute__((noinline)) int hook_abandon(__u64 key, __u64 now)
{
	struct wire_hook_frame *frame =
		settings.own_hooks ? bpf_map_lookup_elem(&hook_frames, &key) : 0;

	if (!frame)
		return 0;
	frame->hook.head.flags |= WIRE_UNFINISHED;
	frame->hook.head.time_ns = now;
	hook_send(frame);
	hook_forget(key, frame->hook.head.tgid);
	return 0;
}

/* Calls that the thread left by longjmp or an exception. */
static __always_inline void hook_drop_stale(struct wire_thread *thread, struct pt_regs *ctx,
                                            __u64 id, __u64 now)
{
	__u64 trampoline = thread->hook_depth[0] ? return_trampoline() : 0;

	for (__u32 i = 0; i < WIRE_HOOK_DEPTH; i++) {
		__u32 depth = thread->hook_depth[0];
		__u64 key = hook_frame_key(id, 0, depth - 1);
		struct wire_hook_frame *frame;

		if (!depth || depth > WIRE_HOOK_DEPTH)
			return;
		frame = bpf_map_lookup_elem(&hook_frames, &key);
		if (frame && frame_is_open(frame->sp, ctx, trampoline))
			return;
		hook_abandon(key, now);
		thread->hook_depth[0] = depth - 1;
	}
}

#define KERNEL_STACK 16384 /* they are aligned to that; interrupts have others */

/*
 * Calls whose return the kernel had no room for: the stack pointer has left them, on the same
 * stack. Without this a thread would be in too many calls some time, for good.
 */
static __always_inline void khook_drop_stale(struct wire_thread *thread, __u64 sp, __u64 cookie,
                                             __u64 id, __u64 now)
{
	for (__u32 i = 0; i < WIRE_HOOK_DEPTH; i++) {
		__u32 depth = thread->hook_depth[1];
		__u64 key = hook_frame_key(id, 1, depth - 1);
		struct wire_hook_frame *frame;

		if (!depth || depth > WIRE_HOOK_DEPTH)
			return;
		frame = bpf_map_lookup_elem(&hook_frames, &key);
		if (frame && ((frame->sp ^ sp) >= KERNEL_STACK || frame->sp > sp ||
		              (frame->sp == sp && frame->cookie != cookie)))
			return;
		hook_abandon(key, now);
		thread->hook_depth[1] = depth - 1;
	}
}

/* The thread is gone: it will not return. Before thread_end(). */
__attribute__((noinline)) int hooks_end(__u32 tid, __u32 tgid)
{
	struct wire_thread *thread = settings.own_hooks ? bpf_map_lookup_elem(&threads, &tid) : 0;
	__u64 id = (__u64)tgid << 32 | tid, now = bpf_ktime_get_ns();

	if (!thread || thread->tgid != tgid)
		return 0;
	for (__u32 i = 0; i < 2 * WIRE_HOOK_DEPTH; i++) {
		__u32 kernel = i / WIRE_HOOK_DEPTH, depth = i % WIRE_HOOK_DEPTH;

		if (depth < thread->hook_depth[kernel & 1])
			hook_abandon(hook_frame_key(id, kernel, depth), now);
	}
	return 0;
}

/* ---- hits ---------------------------------------------------------------------------------- */

static __always_inline void hook_fill(struct wire_hook_frame *frame, void *ctx, __u64 id,
                                      __u64 cookie, __u64 now)
{
	head_fill(&frame->hook.head, WIRE_HOOK, id, now);
	frame->hook.head.hook = hook_cookie_id(cookie);
	frame->hook.begin_ns = now;
	frame->hook.stack = 0;
	frame->cookie = cookie;
	frame->ctx = (__u64)ctx;
}

static __always_inline void hook_keep_frame(struct wire_thread *thread,
                                            struct wire_hook_frame *frame, __u64 id, int kernel)
{
	__u32 depth = thread->hook_depth[kernel];
	__u64 key = hook_frame_key(id, kernel, depth);
	struct call_share *share;

	if (depth >= WIRE_HOOK_DEPTH) {
		count_lost(LOST_TOO_DEEP);
		return;
	}
	share = call_share_of(id >> 32);
	if (call_share_put(share ? &share->hooks : 0, WIRE_HOOK_FRAMES / 2, &hook_frames, &key,
	                   frame)) {
		count_lost(LOST_THREADS_FULL);
		return;
	}
	thread->hook_depth[kernel] = depth + 1;
}

/* Whether the hit is told at its return; not where return probes kill, as in returns_wanted(). */
static __always_inline int hook_waits(const struct wire_hook_plan *plan, int kernel)
{
	if (!(plan->flags & PLAN_RETURNS))
		return 0;
	if (!kernel && settings.seccomp_entry_only) {
		struct task_struct *task = (void *)bpf_get_current_task();

		return BPF_CORE_READ(task, seccomp.mode) == 0;
	}
	return 1;
}

/* The record that the slot holds goes out, or waits for the return: then 1. */
static __always_inline int hook_go_on(struct wire_thread *thread, struct hook_slot *s, __u32 slot,
                                      const struct wire_hook_plan *plan, struct pt_regs *regs,
                                      __u64 id, int kernel)
{
	if ((plan->flags & PLAN_FILTER_ON_ENTRY) && plan->n_steps > !!plan->gate &&
	    !hook_filter_passes(slot, plan->n_steps))
		return 0;
	if (hook_waits(plan, kernel)) {
		s->frame.hook.stack = hook_walk(regs, thread, id, &s->frame.hook.begin_ns, kernel);
		hook_keep_frame(thread, &s->frame, id, kernel);
		return 1;
	}
	s->frame.hook.head.flags |= WIRE_NO_RETURN;
	hook_send_slot(slot);
	return 0;
}

static __always_inline void hook_drop_left(struct wire_thread *thread, struct pt_regs *regs,
                                           __u64 cookie, __u64 id, __u64 now, int kernel)
{
	if (!kernel)
		hook_drop_stale(thread, regs, id, now);
	else if (regs)
		khook_drop_stale(thread, PT_REGS_SP(regs), cookie, id, now);
}

/* The current thread's state; none is made for one that is ending. */
static __always_inline struct wire_thread *hook_thread(__u64 id)
{
	struct wire_thread *thread = thread_known(id);

	return thread || is_ending() ? thread : thread_get(id);
}

/*
 * An entry, or a moment. Returns 1 when its return is of no interest. One that is declined ends
 * here, but where the thread is in calls: of those it may show that they were left.
 */
static __always_inline int hook_entered(void *ctx, struct pt_regs *regs, __u64 cookie, int kernel)
{
	__u64 id = bpf_get_current_pid_tgid(), now;
	__u32 number = hook_cookie_plan(cookie), slot;
	const struct wire_hook_plan *plan = bpf_map_lookup_elem(&hook_plans, &number);
	int declined = plan && hook_gate_declines(plan, ctx), waits;
	struct wire_thread *thread = !plan ? 0 : declined ? thread_known(id) : hook_thread(id);
	struct hook_slot *s;

	if (!thread || (declined && !thread->hook_depth[kernel]))
		return 1;
	now = bpf_ktime_get_ns();
	if (!declined && !kernel &&
	    same_trap(&thread->own, regs, hook_cookie_id(cookie), now, state.own_double))
		return 1;
	hook_drop_left(thread, regs, cookie, id, now, kernel);
	if (declined)
		return 1;
	slot = hook_slot_claim();
	s = hook_slot_at(slot);
	if (!s)
		return 1;
	hook_fill(&s->frame, ctx, id, cookie, now);
	s->frame.hook.head.words = plan->n_values;
	s->frame.sp = regs ? PT_REGS_SP(regs) : 0;
	if (plan->n_values)
		hook_values(slot, plan->n_values, 0);
	waits = hook_go_on(thread, s, slot, plan, regs, id, kernel);
	buffer_release(&s->busy);
	return !waits;
}

/* The key of the frame of what returns now, 0 for none; frames above it were skipped. */
static __always_inline __u64 hook_frame_of_return(struct wire_thread *thread, struct pt_regs *ctx,
                                                  __u64 id, __u64 now)
{
	for (__u32 i = 0; i < WIRE_HOOK_DEPTH; i++) {
		__u32 depth = thread->hook_depth[0];
		__u64 key = hook_frame_key(id, 0, depth - 1);
		struct wire_hook_frame *frame;

		if (!depth || depth > WIRE_HOOK_DEPTH)
			return 0;
		frame = bpf_map_lookup_elem(&hook_frames, &key);
		if (frame && frame->sp > RETURN_SP(ctx))
			return 0; /* the entry was declined, or came before */
		thread->hook_depth[0] = depth - 1;
		if (frame && frame->sp == RETURN_SP(ctx))
			return key;
		hook_abandon(key, now);
	}
	return 0;
}

/*
 * Of functions of the kernel a return comes for each entry, for those that a filter declined as
 * well. It is that of a frame only where hook and stack pointer are the same: then its depth, and
 * the frames above were skipped. 0: it is none's.
 */
__attribute__((noinline)) __u32 khook_depth_of(__u32 tid, __u32 depth, __u64 cookie, __u64 sp)
{
	for (__u32 i = 0; i < WIRE_HOOK_DEPTH; i++) {
		__u64 key = hook_frame_key(tid, 1, depth - 1);
		struct wire_hook_frame *frame;

		if (!depth || depth > WIRE_HOOK_DEPTH)
			return 0;
		frame = bpf_map_lookup_elem(&hook_frames, &key);
		/* some kernels tell the stack pointer a word off */
		if (frame && frame->cookie == cookie && frame->sp - sp + 8 <= 16)
			return depth;
		depth--;
	}
	return 0;
}

static __always_inline __u64 khook_frame_of_return(struct wire_thread *thread, struct pt_regs *ctx,
                                                   __u64 id, __u64 now, __u64 cookie)
{
	__u32 depth = khook_depth_of(id, thread->hook_depth[1], cookie, RETURN_SP(ctx));

	if (!depth)
		return 0;
	for (__u32 i = 0; i < WIRE_HOOK_DEPTH; i++) {
		__u32 top = thread->hook_depth[1];

		if (top <= depth || top > WIRE_HOOK_DEPTH)
			break;
		hook_abandon(hook_frame_key(id, 1, top - 1), now);
		thread->hook_depth[1] = top - 1;
	}
	thread->hook_depth[1] = depth - 1;
	return hook_frame_key(id, 1, depth - 1);
}

static __always_inline int hook_returned(struct pt_regs *ctx, __u64 cookie, int kernel)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), key;
	struct wire_thread *thread = thread_known(id);
	const struct wire_hook_plan *plan;
	struct wire_hook_frame *frame;
	struct hook_slot *s;
	__u32 slot;

	if (thread && !kernel)
		thread->own.ip = 0; /* what comes now is in another trap */
	key = !thread  ? 0
	      : kernel ? khook_frame_of_return(thread, ctx, id, now, cookie)
	               : hook_frame_of_return(thread, ctx, id, now);
	frame = key ? bpf_map_lookup_elem(&hook_frames, &key) : 0;
	plan = frame ? hook_plan_of(frame) : 0;
	if (!plan)
		return 0;
	slot = hook_slot_claim();
	s = hook_slot_at(slot);
	if (s) {
		bpf_probe_read_kernel(&s->frame, sizeof(s->frame), frame);
		s->frame.ctx = (__u64)ctx;
		s->frame.hook.head.time_ns = now;
		if (plan->n_values)
			hook_values(slot, plan->n_values, 1);
		if ((plan->flags & PLAN_FILTER_ON_ENTRY) || hook_filter_passes(slot, plan->n_steps))
			hook_send_slot(slot);
		buffer_release(&s->busy);
	}
	hook_forget(key, id >> 32);
	return 0;
}
