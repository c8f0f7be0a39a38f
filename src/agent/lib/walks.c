// SPDX-License-Identifier: MIT
#include "agent/lib/walks.h"

#include "agent/lib/ticks.h"
#include "bpf/wire.h"
#include "bpf/wire_due.h"

__attribute__((visibility("default"), noinline, noclone)) void
cuscope_agent_walk(uint64_t what, uint64_t kind, uint64_t pc, uint64_t sp, uint64_t fp)
{
	__asm__ volatile("" : : "r"(what), "r"(kind), "r"(pc), "r"(sp), "r"(fp) : "memory");
}

#ifdef __x86_64__

struct wire_due walks_due(const struct agent_shared *shared)
{
	return (struct wire_due){ .call_ns = shared->walk_ns, .one_in = shared->walk_one_in };
}

/* Which of many calls are walked is not to follow a pattern of theirs; nothing depends on it else.
 */
static uint32_t walks_chance(struct probe_thread *thread)
{
	uint64_t state = thread->chance ? thread->chance : ticks_now() | 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	thread->chance = state;
	return (uint32_t)(state >> 32);
}

#define WALKS_TICK_NS 10000000 /* of the slowest kernel's clock (CONFIG_HZ=100) */

/*
 * The later it is, the rather a walk is due. So what is not due a tick after the coarse clock's
 * time is not due now, and most calls of a busy thread need no better one. The programs judge once
 * more, by the time itself: what is asked for has to be due by that.
 */
static bool walks_is_due(const struct wire_due *due, __u64 *paid, uint32_t kind, uint32_t chance)
{
	__u64 then = *paid;

	return due_call(due, &then, kind, clock_coarse() + WALKS_TICK_NS, chance) &&
	       due_call(due, paid, kind, clock_now(), chance);
}

void walks_ask(const struct probe_session *session, struct probe_thread *thread,
               struct probe_call *call, uint64_t entry, const struct thunk_frame *frame)
{
	uint32_t kind = cookie_stack_kind(call->cookie);
	__u64 *paid = &thread->walks_paid[kind % WIRE_STACK_KINDS];

	if (!walks_is_due(&session->due, paid, kind, walks_chance(thread))) {
		if (kind == STACK_OF_ALLOCATION)
			capture_lost(AGENT_PROBE_TOO_FAST);
		return;
	}
	if (!++thread->walks)
		thread->walks++;
	cuscope_agent_walk(wire_walk(thread->walks, call->record.place), kind, entry,
	                   (uint64_t)&frame->back, frame->frame_pointer);
	/* not before: a signal's handler may leave it by a longjmp, and then it is told as it is */
	call->record.depth = thread->walks;
	call->record.head.flags |= WIRE_WALKED;
}

#endif
