/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* A whole walk, native frames and Python's: from a slot of this CPU to the record that is sent. */
#pragma once

#include "bpf/python.h"
#include "bpf/stacks.h"

static __always_inline int walk_is_sent(struct walk *walk, __u64 sent_as)
{
	__u64 *sent = bpf_map_lookup_elem(&stacks_sent, &walk->hash);

	return sent && *sent == sent_as;
}

static __always_inline void walk_send(struct walk *walk, __u64 id, __u64 now)
{
	__u64 bytes, sent_as = (__u64)state.stacks_turn << 32 | walk->out.generation;
	__u32 n = walk->out.n;

	if (walk_is_sent(walk, sent_as))
		return;
	head_fill(&walk->out.head, WIRE_STACK_ENTRIES, id, now);
	walk->out.head.flags = walk->blocked ? STACK_OF_BLOCKED : 0;
	walk->out.id = walk->hash;
	if (n > STACK_ENTRIES_MAX)
		n = STACK_ENTRIES_MAX;
	bytes = WIRE_STACK_ENTRIES_BYTES((__u64)n);
	if (bytes > sizeof(walk->out))
		bytes = sizeof(walk->out);
	if (!emit_or_count(&walk->out, bytes, WAKE_IF_FULL, LOST_RECORDS))
		bpf_map_update_elem(&stacks_sent, &walk->hash, &sent_as, BPF_ANY);
}

/*
 * A slot of this CPU that nobody is in. 0xffffffff where there is none.
 */
static __always_inline __u32 walk_claim(void)
{
	for (__u32 slot = 0; slot < WALK_SLOTS; slot++) {
		struct walk *walk = walk_of(slot);

		if (walk && buffer_claim(&walk->busy))
			return slot;
	}
	return ~0u;
}

/*
 * Walks from the registers that the slot has, and sends it. The number of the stack; 0 only where
 * there is no such slot. A global function as its steps are: what comes after a walk is gone
 * through once and not once for each way in which it can end: a sixth less for memleak.
 */
__attribute__((noinline)) __u64 walk_all(__u32 slot, __u64 id, __u64 now)
{
	__u32 tgid = id >> 32;
	const struct wire_code *code = bpf_map_lookup_elem(&unwind_code, &tgid);
	struct walk *walk = walk_of(slot);

	if (!walk)
		return 0;
	walk->out.generation = code ? code->generation : 0;
	walk->out.sp = walk->sp;
	for (__u32 i = 0; i < STACK_ENTRIES_MAX + 64; i++) {
		if (walk_step(slot))
			break;
	}
	if (python_begin(slot) == WALK_ON) {
		for (__u32 i = 0; i < STACK_ENTRIES_MAX; i++) {
			if (python_step(slot))
				break;
		}
	}
	walk->hash |= 1;
	walk_send(walk, id, now);
	return walk->hash;
}
