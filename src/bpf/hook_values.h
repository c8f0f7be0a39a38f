/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * What a hit of a hook that users ask for reads, by its plan, and whether its filter lets it pass.
 *
 * What has loops is a global function, which the verifier goes through once. Such functions take
 * numbers only: the number of a slot, or the key of a frame.
 */
#pragma once

#include "bpf/fold_maps.h"
#include "bpf/wire_hooks.h"

/* User space makes these as large as they have to be; nothing without hooks. */
MAP(ARRAY, 1, __u32, struct wire_hook_plan) hook_plans SEC(".maps");

MAP(HASH, 1, __u64, struct wire_hook_frame) hook_frames SEC(".maps");

/* As many as may be at work on one CPU: see NAME_SLOTS. */
#define HOOK_SLOTS 4

struct hook_slot {
	__u64 busy;
	struct wire_hook_frame frame;
};

MAP(PERCPU_ARRAY, HOOK_SLOTS, __u32, struct hook_slot) hook_slots SEC(".maps");

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

/*
 * Whether one comparison, which the plan names, is enough to decline. It is asked before all else:
 * most hits of a hook with a filter end there, and need no time, no state of a thread and no slot.
 */
static __always_inline int hook_gate_declines(const struct wire_hook_plan *plan, void *ctx)
{
	const struct wire_hook_step *step;
	const struct wire_hook_value *v;
	__u8 flags = 0;

	if (!plan->gate)
		return 0;
	step = &plan->step[BOUNDED(plan->gate - 1, WIRE_HOOK_STEPS - 1)];
	v = &plan->value[BOUNDED(step->value, WIRE_HOOK_VALUES - 1)];
	return !step_says(step, value_follow(v, value_begin(v, ctx), &flags));
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
