/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Sums of what hooks of one's own saw, by process and hook: in place of a record of each hit. */
#pragma once

#include "bpf/threads.h"

#include "bpf/fold.h"

/* A value of a hit; 0: what is read at the return, of a call that did not return. Until then it is
 * where that lies. */
static __always_inline __u64 hook_number(const struct wire_hook_plan *plan,
                                         const struct wire_hook *hook, __u32 i)
{
	__u32 at = BOUNDED(i, WIRE_HOOK_VALUES - 1);

	if (hook->head.flags & (WIRE_UNFINISHED | WIRE_NO_RETURN) &&
	    plan->value[at].flags & VALUE_ON_RETURN)
		return 0;
	return hook->value[at];
}

/* The size that a hit shows: a value, or its product with a number of a table. */
static __always_inline __u64 hook_bytes(const struct wire_hook_plan *plan, __u32 number,
                                        const struct wire_hook *hook)
{
	__u64 bytes, key;
	const struct wire_hook_table *table;

	if (!plan->sum)
		return 0;
	bytes = hook_number(plan, hook, plan->sum - 1);
	if (!plan->factor)
		return bytes;
	key = hook_number(plan, hook, plan->factor - 1);
	table = bpf_map_lookup_elem(&fold_hook_tables, &number);
	if (!table || key >= WIRE_HOOK_TABLE)
		return 0;
	return bytes * table->number[BOUNDED(key, WIRE_HOOK_TABLE - 1)];
}

static __always_inline void fold_hook(const struct wire_hook_plan *plan, __u32 number,
                                      const struct wire_hook *hook)
{
	__u64 id = (__u64)hook->head.tgid << 32 | hook->head.tid;
	const struct wire_thread *thread = thread_known(id);
	struct folded f = { .tgid = hook->head.tgid };
	struct fold_hook_key key = { .tgid = hook->head.tgid, .hook = hook->head.hook };
	__u8 flags = hook->head.flags;
	struct fold_hook *row;
	__u64 ns;
	int made;

	f.born_ns = key.born_ns = thread ? thread->born_ns : 0;
	row = FOLD_SHARED_ROW(&f, &fold_hooks, &key, FOLD_SHARE_HOOKS, FOLD_SHARE_HOOKS, &made);
	if (!row) {
		fold_lost_row();
		return;
	}
	FOLD_ADD(row->calls, 1);
	FOLD_ADD(row->bytes, hook_bytes(plan, number, hook));
	if (flags & WIRE_UNFINISHED)
		FOLD_ADD(row->unfinished, 1);
	if (flags & (WIRE_UNFINISHED | WIRE_NO_RETURN) || plan->flags & PLAN_MOMENT)
		return;
	ns = hook->head.time_ns - hook->begin_ns;
	FOLD_ADD(row->timed, 1);
	FOLD_ADD(row->ns, ns);
	fold_max(&row->max_ns, ns);
}
