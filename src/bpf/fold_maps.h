/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Maps that calls are summed up in, and the plans of hooks. User space gives those that a tool
 * needs their room (src/probe/programs.c) and the others one entry. Preallocated, as those in
 * maps.h.
 */
#pragma once

#include "bpf/maps.h"
#include "bpf/wire_fold.h"
#include "bpf/wire_hooks.h"

/*
 * This is compiled twice: with FOLD for the tools that sum up, without for all else. The paths
 * would vanish in the verifier as well, but it takes 15 ms rather than 11 to load six times the
 * instructions.
 */
#ifdef FOLD
#define FOLDING settings.fold
#define FOLD_STORAGE
#define FOLD_SECTION SEC(".maps")
#else
#define FOLDING      0
#define FOLD_STORAGE static __attribute__((unused))
#define FOLD_SECTION
#endif

/* Sums: what finds no room is counted. */
#define FOLD_MAP(name, key_type, value_type)                                                       \
	FOLD_STORAGE MAP(HASH, 1, key_type, value_type)                                            \
	name FOLD_SECTION

/* Knowledge: what was not asked for in the longest time makes room. */
#define FOLD_CACHE(name, key_type, value_type)                                                     \
	FOLD_STORAGE MAP(LRU_HASH, 1, key_type, value_type)                                        \
	name FOLD_SECTION

FOLD_STORAGE MAP(ARRAY, 1, __u32, struct fold_plan) fold_plans FOLD_SECTION;

/* Bits of one channel by CUarray_format. */
FOLD_STORAGE MAP(ARRAY, 256, __u32, __u32)
fold_formats FOLD_SECTION;

FOLD_STORAGE MAP(ARRAY, FOLD_DIRECTIONS, __u32, __u32)
fold_directions FOLD_SECTION;

/* Of hooks of one's own, by plan. */
FOLD_STORAGE MAP(ARRAY, 1, __u32, struct wire_hook_table) fold_hook_tables FOLD_SECTION;

FOLD_MAP(fold_born, __u32, struct fold_born); /* by tgid, until its exec or exit */
FOLD_MAP(fold_processes, struct fold_process_key, struct fold_process);
FOLD_MAP(fold_totals, struct fold_process_key, struct fold_totals);
FOLD_MAP(fold_live, struct fold_memory_key, struct fold_allocation);
FOLD_MAP(fold_failures, struct fold_failure_key, struct fold_count);
FOLD_MAP(fold_results, struct fold_failure_key, struct fold_result);
FOLD_MAP(fold_launches, struct fold_launch_key, struct fold_launch);
FOLD_MAP(fold_copies, struct fold_copies_key, struct fold_copies);
FOLD_MAP(fold_hooks, struct fold_hook_key, struct fold_hook);
FOLD_MAP(fold_open_captures, __u64, struct fold_open_capture);
FOLD_CACHE(fold_pinned, struct fold_pinned_key, struct fold_pinned);
FOLD_CACHE(fold_captures, struct fold_capture_key, __u64);
FOLD_CACHE(fold_shares, struct fold_process_key, struct fold_share);

/* NULL where calls of this hook are sent. */
static __always_inline const struct fold_plan *fold_plan_of(__u32 hook)
{
	const struct fold_plan *plan;

	if (!FOLDING)
		return 0;
	plan = bpf_map_lookup_elem(&fold_plans, &hook);
	return plan && plan->op != FOLD_SEND ? plan : 0;
}
