/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * How many calls of one process wait for their ends, of hooks (hooks.h) and in the driver
 * (driver_calls.h): no process may have more than half of the room. Kernels before 5.11 have no
 * storage by task that tracing programs can use, so this is a map by process. A share that was
 * pushed out begins anew.
 */
#pragma once

#include "bpf/maps.h"

struct call_share {
	__s64 hooks, driver;
};

/* User space makes this as large as it has to be; nothing without hooks and calls to the driver. */
MAP(LRU_HASH, 1, __u32 /* tgid */, struct call_share) call_shares SEC(".maps");

static __always_inline struct call_share *call_share_known(__u32 tgid)
{
	return bpf_map_lookup_elem(&call_shares, &tgid);
}

/* NULL is a share that is not known, and has room. */
static __always_inline struct call_share *call_share_of(__u32 tgid)
{
	struct call_share *share = call_share_known(tgid), none = {};

	if (share)
		return share;
	bpf_map_update_elem(&call_shares, &tgid, &none, BPF_NOEXIST);
	return call_share_known(tgid);
}

/*
 * Puts a call under its key, if `waiting`, one of the numbers of the share of its process or NULL,
 * is below `most`. What an earlier one left there, whose end was missed, is in that number already.
 */
static __always_inline long call_share_put(__s64 *waiting, __s64 most, void *map, const void *key,
                                           const void *call)
{
	if (waiting && *waiting >= most)
		return -1;
	if (bpf_map_update_elem(map, key, call, BPF_NOEXIST))
		return bpf_map_update_elem(map, key, call, BPF_EXIST);
	if (waiting)
		__sync_fetch_and_add(waiting, 1);
	return 0;
}

static __always_inline void call_share_took(__s64 *waiting)
{
	if (waiting)
		__sync_fetch_and_add(waiting, -1ll);
}

/* The process is over. */
static __always_inline void call_share_over(__u32 tgid)
{
	if (settings.own_hooks || settings.driver_calls)
		bpf_map_delete_elem(&call_shares, &tgid);
}

/* ---- threads that end ----------------------------------------------------------------------- */

#define PF_EXITING 0x04

/* What a thread does behind its end, such as closing its files, nothing would take away again. */
static __always_inline int is_ending(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, flags) & PF_EXITING;
}
