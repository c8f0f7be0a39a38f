/* SPDX-License-Identifier: MIT */
/*
 * Calls that are summed up here rather than in the kernel: those that an agent tells of, and those
 * that probes see in the same process (see call_done of bpf/fold_calls.h). They come in order, and
 * the code is the programs' own, so that they add up to the same rows.
 *
 * Live memory is not among them: it is followed by probes, in the kernel.
 */
#pragma once

#include "bpf/wire_fold.h"
#include "capture/watch/ledger.h"

struct fold_inside;

struct fold_inside_options {
	unsigned tools;                   /* enum fold_tool */
	struct ledger *launches, *copies; /* of the tools that are wanted */
	uint32_t kernels_mix;             /* of the programs: see wire_kernels_generation */
	/* The first call of a row of launches, with its generation. */
	void (*first)(void *data, const struct wire_call *call);
	void *data;
};

struct fold_inside *fold_inside_new(const struct fold_inside_options *options);
void fold_inside_free(struct fold_inside *inside);

/* What the programs know of a process, before its first call: they will not ask for it again. */
void fold_inside_take(struct fold_inside *inside, struct programs *programs,
                      struct ledger_process process);

/* `plan` is not of FOLD_SEND. Calls within others, and unfinished ones, count nothing. */
void fold_inside_call(struct fold_inside *inside, struct ledger_process process,
                      const struct fold_plan *plan, const struct wire_call *call);

/* Of handles of a process's kernels from now on. */
void fold_inside_generation(struct fold_inside *inside, uint32_t tgid, uint16_t generation);

/* Forgets the processes that are meant: they have ended. */
void fold_inside_ended(struct fold_inside *inside, ledger_is_fn is, void *data);

/* So many rows of launches of a process that goes on were deleted. */
void fold_inside_give_back(struct fold_inside *inside, struct ledger_process process,
                           uint64_t rows);

uint64_t fold_inside_lost_rows(const struct fold_inside *inside);
