/* SPDX-License-Identifier: MIT */
/*
 * Steps of a program, and which of them are slow. A step is what a program does over and over: a
 * batch of a training, a token.
 *
 * Without help of the program it is found in the launches of each thread. A kernel (or graph) that
 * comes again after the same number of launches, again and again, marks the begin of a step. Of
 * several such kernels the one with the most launches between counts. The length of a step is from
 * one launch of it to the next. Only steps with that same number of launches are judged, so an
 * evaluation or a checkpoint between is none.
 *
 * It sees what has such a period: training and inference of one shape. It cannot see
 *   - programs whose number of launches changes from step to step;
 *   - steps that are captured in one graph and launched with a pause by nature, as a server does:
 *     there a pause is taken for a slow step;
 *   - time on the GPU: when launches run ahead of the GPU, a slow step is seen when the program
 *     waits for it.
 * Where a program names its steps by NVTX, their length is used instead.
 */
#ifndef CUSCOPE_NODE_STEPS_H
#define CUSCOPE_NODE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

#define STEPS_BEFORE      16   /* that have to be known before one is judged */
#define STEPS_KEPT        64   /* the median is that of the last so many */
#define STEPS_MARKERS     48   /* kernels of a thread that are looked at */
#define STEPS_THREADS_MAX 1024 /* then the one that was idle for the longest time is forgotten: */
#define STEPS_USER_MAX    410  /* of a user but root, who has so many, his own */

struct steps_options {
	double times;        /* slower than so many times the median */
	uint64_t least_ns;   /* a median below that is not judged */
	uint64_t unended_ns; /* one that lasts for so long is told before its end */
};

struct slow_step {
	uint32_t pid, tid;
	uint64_t person; /* whose process it is */
	uint64_t ns, median_ns;
	uint64_t launches; /* of each step; 0: steps are ranges */
	bool ended;
};

struct steps;

struct steps *steps_new(const struct steps_options *options);
void steps_free(struct steps *steps);

/* A launch of `what`, any number that stands for it. True: the step that it ends was slow. */
bool steps_launch(struct steps *steps, const struct process *process, uint32_t tid, uint64_t what,
                  uint64_t now_ns, struct slow_step *slow);

/* A range that is a step. */
bool steps_range(struct steps *steps, const struct process *process, uint32_t tid,
                 uint64_t begin_ns, uint64_t end_ns, struct slow_step *slow);

/* Whether a step lasts for too long that has not ended; each is told once. */
bool steps_unended(struct steps *steps, uint64_t now_ns, struct slow_step *slow);

/* Its process ended. */
void steps_exit(struct steps *steps, uint32_t pid);

/* Threads whose steps are known well enough to be judged, and how many were forgotten for want of
 * room: steps of those were not judged. */
void steps_figures(const struct steps *steps, uint64_t *judged, uint64_t *forgotten);

#endif
