/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Which calls are walked as they begin. A walk costs ten times what tracing the call does, so not
 * each may be. It is asked by who records the call: by the programs where a probe does, by the
 * agent where that does, which then asks the programs for a walk.
 */
#pragma once

#include "bpf/wire.h"

#define DUE_AHEAD               64            /* walks */
#define DUE_WAIT_NS             1000000ull    /* between two waits of a thread, on average */
#define DUE_ALLOCATION_NS       100000ull     /* so many allocations of a thread in the long run, */
#define DUE_ALLOCATION_AHEAD_NS 1000000000ull /* and what that makes in a second at once */

#define DUE static inline __attribute__((always_inline, unused))

/* Launches and copies. */
struct wire_due {
	__u64 call_ns; /* between two of a thread, on average; 0: as they come */
	__u32 one_in;  /* above 1: one in so many instead, by chance */
};

/*
 * Launches come in bursts, a training step's within a millisecond. So a thread saves up to
 * DUE_AHEAD walks while it makes none. The fewer are left, the more it is chance which are walked:
 * where there are always too many, all are walked in the end, and not only those that a step begins
 * with. `paid` is until when the thread's walks are paid for, of which `early` need not be over.
 */
DUE int due_stack(__u64 *paid, __u64 now, __u64 between, __u32 chance, __u64 early)
{
	__u64 ahead = DUE_AHEAD * between, from = now > ahead ? now - ahead : 0;

	if (*paid < from)
		*paid = from;
	if (now + early < *paid || (chance % (DUE_AHEAD / 2)) * between > now - *paid)
		return 0;
	*paid += between;
	return 1;
}

/*
 * Where memory leaks is found only if the one allocation that leaks is walked. So all are, up to a
 * rate: `paid` is until when the thread's walks are paid for, and may lie ahead.
 */
DUE int due_allocation(__u64 *paid, __u64 now, __u64 early)
{
	__u64 from = *paid > now ? *paid : now;

	if (from - now >= DUE_ALLOCATION_AHEAD_NS + early)
		return 0;
	*paid = from + DUE_ALLOCATION_NS;
	return 1;
}

DUE int due_is_allocation(__u32 kind)
{
	return kind == STACK_OF_ALLOCATION || kind == STACK_OF_FREE;
}

/* `paid`: the thread's, of calls of this kind. */
DUE int due_call(const struct wire_due *due, __u64 *paid, __u32 kind, __u64 now, __u32 chance)
{
	if (due_is_allocation(kind))
		return due_allocation(paid, now, 0);
	if (kind == STACK_OF_WAIT)
		return due_stack(paid, now, DUE_WAIT_NS, chance, 0);
	if (due->one_in > 1)
		return chance % due->one_in == 0;
	return !due->call_ns || due_stack(paid, now, due->call_ns, chance, 0);
}

/*
 * What an agent asks for it has judged so, by the same rules and a `paid` of its own, a moment
 * before. But who asks may be anybody: more than the rules allow, and one, nobody gets.
 */
DUE int due_asked(const struct wire_due *due, __u64 *paid, __u32 kind, __u64 now)
{
	if (due_is_allocation(kind))
		return due_allocation(paid, now, DUE_ALLOCATION_NS);
	if (kind == STACK_OF_WAIT)
		return due_stack(paid, now, DUE_WAIT_NS, 0, DUE_WAIT_NS);
	return due->one_in > 1 || !due->call_ns ||
	       due_stack(paid, now, due->call_ns, 0, due->call_ns);
}
