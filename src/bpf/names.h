/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Names of kernels and other strings: read while the process that holds them is still there. */
#pragma once

#include "bpf/threads.h"

/* Without the text: user space reads it, if it is still there. */
static __always_inline int name_send_address(const struct wire_call *call, __u64 key, __u32 source,
                                             __u64 from)
{
	struct {
		struct wire_head head;
		__u64 key, from;
		__u32 source, reserved;
	} name = { .head = call->head, .key = key, .from = from, .source = source };

	if (source == NAME_OF_HANDLE)
		return 0; /* the next launch tries again */
	name.head.type = WIRE_NAME;
	name.head.flags = 0;
	name.head.bytes = 0;
	emit(&name, WIRE_NAME_BYTES(0), WAKE_NOW);
	return 1;
}

/* A buffer of this CPU that is free, and is the caller's now; NULL when none is. */
static __always_inline struct scratch *name_slot_claim(void)
{
	for (__u32 i = 0; i < NAME_SLOTS; i++) {
		__u32 slot = i;
		struct scratch *s = bpf_map_lookup_elem(&scratch, &slot);

		if (s && buffer_claim(&s->name_busy))
			return s;
	}
	return 0;
}

/*
 * Sends the string at `from` with the time of the call that it belongs to, before the call itself:
 * so it is there when the call is read. Returns whether it could be read.
 */
static __always_inline int name_send(const struct wire_call *call, __u64 key, __u32 source,
                                     __u64 from)
{
	struct scratch *s;
	long read;
	__u64 n;

	if (!from)
		return 0;
	s = name_slot_claim();
	if (!s)
		return name_send_address(call, key, source, from);
	read = bpf_probe_read_user_str(s->name.text, WIRE_STRING_MAX, (void *)from);
	n = BOUNDED(read > 0 ? read : 0, 2 * WIRE_STRING_MAX - 1);
	if ((read <= 0 && source == NAME_OF_HANDLE) || n > WIRE_STRING_MAX) {
		buffer_release(&s->name_busy);
		return 0;
	}
	s->name.head = call->head;
	s->name.head.type = WIRE_NAME;
	s->name.head.flags = 0;
	s->name.head.bytes = n;
	if (n == WIRE_STRING_MAX) {
		s->name.head.flags = WIRE_TRUNCATED;
		count_lost(LOST_TEXTS);
	}
	s->name.key = key;
	s->name.from = from;
	s->name.source = source;
	s->name.reserved = 0;
	emit(&s->name, WIRE_NAME_BYTES(n), n ? WAKE_IF_FULL : WAKE_NOW);
	buffer_release(&s->name_busy);
	return 1;
}

/*
 * The first launch of a handle sends the name that the handle leads to; user space verifies it.
 * Returns whether this handle needs no further try: a page that is not resident cannot be read
 * here, but what is no pointer at all will not become one (a host stub's address leads to its
 * code).
 */
static __always_inline int kernel_name(const struct wire_call *call, __u64 handle)
{
	struct kernel_key key = { .handle = handle, .tgid = call->head.tgid };
	__u64 generation = *kernels_generation(call->head.tgid), at = 0;
	__u64 *seen = bpf_map_lookup_elem(&named_kernels, &key);

	if ((seen && *seen == generation) || state.name_offset == WIRE_NO_OFFSET)
		return 1;
	if (bpf_probe_read_user(&at, sizeof(at), (void *)(handle + state.name_offset)))
		return 0;
	if (!name_send(call, handle, NAME_OF_HANDLE, at))
		return at < 4096 || at >> 48;
	bpf_map_update_elem(&named_kernels, &key, &generation, BPF_ANY);
	return 1;
}

/*
 * Handles are 16-byte aligned heap memory and often 64 or more apart: mix before choosing a slot.
 */
static __always_inline void kernel_seen(struct wire_thread *thread, const struct wire_call *call,
                                        __u64 handle)
{
	__u64 *slot = &thread->recent[BOUNDED((handle >> 4) ^ (handle >> 8) ^ (handle >> 12),
	                                      WIRE_RECENT - 1)];

	__u64 generation = *kernels_generation(call->head.tgid);

	if (*slot == handle && thread->recent_generation == generation)
		return;
	if (thread->recent_generation != generation) {
		for (int i = 0; i < WIRE_RECENT; i++)
			thread->recent[i] = 0;
		thread->recent_generation = generation;
	}
	if (kernel_name(call, handle))
		*slot = handle;
}
