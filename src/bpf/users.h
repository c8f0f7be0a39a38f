/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Whose a process is, where users share rows of a map: as probe/person.h has it. */
#pragma once

#include "bpf/maps.h"

#define USER_NAMESPACES 33 /* in each other, as the kernel has it */

/* Whose uids of /etc/subuid are: they can get into our own user namespace, by files. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, WIRE_UID_RANGES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct wire_uids);
	__type(value, __u32);
} uid_ranges SEC(".maps");

/* The place of a thread's user in wire_rows and the like; 0: root, who has no share. */
#ifndef user_current
static __attribute__((noinline)) __u32 user_of(struct task_struct *task)
{
	struct user_namespace *space = BPF_CORE_READ(task, cred, user_ns);
	__u32 user = BPF_CORE_READ(task, cred, uid.val), slot, *whose;
	struct wire_uids uids = { .bits = 32 };

	for (int i = 0; i < USER_NAMESPACES && BPF_CORE_READ(space, level) > 1; i++)
		space = BPF_CORE_READ(space, parent);
	if (BPF_CORE_READ(space, level)) {
		user = BPF_CORE_READ(space, owner.val);
		user = user ? user : ~BPF_CORE_READ(space, ns.inum); /* a container of root's */
	}
	uids.first = __builtin_bswap32(user);
	whose = bpf_map_lookup_elem(&uid_ranges, &uids);
	user = whose ? *whose : user;
	slot = user * state.kernels_mix >> 20;
	return !user ? 0 : slot ? slot : 1;
}

static __always_inline __u32 user_current(void)
{
	return user_of((void *)bpf_get_current_task());
}
#endif

static __always_inline void user_rows_add(__u32 user, __u64 rows)
{
	asm volatile("" : "+r"(rows)); /* see FOLD_ADD */
	__sync_fetch_and_add(&state.live_rows, rows);
	__sync_fetch_and_add(&state.user_rows[BOUNDED(user, WIRE_USERS - 1)], rows);
}

static __always_inline void user_threads_add(__u32 user, __u64 more)
{
	asm volatile("" : "+r"(more)); /* see FOLD_ADD */
	__sync_fetch_and_add(&state.threads, more);
	__sync_fetch_and_add(&state.user_threads[BOUNDED(user, WIRE_USERS - 1)], more);
}

/* A user but root may have three times as many threads as there is room for: alone three quarters
 * of all, two of them three sevenths each, so that there is always some for the next. */
static __always_inline int user_has_room(__u32 user)
{
	__s64 free = MAX_THREADS - state.threads;

	return !user || state.user_threads[BOUNDED(user, WIRE_USERS - 1)] < 3 * free;
}

static __always_inline void user_rows_change(struct wire_rows *rows, __u32 user, __u64 more)
{
	asm volatile("" : "+r"(more)); /* see FOLD_ADD */
	__sync_fetch_and_add(&rows->all, more);
	__sync_fetch_and_add(&rows->of[BOUNDED(user, WIRE_USERS - 1)], more);
}

/* The same as of threads, of a map with room for `most`. */
static __always_inline int user_may_have_more(const struct wire_rows *rows, __u32 user, __s64 most)
{
	return !user || rows->of[BOUNDED(user, WIRE_USERS - 1)] < 3 * (most - rows->all);
}
