/* SPDX-License-Identifier: MIT */
/* Facts of several recordings of the same time (trace/together.h). Private to facts_order.c. */
#pragma once

#include "account/facts.h"

/* More than one has processes. */
static inline bool facts_of_files(const struct facts *facts)
{
	return facts->files & (facts->files - 1);
}

/*
 * A process that several files have is told by the one that has most of it: one of them traced it,
 * in others it is what is waited for. Before rows are put in order.
 */
void facts_tell_once(struct facts *facts);
