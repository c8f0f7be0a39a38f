/* SPDX-License-Identifier: MIT */
/*
 * How the clocks of machines go by each other, by what their recordings have of one job: kernels of
 * a collective end together on all of its ranks, whoever came last, and whatever their clocks say.
 * Which calls are one collective is known without times (collectives.h).
 *
 * A machine's clock is another's, put off by the median of what ends differ by, and with a drift
 * where that fits better. The error is what 95 % of the ends do not exceed. Of several users each
 * has one voice, however many collectives he has.
 */
#pragma once

#include "trace/together.h"

#define MACHINES_LEAST 8 /* collectives, below which nothing is said of a clock */

enum machine_how {
	MACHINE_ALIGNED,   /* by the clock of the first file's machine */
	MACHINE_NO_CALLS,  /* it has no collectives, or they are of no communicator that is known */
	MACHINE_OTHER_JOB, /* its communicators are none of those of the first machine */
	MACHINE_OTHER_USER,   /* the same by their ids, but of other users */
	MACHINE_LOST,         /* calls were lost, so that no numbers of collectives are known */
	MACHINE_NO_GPU_TIMES, /* when kernels of common collectives ended is not known */
	MACHINE_FEW,          /* of less than MACHINES_LEAST of common collectives it is */
};

struct machine {
	char boot[64]; /* "": which it is was not recorded; it is another one than all */
	enum machine_how how;
	struct together_clock clock;
};

struct machines {
	struct machine of[TOGETHER_MAX];
	uint32_t n;
	uint32_t *of_file; /* of each file its machine; TOGETHER_MAX: there is no room for it */
};

/*
 * Reads all files once, where they are of more than one machine; they can be read again. What is
 * damaged in them is for that reading to say.
 */
void machines_align(struct machines *machines, struct trace_file *const *files, size_t n);
void machines_clear(struct machines *machines);

/* Of a file; NULL: there is no room for its machine. */
const struct together_clock *machines_clock(const struct machines *machines, size_t file);

/* Why a file is not together with another one, where its clock's `of` is another: half a sentence.
 */
const char *machines_why(const struct machines *machines, size_t file);
