/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Records of blocked time, and what is added up of a thread until it is told. */
#pragma once

#include "bpf/maps.h"
#include "bpf/wire_stacks.h"

/* Processes that are no targets: see process_is_waker(). */
MAP(HASH, WAKERS_MAX, __u32 /* tgid */, __u8 /* nothing */) wakers SEC(".maps");

static __always_inline void blocked_send(struct wire_blocked *record, __u64 id, __u64 now)
{
	head_fill(&record->head, WIRE_BLOCKED, id, now);
	emit_or_count(record, sizeof(*record), WAKE_IF_FULL, LOST_RING_FULL);
}

static __always_inline void sum_send(struct wire_sum *sum, enum wire_blocked_how how, __u16 flags,
                                     __u64 id, __u64 now)
{
	struct wire_blocked record = {
		.weight_ns = sum->ns, .count = sum->count, .how = how, .wait = { .flags = flags }
	};

	if (!sum->count)
		return;
	blocked_send(&record, id, now);
	sum->ns = sum->count = 0;
}

static __attribute__((noinline)) int blocked_tell_sums(struct wire_blocking *blocking, __u64 id,
                                                       __u64 now)
{
	if (!blocking)
		return 0;
	sum_send(&blocking->brief, WIRE_BLOCKED_BRIEF, 0, id, now);
	sum_send(&blocking->skipped, WIRE_BLOCKED_SKIPPED, 0, id, now);
	sum_send(&blocking->cpu, WIRE_BLOCKED_BRIEF, WIRE_WAIT_CPU, id, now);
	blocking->told_ns = now;
	return 0;
}
