/* SPDX-License-Identifier: MIT */
/* The steps in which facts are made of a recording's rows, all there. Private to src/account. */
#pragma once

#include "account/facts.h"

/* Puts rows in order, once; facts->run is set. First it calls facts_tell_once(), then
 * facts_rests(), of each thread. */
void facts_order(struct facts *facts);
void facts_tell_once(struct facts *facts);
void facts_rests(struct facts *facts);

/* More than one file has processes. */
static inline bool facts_of_files(const struct facts *facts)
{
	return facts->files & (facts->files - 1);
}

/* It asks CUDA whether something is done: mostly again and again, and such calls are not recorded.
 */
bool facts_stack_polls(const struct stack *stack);

/* Once, after facts_order(). Calls that are alike are at one place once the stacks of a thread are
 * chains, and its samples have told of calls. */
void facts_place(struct facts *facts);
void facts_alike(struct facts *facts);

/* After facts_order(). */
void facts_ranks(struct facts *facts);

/* The collective that a work is a rank's part of; NULL: it is none's, or not known. */
const struct collective *facts_collective_of(const struct facts *facts, size_t work);

/* The work of a call of facts->collectives; FACTS_NONE: not known. */
uint32_t facts_work_of_call(const struct facts *facts, uint32_t call);

struct fact_busy { /* of a GPU, one after the other */
	uint64_t begin_ns, end_ns;
	uint32_t gpu;          /* as nvidia-smi counts them */
	uint16_t busy, copies; /* shares, as of gpu_metrics.h */
};

/* After the rest was put in order. Works are in order then, too. */
void facts_busy_make_works(struct facts *facts);

/* Puts what was not measured in order, and makes `unwatched` of it and of what comes after. Rows
 * are in order. */
void facts_watched(struct facts *facts);
