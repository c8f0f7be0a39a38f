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
	/* How many frames can be trusted. A register that holds no frame pointer leads to what is
	 * no code: such frames are cut off. */
	size_t frames;
	/* Index of the first frame that is neither CUDA's own nor a wrapper of it; 0 if there is
	 * none. */
	size_t named;
	bool whole; /* it reaches to the begin of the program or of a thread */
	bool deep;  /* it was cut at the greatest depth that is recorded */
	/* Neither whole nor deep: the module of its last frame, which seems to have been built
	 * without frame pointers. NULL without frames. */
	const char *ends_in;
};

/* `frames`: innermost first; `deep`: there were more than were recorded. */
void place_find(const struct frame *frames, size_t count, bool deep, struct place *place);

/* Whether a function of this (demangled) name only passes on requests for memory. */
bool place_is_wrapper(const char *function);

/* The same, or it is a function of CUDA's itself, as where the runtime is linked in. */
bool place_passes_on(const char *function);

#endif
