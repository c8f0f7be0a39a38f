/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Whose a process is, where users share rows of a map: as probe/person.h has it. */
#pragma once

#include "bpf/maps.h"
#include "bpf/wire_fold.h"

#define USER_NAMESPACES 33 /* in each other, as the kernel has it */

/* Whose uids of /etc/subuid are: they can get into our own user namespace, by files. */
#ifdef FOLD
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, FOLD_UID_RANGES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fold_uids);
	__type(value, __u32);
} fold_uid_ranges SEC(".maps");
#endif

/* The place of the current user in wire_state.user_rows; 0: root, who has no share. */
#if defined(FOLD) && !defined(user_current)
static __attribute__((noinline)) __u32 user_current(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct user_namespace *space = BPF_CORE_READ(task, cred, user_ns);
	__u32 user = bpf_get_current_uid_gid(), slot, *whose;
	struct fold_uids uids = { .bits = 32 };

	for (int i = 0; i < USER_NAMESPACES && BPF_CORE_READ(space, level) > 1; i++)
		space = BPF_CORE_READ(space, parent);
	if (BPF_CORE_READ(space, level)) {
		user = BPF_CORE_READ(space, owner.val);
		user = user ? user : ~BPF_CORE_READ(space, ns.inum); /* a container of root's */
	}
	uids.first = __builtin_bswap32(user);
	whose = bpf_map_lookup_elem(&fold_uid_ranges, &uids);
	user = whose ? *whose : user;
	slot = user * state.kernels_mix >> 20;
	return !user ? 0 : slot ? slot : 1;
}
#elif !defined(user_current)
#define user_current() 0
#endif

static __always_inline void user_rows_add(__u32 user, __u64 rows)
{
	asm volatile("" : "+r"(rows)); /* see FOLD_ADD */
	__sync_fetch_and_add(&state.live_rows, rows);
	__sync_fetch_and_add(&state.user_rows[BOUNDED(user, WIRE_USERS - 1)], rows);
}
