/* SPDX-License-Identifier: MIT */
/* The steps in which facts are made of a recording's rows, all there. Private to src/account. */
#pragma once

#include "account/facts.h"

/*
 * Puts rows in order, once, with facts->run set: each thread's one after the other, wakers as
 * threads, and calls by what work names them. (What facts.h finds is found in facts_order.c.)
 */
void facts_order(struct facts *facts);

/* More than one of several recordings of the same time (trace/together.h) has processes. */
static inline bool facts_of_files(const struct facts *facts)
{
	return facts->files & (facts->files - 1);
}

/*
 * A process that several files have is told by the one that has most of it: one of them traced it,
 * in others it is what is waited for. Before rows are put in order.
 */
void facts_tell_once(struct facts *facts);

/*
 * What waits were for, as those beside them tell: a wait whose limit was over and that goes on, one
 * that a stop of the process broke off, and those for Python's lock of which no stack was walked.
 * Of each thread, whose rests are in order.
 */
void facts_rests(struct facts *facts);

/*
 * The places of facts: chains of the user's frames, made of stacks when all is known of them. What
 * a thread does in which no frame is the user's is at the place of the thread that waits for it: a
 * framework runs the backward half of a training on a thread of its own.
 *
 * And who the peer of a socket of this machine is: a wake-up by the network has no thread that made
 * it, but comes while the sender has the CPU. So it is the process of the recording that runs as
 * the waits of a thread at one place end, and does not run as often between them.
 *
 * Once, after facts_order().
 */
void facts_place(struct facts *facts);

/*
 * Where calls are that have no stack: where those of the same thread are that are alike, by what
 * they ask for, on which stream, and after which calls. Few stacks of launches are walked and none
 * of those that are recorded inside of processes, so that most have their places from samples,
 * which a thread that mostly sleeps has few of. All of the recording counts, also the time between
 * windows of GPU times: a line stays where it is. Of each thread, once its stacks are chains, and
 * its samples have told of calls.
 */
void facts_alike(struct facts *facts);

/* Which kernels of communication are one collective's. After facts_order(). */
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

/*
 * What GPUs ran, where no work was recorded but when a GPU was busy (GPU_METRICS_STRETCHES): each
 * stretch becomes a work, of the call that it can be of. After the rest was put in order. Works are
 * in order then, too.
 */
void facts_busy_make_works(struct facts *facts);

/*
 * From when on GPUs were measured in each window of GPU times, and up to when threads were watched.
 * At the end of a recording calls and GPU times can come for some hundred milliseconds more than
 * samples and waits do: why a GPU paused then was not measured. Puts what was not measured in
 * order, and makes `unwatched` of it and of what comes after. Rows are in order.
 */
void facts_watched(struct facts *facts);
