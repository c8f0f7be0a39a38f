// SPDX-License-Identifier: MIT
#include "agent/lib/probe_calls.h"

#include <string.h>

#include "agent/lib/probe_capture.h"

#ifdef __x86_64__

static struct thunk_frame *frame_at(uint64_t sp)
{
	return (struct thunk_frame *)(sp - offsetof(struct thunk_frame, back));
}

/*
 * Whether a call's frame is as it was. Of a call that was left, other functions have used the place
 * on the stack as a rule, and written over one of the words that are compared.
 */
static bool is_whole(struct probe_thread *thread, const struct probe_call *call, uint64_t sp)
{
	const struct thunk_frame *at = frame_at(call->sp);
	struct {
		uint64_t slot;
		const void *original;
		uint64_t words;
		const void *state;
		uint64_t mark, session, frame_pointer, back;
	} is;

	_Static_assert(sizeof(is) == sizeof(*at) - FRAME_SLOT, "the end of a thunk's frame");
	return peek_read(&thread->peek, sp, &is, (uint64_t)&at->slot, sizeof(is)) &&
	       is.mark == call->mark && is.state == thread && is.session == thread->session &&
	       is.slot == call->slot && is.back == call->back;
}

/* ---- stacks -------------------------------------------------------------------------------- */

/* The call lies below `sp`. The hole above its stack stays above it, whatever is mapped there. */
static bool is_of_lower_stack(struct probe_call *call, uint64_t sp)
{
	if (!call->hole)
		call->hole = peek_hole(call->sp, sp);
	return call->hole && sp >= call->hole;
}

/* The call lies above `sp`; *hole is the one above `sp`, looked for once. Most are near, on pages
 * that were seen. */
static bool is_of_higher_stack(struct probe_thread *thread, const struct probe_call *call,
                               uint64_t sp, uint64_t *hole)
{
	const struct thunk_frame *at = frame_at(call->sp);

	if (peek_is_stack(&thread->peek, sp, (uint64_t)&at->slot, sizeof(*at) - FRAME_SLOT))
		return false;
	if (!*hole)
		*hole = peek_hole(sp, call->sp);
	return *hole && call->sp >= *hole;
}

static bool is_of_other_stack(struct probe_thread *thread, struct probe_call *call, uint64_t sp,
                              uint64_t *hole)
{
	return call->sp < sp ? is_of_lower_stack(call, sp)
	                     : call->sp > sp && is_of_higher_stack(thread, call, sp, hole);
}

/* ---- calls --------------------------------------------------------------------------------- */

void probe_calls_over(struct probe_thread *thread, struct probe_call *call)
{
	size_t after = (size_t)(&thread->call[--thread->depth] - call);

	memmove(call, call + 1, after * sizeof(*call));
}

static void abandon(struct probe_session *session, struct probe_thread *thread,
                    struct probe_call *call)
{
	call->record.head.flags |= WIRE_UNFINISHED;
	call->record.end = probe_thread_now(thread, session->clock);
	if (!call->untold)
		capture_tell(&session->ring, thread, call);
	probe_calls_over(thread, call);
}

struct probe_call *probe_calls_around(struct probe_session *session, struct probe_thread *thread,
                                      uint64_t sp)
{
	uint64_t hole = 0;

	for (uint32_t i = thread->depth; i-- > 0;) {
		struct probe_call *call = &thread->call[i];

		if (is_of_other_stack(thread, call, sp, &hole))
			continue;
		if (call->sp > sp && is_whole(thread, call, sp))
			return call;
		abandon(session, thread, call);
	}
	return NULL;
}

/* Rather one that will not return, since its stack was used by others; else the oldest. */
struct probe_call *probe_calls_room(struct probe_session *session, struct probe_thread *thread,
                                    uint64_t sp, struct probe_call **around)
{
	struct probe_call *goes = NULL;
	uint64_t hole = 0;

	for (uint32_t i = 0; thread->depth == AGENT_PROBE_DEPTH_MAX && i < thread->depth; i++) {
		struct probe_call *call = &thread->call[i];

		if (!is_of_other_stack(thread, call, sp, &hole))
			continue;
		if (!goes)
			goes = call;
		if (!is_whole(thread, call, sp)) {
			goes = call;
			break;
		}
	}
	if (goes) {
		if (*around > goes)
			--*around;
		abandon(session, thread, goes);
	}
	return thread->depth < AGENT_PROBE_DEPTH_MAX ? &thread->call[thread->depth] : NULL;
}

struct probe_call *probe_calls_return(struct probe_session *session, struct probe_thread *thread,
                                      const struct thunk_frame *frame)
{
	uint64_t sp = (uint64_t)&frame->back;

	for (uint32_t i = thread->depth; i-- > 0;) {
		struct probe_call *call = &thread->call[i];

		if (call->sp == sp && call->mark == frame->mark)
			return call;
		if (call->sp <= sp && !is_of_lower_stack(call, sp))
			abandon(session, thread, call);
	}
	return NULL;
}

void probe_calls_tell_open(struct probe_session *session, struct probe_thread *thread)
{
	capture_close_room(&session->ring, thread);
	while (thread->depth)
		abandon(session, thread, &thread->call[thread->depth - 1]);
}

#endif
