/* SPDX-License-Identifier: MIT */
/*
 * Native frames and frames of Python of one thread were walked apart; here they become one stack.
 * An invocation of Python's evaluator is a native frame that holds, somewhere between its stack
 * pointer and its CFA, the anchor of the frames of Python that it runs. It gives way to them.
 */
#ifndef CUSCOPE_UNWIND_SPLICE_H
#define CUSCOPE_UNWIND_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire_stacks.h"

static inline enum wire_entry_kind entry_kind(const struct wire_entry *entry)
{
	return entry->b >> ENTRY_KIND_AT;
}

/*
 * Puts `n` entries, the native ones from stack pointer `sp` on, as the programs sent them (kernel,
 * native, Python with anchors) in their order from the innermost on, into `out` of
 * STACK_ENTRIES_MAX; the number of them is returned. Anchors are gone from it.
 *
 * Where an anchor is in no frame, or the version of Python has none, `is_evaluator` (may be NULL)
 * tells whether the native frame at an address is one, and frames are put there in turn; those
 * that are left stand outside of all native ones, as where the walk of these was cut, and *loosely
 * is set.
 */
size_t splice(const struct wire_entry *entries, size_t n, uint64_t sp, struct wire_entry *out,
              bool (*is_evaluator)(void *data, const struct wire_entry *native), void *data,
              bool *loosely);

#endif
