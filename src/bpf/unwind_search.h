/* SPDX-License-Identifier: MIT */
/*
 * The search in a node of a file's rows, for the programs and for user space.
 *
 * It has no branch that depends on what is in the node: the verifier would go on from both sides of
 * each, 256 ways. BPF has no instruction that sets a register by a comparison either, and compilers
 * make a branch of ?:, so the comparison is the sign of a difference. Clang would see through that,
 * were it not told that the difference may be any number. And the sign is multiplied by, not made a
 * mask of: with a number that is 0 or -1 kernels (6.18 is one) go on twice. A search of three nodes
 * is 300 instructions to the verifier, and was 13,200 with masks.
 */
#pragma once

#include "bpf/wire_unwind.h"

/*
 * The place in a node of the last row that begins at `address` or before; 0 also where none does.
 * `address` is less than UNWIND_UNUSED.
 */
static inline __attribute__((always_inline)) __u32 unwind_search(const struct wire_node *node,
                                                                 __u32 address)
{
	__u32 low = 0;

#ifdef __clang__
#pragma clang loop unroll(full)
#endif
	for (__u32 step = UNWIND_FAN / 2; step; step /= 2) {
		__u64 at = low + step, past;

		__asm__("" : "+r"(at)); /* or the mask goes, without which 5.10 knows no bound */
		past = (__u64)address - (__u64)node->row[at % UNWIND_FAN].address;
		__asm__("" : "+r"(past));
		low += step * (__u32)((past >> 63) ^ 1);
	}
	return low % UNWIND_FAN;
}

/* The same in a leaf, of an address so far behind that of its first row. */
static inline __attribute__((always_inline)) __u32 unwind_search_leaf(const struct wire_leaf *leaf,
                                                                      __u32 offset)
{
	__u32 low = 0;

#ifdef __clang__
#pragma clang loop unroll(full)
#endif
	for (__u32 step = UNWIND_LEAF_ROWS / 2; step; step /= 2) {
		__u64 at = low + step, past;

		__asm__("" : "+r"(at));
		past = (__u64)offset - (__u64)leaf->offset[at % UNWIND_LEAF_ROWS];
		__asm__("" : "+r"(past));
		low += step * (__u32)((past >> 63) ^ 1);
	}
	return low % UNWIND_LEAF_ROWS;
}
