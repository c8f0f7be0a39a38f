/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Where a call goes that is over: to user space or, where calls are folded, into the sums. Calls
 * inside others are in no sum: cudaMalloc is one allocation, not it and the cuMemAlloc in it.
 */
#pragma once

#include "bpf/threads.h"

#include "bpf/fold_memory.h"
#include "bpf/fold_transfers.h"

#define TOOL(name) (FOLDING & FOLD_TOOL_##name)

/* It is sent as well. */
static __always_inline void fold_first(const struct folded *f)
{
	struct wire_call *call = f->call;
	/* as a mask: 5.10 forgets what it was compared with once it lies on the stack */
	__u64 bytes = BOUNDED(WIRE_CALL_BYTES((__u64)call->head.words), 511);

	call->head.flags |= WIRE_FOLDED;
	call->generation = (__u16)*kernels_generation(f->tgid);
	emit(call, bytes, WAKE_IF_FULL);
}

/*
 * Whether a hit is of no interest, so that its return need not be seen. Only where a session can
 * decline it: else the return comes all the same, and must find its entry. Captures of a process
 * with an agent are followed in user space, which knows later that one is open.
 */
static __always_inline int fold_declines(const struct fold_plan *plan, __u32 depth, __u64 modules)
{
	if (!plan || settings.nested_returns)
		return 0;
	if (depth)
		return 1;
	return (plan->op == FOLD_EVENT_RECORD || plan->op == FOLD_EVENT_WAIT) &&
	       !state.open_captures && !modules;
}

/* `sent`, here and below: all but live memory is summed up in user space. */
static __always_inline void fold_alloc(const struct folded *f, __u64 stack, int sent)
{
	if (fold_failed(f)) {
		if (TOOL(MEMORY))
			memory_failed(f);
		return;
	}
	if (TOOL(MEMORY) && is_captured(f))
		memory_recorded(f);
	else if (TOOL(MEMORY))
		memory_allocated(f, stack);
	if (TOOL(COPIES) && f->plan->pinned && !sent)
		host_pinned(f);
}

static __always_inline void fold_free(struct wire_thread *thread, const struct folded *f, int sent)
{
	if (fold_failed(f)) {
		freed_put_back(thread);
		return;
	}
	if (TOOL(MEMORY) && !fold_has_return(f) && !is_captured(f))
		memory_taken(thread, f);
	if (TOOL(MEMORY) && (thread->freed.time_ns || !is_captured(f)))
		memory_freed(thread, f);
	if (TOOL(COPIES) && !sent)
		host_unpinned(f);
}

static __always_inline void fold_context(const struct folded *f, int sent)
{
	if (fold_failed(f))
		return;
	if (TOOL(MEMORY))
		memory_context_ended(f);
	if (TOOL(COPIES) && !sent)
		pinned_context_ended(f);
}

/* How it ended, and how long a wait took. Calls that succeed are many, and in other sums. */
static __always_inline void fold_result(const struct folded *f)
{
	const struct wire_call *call = f->call;
	__u32 result = call->result;
	struct fold_failure_key key = { .born_ns = f->born_ns,
		                        .tgid = f->tgid,
		                        .hook = call->head.hook };
	struct fold_result *row;
	int made;

	if (!fold_has_return(f) || (!result && f->plan->op != FOLD_SYNC))
		return;
	key.result = result > FOLD_RESULT_MOST ? FOLD_RESULT_MOST + 1 : result;
	row = FOLD_SHARED_ROW(f, &fold_results, &key, FOLD_SHARE_RESULTS, FOLD_SHARE_RESULTS,
	                      &made);
	if (!row) {
		fold_lost_row();
		return;
	}
	FOLD_ADD(row->count, 1);
	FOLD_ADD(row->ns, call->head.time_ns - call->begin_ns);
}

static __always_inline void fold(struct wire_thread *thread, const struct fold_plan *plan, int sent)
{
	const struct folded f = { .call = &thread->frame[0].call,
		                  .plan = plan,
		                  .born_ns = thread->born_ns,
		                  .tgid = thread->tgid,
		                  .user = thread->user };

	if (TOOL(RESULTS))
		fold_result(&f);
	switch (plan->op) {
	case FOLD_SYNC:
		break;
	case FOLD_ALLOC:
		if (TOOL(MEMORY) || TOOL(COPIES))
			fold_alloc(&f, thread->allocation_stack, sent);
		break;
	case FOLD_FREE:
		if (TOOL(MEMORY) || TOOL(COPIES))
			fold_free(thread, &f, sent);
		break;
	case FOLD_CONTEXT_DESTROY:
		fold_context(&f, sent);
		break;
	case FOLD_MAPS:
		if (TOOL(MEMORY) && !fold_failed(&f))
			memory_mapped(&f);
		break;
	case FOLD_UNMAPS:
		if (TOOL(MEMORY) && !fold_failed(&f))
			memory_unmapped(&f);
		break;
	case FOLD_RETAINS:
		if (TOOL(MEMORY) && !fold_failed(&f))
			memory_retained(&f);
		break;
	case FOLD_LAUNCH:
	case FOLD_GRAPH_LAUNCH:
		if (TOOL(LAUNCHES) && !sent)
			launched(&f);
		break;
	case FOLD_COPY:
	case FOLD_SET:
		if (TOOL(COPIES) && !sent)
			copied(&f);
		break;
	default:
		if (TOOL(MEMORY) || ((TOOL(LAUNCHES) || TOOL(COPIES)) && !sent))
			fold_capture(&f);
	}
}

/* The begin of a call that no other made, and whose return will be seen. */
static __always_inline void fold_begin(struct wire_thread *thread, const struct fold_plan *plan)
{
	const struct folded f = { .call = &thread->frame[0].call,
		                  .plan = plan,
		                  .born_ns = thread->born_ns,
		                  .tgid = thread->tgid,
		                  .user = thread->user };

	freed_put_back(thread); /* of a free that was left by a longjmp */
	if (TOOL(MEMORY) && plan->op == FOLD_FREE && !is_captured(&f))
		memory_taken(thread, &f);
}

/*
 * A call that is over, or whose return will not be seen. In a process with an agent it depends on
 * when a call began who tells of it, which user space knows by the time: so it is sent. (All that
 * end before the process is marked began before its agent told of any.) Where nobody has an agent
 * the settings say so: the sums are then here once for the verifier, whose work that halves.
 */
static __always_inline void call_done(struct wire_thread *thread, struct wire_frame *frame)
{
	const struct fold_plan *plan = fold_plan_of(frame->call.head.hook);

	if (!plan) {
		frame_send(frame);
		return;
	}
	if (frame->call.head.depth)
		return;
	if ((settings.inside || settings.begin_records) &&
	    (frame->call.head.flags & WIRE_BEGUN || inside_modules(thread->tgid))) {
		if (TOOL(MEMORY))
			fold(thread, plan, 1);
		frame_send(frame);
		return;
	}
	fold(thread, plan, 0);
}
