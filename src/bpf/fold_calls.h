/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Where a call goes that is over: to user space or, where calls are folded, into the sums. Calls
 * inside others are in no sum: cudaMalloc is one allocation, not it and the cuMemAlloc in it.
 */
#ifndef CUSCOPE_BPF_FOLD_CALLS_H
#define CUSCOPE_BPF_FOLD_CALLS_H

#include "bpf/fold_memory.h"
#include "bpf/fold_transfers.h"

#define TOOL(name) (FOLDING & FOLD_TOOL_##name)

/*
 * Whether a hit is of no interest, so that its return need not be seen. Only where a session can
 * decline it: else the return comes all the same, and must find its entry.
 */
static __always_inline int fold_declines(const struct fold_plan *plan, __u32 depth)
{
	if (!plan || settings.nested_returns)
		return 0;
	if (depth)
		return 1;
	return (plan->op == FOLD_EVENT_RECORD || plan->op == FOLD_EVENT_WAIT) &&
	       !state.open_captures;
}

static __always_inline void fold_alloc(const struct folded *f, __u64 stack)
{
	if (fold_failed(f)) {
		if (TOOL(MEMORY))
			memory_failed(f);
		return;
	}
	if (TOOL(MEMORY))
		memory_allocated(f, stack);
	if (TOOL(COPIES) && f->plan->pinned)
		host_pinned(f);
}

static __always_inline void fold_free(struct wire_thread *thread, const struct folded *f)
{
	if (fold_failed(f)) {
		freed_put_back(thread);
		return;
	}
	if (TOOL(MEMORY) && !fold_has_return(f))
		memory_taken(thread, f);
	if (TOOL(MEMORY))
		memory_freed(thread, f);
	if (TOOL(COPIES))
		host_unpinned(f);
}

static __always_inline void fold_context(const struct folded *f)
{
	if (fold_failed(f))
		return;
	if (TOOL(MEMORY))
		memory_context_ended(f);
	if (TOOL(COPIES))
		pinned_context_ended(f);
}

static __always_inline void fold_capture(const struct folded *f)
{
	switch (f->plan->op) {
	case FOLD_CAPTURE_BEGIN:
		if (!fold_failed(f))
			capture_begun(f);
		break;
	case FOLD_CAPTURE_END:
		capture_ended(f);
		break;
	case FOLD_EVENT_RECORD:
		capture_event(f, 0);
		break;
	case FOLD_EVENT_WAIT:
		capture_event(f, 1);
		break;
	}
}

static __always_inline void fold(struct wire_thread *thread, const struct fold_plan *plan)
{
	const struct folded f = { .call = &thread->frame[0].call,
		                  .plan = plan,
		                  .born_ns = thread->born_ns,
		                  .tgid = thread->tgid };

	switch (plan->op) {
	case FOLD_ALLOC:
		if (TOOL(MEMORY) || TOOL(COPIES))
			fold_alloc(&f, thread->allocation_stack);
		break;
	case FOLD_FREE:
		if (TOOL(MEMORY) || TOOL(COPIES))
			fold_free(thread, &f);
		break;
	case FOLD_CONTEXT_DESTROY:
		fold_context(&f);
		break;
	case FOLD_LAUNCH:
	case FOLD_GRAPH_LAUNCH:
		if (TOOL(LAUNCHES))
			launched(&f);
		break;
	case FOLD_COPY:
	case FOLD_SET:
		if (TOOL(COPIES))
			copied(&f);
		break;
	default:
		if (TOOL(LAUNCHES) || TOOL(COPIES))
			fold_capture(&f);
	}
}

/* The begin of a call that no other made, and whose return will be seen. */
static __always_inline void fold_begin(struct wire_thread *thread, const struct fold_plan *plan)
{
	const struct folded f = { .call = &thread->frame[0].call,
		                  .plan = plan,
		                  .born_ns = thread->born_ns,
		                  .tgid = thread->tgid };

	freed_put_back(thread); /* of a free that was left by a longjmp */
	if (TOOL(MEMORY) && plan->op == FOLD_FREE)
		memory_taken(thread, &f);
}

/* A call that is over, or whose return will not be seen. */
static __always_inline void call_done(struct wire_thread *thread, struct wire_frame *frame)
{
	const struct fold_plan *plan = fold_plan_of(frame->call.head.hook);

	if (!plan)
		frame_send(frame);
	else if (!frame->call.head.depth)
		fold(thread, plan);
}

#endif
