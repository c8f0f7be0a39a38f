/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Hooks that users ask for: what a plan says is recorded at an entry, a return or a moment, and
 * sent, or added up, if its filter says so. Apart from the calls of CUDA: other frames, nothing
 * nested.
 *
 * What has loops is a global function, which the verifier goes through once. Such functions take
 * numbers only: the number of a slot, or the key of a frame.
 */
#ifndef CUSCOPE_BPF_HOOKS_H
#define CUSCOPE_BPF_HOOKS_H

#include "bpf/call_shares.h"
#include "bpf/call_stacks.h"
#include "bpf/calls.h"
#include "bpf/fold_hooks.h"
#include "bpf/wire_hooks.h"

/* User space makes these as large as they have to be; nothing without hooks. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_hook_plan);
} hook_plans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct wire_hook_frame);
} hook_frames SEC(".maps");

/* As many as may be at work on one CPU: see NAME_SLOTS. */
#define HOOK_SLOTS 4

struct hook_slot {
	__u64 busy;
	struct wire_hook_frame frame;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HOOK_SLOTS);
	__type(key, __u32);
	__type(value, struct hook_slot);
} hook_slots SEC(".maps");

/* Slot 0: where the stubs of old kernels go on; slot 1 of the first: at a return. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} hook_exit SEC(".maps"), khook_exit SEC(".maps"), khook_return_exit SEC(".maps"),
	trace_exit SEC(".maps");

#define NO_SLOT HOOK_SLOTS

static __always_inline struct hook_slot *hook_slot_at(__u32 slot)
{
	return bpf_map_lookup_elem(&hook_slots, &slot);
}

/* The number of a slot that is free, and is the caller's now; NO_SLOT when none is. */
__attribute__((noinline)) int hook_slot_claim(void)
{
	for (__u32 i = 0; i < HOOK_SLOTS; i++) {
		struct hook_slot *s = hook_slot_at(i);

		if (s && buffer_claim(&s->busy))
			return i;
	}
	count_lost(LOST_RECORDS);
	return NO_SLOT;
}

static __always_inline const struct wire_hook_plan *
hook_plan_of(const struct wire_hook_frame *frame)
{
	__u32 number = hook_cookie_plan(frame->cookie);

	return bpf_map_lookup_elem(&hook_plans, &number);
}

/* ---- values -------------------------------------------------------------------------------- */

static __always_inline long read_memory(void *to, __u32 bytes, __u64 from, int kernel)
{
	return kernel ? bpf_probe_read_kernel(to, bytes, (void *)from)
	              : bpf_probe_read_user(to, bytes, (void *)from);
}

static __always_inline __u64 cut_to(__u64 value, __u8 bytes, int is_signed)
{
	__u32 shift = (64 - 8 * bytes) & 63;

	return is_signed ? (__u64)((__s64)(value << shift) >> shift) : value << shift >> shift;
}

/* What a value begins with: a register, a field. */
static __always_inline __u64 value_begin(const struct wire_hook_value *v, void *ctx)
{
	__u64 value = 0;

	if (v->flags & VALUE_CONSTANT)
		return (__u64)(__s64)v->offset[0];
	bpf_probe_read_kernel(&value, BOUNDED(v->first_bytes - 1, 7) + 1, ctx + v->at);
	return value;
}

static __always_inline __u64 value_follow(const struct wire_hook_value *v, __u64 value, __u8 *flags)
{
	__u32 n = v->n_loads;

	if (v->flags & VALUE_CONSTANT)
		return value;
	for (__u32 i = 0; i < WIRE_HOOK_LOADS; i++) {
		__u64 from, read = 0;
		__u32 bytes = 8;

		if (i >= n)
			break;
		from = value + (__s64)v->offset[i];
		if (i + 1 == n) {
			if (v->flags & VALUE_ADDRESS)
				return from;
			bytes = BOUNDED(v->bytes - 1, 7) + 1;
		}
		if (read_memory(&read, bytes, from, v->kernel >> i & KERNEL_LOAD)) {
			*flags |= WIRE_UNREADABLE;
			return 0;
		}
		value = read;
	}
	return cut_to(value, v->bytes, v->flags & VALUE_SIGNED);
}

/* Its page may not be there yet, and is when the function has read it: `again` says who is asked
 * last. */
static __always_inline void record_text(struct wire_hook *hook, const struct wire_hook_value *v,
                                        __u64 from, int again)
{
	__u64 room = WIRE_HOOK_TEXT;
	long n;

	if (!from)
		return;
	if (v->chars)
		room = v->chars + 1;
	room = BOUNDED(room - 1, WIRE_HOOK_TEXT - 1) + 1;
	n = v->kernel & KERNEL_TEXT ? bpf_probe_read_kernel_str(hook->text, room, (void *)from)
	                            : bpf_probe_read_user_str(hook->text, room, (void *)from);
	if (n <= 0) {
		hook->head.flags |= again ? 0 : WIRE_UNREADABLE;
		return;
	}
	hook->head.bytes = n;
	if (n == WIRE_HOOK_TEXT) {
		hook->head.flags |= WIRE_TRUNCATED;
		count_lost(LOST_TEXTS);
	}
}

/* Where in a tracepoint's record the text is, or what its field points at. */
static __always_inline __u64 text_of_field(const struct wire_hook_value *v, __u64 value, void *ctx,
                                           int relative)
{
	if (v->flags & VALUE_IN_RECORD)
		return (__u64)ctx + v->at;
	if (v->flags & VALUE_DATA_LOC)
		return (__u64)ctx + (value & 0xffff) + (relative ? v->at + 4 : 0);
	return value;
}

/* One value of what a slot holds: on entry, or of a moment, all but what is read on return. */
__attribute__((noinline)) int hook_value(__u32 slot, __u32 i, __u32 on_return)
{
	struct hook_slot *s = hook_slot_at(slot);
	const struct wire_hook_plan *plan = s ? hook_plan_of(&s->frame) : 0;
	const struct wire_hook_value *v;
	struct wire_hook *hook;
	__u64 value, from;
	int late;

	if (!plan || i >= WIRE_HOOK_VALUES)
		return 0;
	hook = &s->frame.hook;
	v = &plan->value[i];
	late = v->flags & VALUE_ON_RETURN;
	value = on_return ? hook->value[i] : 0;
	if (v->flags & VALUE_OF_RETURN ? on_return : !on_return)
		value = value_begin(v, (void *)s->frame.ctx);
	if (on_return ? late : !late)
		value = value_follow(v, value, &hook->head.flags);
	hook->value[i] = value;
	if (FOLDING) /* texts are in no sum */
		return 0;
	if (!(v->flags & VALUE_TEXT) || hook->head.bytes || (late && !on_return))
		return 0;
	from = text_of_field(v, value, (void *)s->frame.ctx, plan->flags & PLAN_REL_LOC);
	record_text(hook, v, from, !on_return && (plan->flags & PLAN_RETURNS));
	return 0;
}

/* All of them. */
__attribute__((noinline)) int hook_values(__u32 slot, __u32 n, __u32 on_return)
{
	for (__u32 i = 0; i < WIRE_HOOK_VALUES; i++) {
		if (i >= n)
			break;
		hook_value(slot, i, on_return);
	}
	return 0;
}

/* ---- filters ------------------------------------------------------------------------------- */

static __always_inline __u64 step_says(const struct wire_hook_step *step, __u64 value)
{
	__u64 with = step->with, bit;

	value = (value & step->mask) ^ step->flip;
	bit = value < with ? PASSES_LESS : value == with ? PASSES_EQUAL : PASSES_MORE;
	return (step->passes & bit) != 0;
}

/*
 * spec_filter_passes() once more. The truths so far are in memory: of a register the verifier would
 * follow each value that it could have, twice as many with each comparison.
 */
__attribute__((noinline)) int hook_filter_step(__u32 slot, __u32 i)
{
	struct hook_slot *s = hook_slot_at(slot);
	const struct wire_hook_plan *plan = s ? hook_plan_of(&s->frame) : 0;
	const struct wire_hook_step *step;
	const struct wire_hook *hook;
	__u64 so_far, last, before, value;

	if (!plan || i >= WIRE_HOOK_STEPS)
		return 0;
	step = &plan->step[i];
	hook = &s->frame.hook;
	so_far = s->frame.truths;
	last = so_far & 1;
	before = so_far >> 1 & 1;
	if (step->op == STEP_COMPARE) {
		value = step->value == WIRE_HOOK_DURATION
		                ? hook->head.time_ns - hook->begin_ns
		                : hook->value[BOUNDED(step->value, WIRE_HOOK_VALUES - 1)];
		s->frame.truths = so_far << 1 | step_says(step, value);
	} else if (step->op == STEP_NOT) {
		s->frame.truths = so_far ^ 1;
	} else {
		so_far = so_far >> 2 << 1;
		s->frame.truths = so_far | (step->op == STEP_AND ? last & before : last | before);
	}
	return 0;
}

__attribute__((noinline)) int hook_filter_passes(__u32 slot, __u32 n)
{
	struct hook_slot *s = hook_slot_at(slot);

	if (!s)
		return 0;
	s->frame.truths = 1;
	for (__u32 i = 0; i < WIRE_HOOK_STEPS; i++) {
		if (i >= n)
			break;
		hook_filter_step(slot, i);
	}
	return s->frame.truths & 1;
}

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

/* As same_trap(), of hooks among themselves. */
static __always_inline int hook_same_trap(struct wire_thread *thread, struct pt_regs *ctx,
                                          __u32 hook, __u64 now)
{
	if (thread->hook_ip == PT_REGS_IP(ctx) && thread->hook_sp == PT_REGS_SP(ctx) &&
	    thread->hook_last != hook && now - thread->hook_ns < SAME_TRAP_NS)
		return 1;
	thread->hook_ip = PT_REGS_IP(ctx);
	thread->hook_sp = PT_REGS_SP(ctx);
	thread->hook_ns = now;
	thread->hook_last = hook;
	return 0;
}

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
	if ((plan->flags & PLAN_FILTER_ON_ENTRY) && plan->n_steps &&
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

/* An entry, or a moment. Returns 1 when its return is of no interest. */
static __always_inline int hook_entered(void *ctx, struct pt_regs *regs, __u64 cookie, int kernel)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u32 number = hook_cookie_plan(cookie), slot;
	const struct wire_hook_plan *plan = bpf_map_lookup_elem(&hook_plans, &number);
	struct wire_thread *thread = !plan ? 0 : is_ending() ? thread_known(id) : thread_get(id);
	struct hook_slot *s;
	int waits;

	if (!plan || !thread ||
	    (!kernel && hook_same_trap(thread, regs, hook_cookie_id(cookie), now)))
		return 1;
	if (!kernel)
		hook_drop_stale(thread, regs, id, now);
	else if (regs)
		khook_drop_stale(thread, PT_REGS_SP(regs), cookie, id, now);
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
	/* reading memory takes long, and so does a walk: see same_trap() */
	if (!kernel && (plan->n_values || settings.call_stacks))
		thread->hook_ns = bpf_ktime_get_ns();
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

#endif
