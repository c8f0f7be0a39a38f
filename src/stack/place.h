/* SPDX-License-Identifier: MIT */
/*
 * What a stack of calls into CUDA says: the function a person would name as the one that did it,
 * and whether the stack is whole.
 */
#ifndef CUSCOPE_STACK_PLACE_H
#define CUSCOPE_STACK_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "stack/symbols.h"

struct place {
	size_t frames; /* how many of the stack's can be trusted: what a register without a frame */
	/* pointer in it led to is no code, and cut off */
	size_t named; /* index of the first frame that is not CUDA's own and no wrapper of it; */
	/* with `frames` 0, and where all are: 0 */
	bool whole;          /* it reaches to the begin of the program or of a thread */
	bool deep;           /* it was cut at the greatest depth that is recorded */
	const char *ends_in; /* not whole, not deep: the module of its last frame, which seems to */
	/* have been built without frame pointers; NULL without frames */
};

/* `frames`: innermost first; `deep`: there were more than were recorded. */
void place_find(const struct frame *frames, size_t count, bool deep, struct place *place);

/* Whether a function of this (demangled) name only passes on requests for memory. */
bool place_is_wrapper(const char *function);

#endif
