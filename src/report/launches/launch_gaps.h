/* SPDX-License-Identifier: MIT */
/*
 * The gaps between the launches of one thread: from the end of a launch to the begin of the next,
 * and what the thread did meanwhile. A GPU that this thread alone feeds has nothing new to do in
 * them. Launches of kernels and of graphs that did their work are launches here; calls made
 * inside others are the outer call's business.
 */
#ifndef CUSCOPE_REPORT_LAUNCHES_LAUNCH_GAPS_H
#define CUSCOPE_REPORT_LAUNCHES_LAUNCH_GAPS_H

#include "analysis/spread.h"
#include "trace/event.h"

#define GAPS_LONGEST 10
#define GAP_CALLS    8 /* functions of a gap that are told apart */

struct gap {
	const struct process *process;
	uint32_t tid;
	uint64_t begin_ns, end_ns;
	uint64_t cuda_ns; /* of that in calls; the rest was not in CUDA */
	struct gap_call {
		const struct function *function;
		uint64_t calls, ns;
	} call[GAP_CALLS]; /* most time first */
	size_t n_calls;
	uint64_t other_calls, other_ns; /* of functions beyond */
};

struct gap_row {
	const struct process *process;
	uint32_t tid; /* 0: all threads beyond those that are told apart, without gaps */
	uint64_t launches;
	uint64_t launch_ns; /* in the launches themselves */
	uint64_t cuda_ns;   /* of the gaps in other calls */
	struct spread gaps; /* their lengths, one less than launches */
};

struct launch_gaps;

struct launch_gaps *launch_gaps_new(void);
void launch_gaps_free(struct launch_gaps *gaps);
void launch_gaps_event(struct launch_gaps *gaps, const struct event *event);

/* Threads that launched, most launches first. Owned by `gaps`, until the next event. */
struct gap_row *const *launch_gaps_rows(struct launch_gaps *gaps, size_t *n);

/* Of all threads, longest first. Owned by `gaps`, until the next event. */
const struct gap *launch_gaps_longest(struct launch_gaps *gaps, size_t *n);

#endif
