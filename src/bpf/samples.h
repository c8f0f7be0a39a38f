/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Samples of what threads of targets, and of processes that these wait for, do with the CPU. */
#pragma once

#include <linux/bpf_perf_event.h>

#include "bpf/walk.h"

static __always_inline void sample_send(__u64 id, __u64 now, __u64 stack)
{
	struct wire_sample sample = { .stack = stack, .weight_ns = settings.sample_ns };

	head_fill(&sample.head, WIRE_SAMPLE, id, now);
	emit_or_count(&sample, sizeof(sample), WAKE_IF_FULL, LOST_RING_FULL);
}

/* From the registers of the user side; not 0 where there is none. */
static __always_inline int sample_begin(struct walk *walk, struct bpf_perf_event_data *ctx)
{
	if (IS_KERNEL_PC(REGS_PC(&ctx->regs))) {
		walk_kernel_frames(walk, ctx);
		return walk_from_kernel(walk);
	}
	walk->pc = REGS_PC(&ctx->regs);
	walk->sp = REGS_SP(&ctx->regs);
	walk->fp = REGS_FP(&ctx->regs);
	walk->extra = REGS_EXTRA(&ctx->regs);
	return 0;
}

static __always_inline void sample_taken(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid(), now, stack = 0;
	struct walk *walk;
	__u32 slot;

	if (!id || !BPF_CORE_READ(task, mm) ||
	    !thread_sampled(id)) /* threads of the kernel have no mm */
		return;
	now = bpf_ktime_get_ns();
	slot = walk_claim();
	walk = slot < WALK_SLOTS ? walk_of(slot) : 0;
	if (walk) {
		walk_begin(walk, id);
		if (!sample_begin(walk, ctx))
			stack = walk_all(slot, id, now);
		buffer_release(&walk->busy);
	}
	sample_send(id, now, stack);
}
