/* SPDX-License-Identifier: MIT */
/*
 * The steps of a recording: what a program does over and over, a batch of a training, a token. They
 * are found by what the program names itself (ranges of NVTX), else by the period of the launches
 * of its busiest thread, else, where all launches are alike, by the pauses between them.
 *
 * Nested loops have several periods. The smallest that is stable is taken: the micro-batch of a
 * step that is made of several, unless ranges name the step. Layers of a network are as stable
 * where each takes a millisecond; what lies between the last of a step and the first of the next
 * tells that they are no steps.
 *
 * (node/steps.h judges steps while they happen, and keeps no recording.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define STEPS_LEAST 3 /* fewer are no steps */

enum steps_how {
	STEPS_NONE,
	STEPS_RANGES,
	STEPS_LAUNCHES, /* a period of launches */
	STEPS_PAUSES,   /* launches of one kernel, with a pause each so many */
};

/* "ranges", "launches", "pauses": the word for it in outputs; NULL for STEPS_NONE. */
const char *steps_how_name(enum steps_how how);

struct step_launch {
	uint64_t time_ns;
	uint32_t key; /* the kernel, or the function where that is not known */
};

struct step_range {
	uint64_t begin_ns, end_ns;
	uint32_t name;   /* a dense number of the name without its numbers (steps_name) */
	uint32_t depth;  /* ranges of the thread that are open around it */
	unsigned likely; /* what steps_name() returned */
};

/*
 * Appends the name without its numbers ("ProfilerStep#12": "ProfilerStep#"), by which ranges belong
 * together; of a long one its begin. Returns how much it looks like a step's: 2 where it says so
 * (step, iter, batch), 1 more where it has a number.
 */
unsigned steps_name(const char *name, struct buf *out);

/* What steps are looked for in: the caller's, of one thread. The span is that of the recording. */
struct steps_of {
	const struct step_launch *launches; /* by time */
	size_t n_launches;
	const struct step_range *ranges; /* by begin */
	size_t n_ranges;
	uint64_t begin_ns, end_ns;
};

/* It is something else, by its length beside the median's. */
enum step_apart {
	STEP_USUAL,
	STEP_WARM_UP, /* before the first that is not, longer than twice */
	STEP_OTHER,   /* the same with other launches in it than a step's: an evaluation */
	STEP_LONG,    /* than ten times; or three times, and few are: a checkpoint */
};

struct steps {
	enum steps_how how;
	size_t n;           /* steps */
	uint64_t *begin_ns; /* n + 1: step i is from [i] to [i + 1] */
	uint8_t *apart;     /* n: enum step_apart */
	size_t n_apart;
	uint64_t apart_ns;  /* of all that are apart */
	uint64_t median_ns; /* of those that are not */
	uint64_t before_ns; /* of the span before the first step */
	uint64_t after_ns;  /* and after the last */
	size_t period;      /* STEPS_LAUNCHES, STEPS_PAUSES: launches a step, mostly; else 0 */
	uint32_t name;      /* STEPS_RANGES: of the ranges */
};

/* O(n log n), and 10 bytes a launch at most besides what it returns. With STEPS_NONE all is 0. */
void steps_find(struct steps *steps, const struct steps_of *of);
void steps_clear(struct steps *steps);

/* Only those that have something between two times; too few are none. */
void steps_keep_within(struct steps *steps, uint64_t begin_ns, uint64_t end_ns);

/* What was apart so is a step as others are. */
void steps_join(struct steps *steps, enum step_apart apart);

/* Of all of them, those that are apart too. There are steps. */
uint64_t steps_mean_ns(const struct steps *steps);

/* What of all steps lies between two times; *n: how many have some there. */
uint64_t steps_within(const struct steps *steps, uint64_t begin_ns, uint64_t end_ns, size_t *n);
