/* SPDX-License-Identifier: MIT */
/*
 * Long stretches in which a process had nothing on a GPU and CUPTI was not at work for it either,
 * between its first and its last work there. What was not measured is no gap.
 */
#ifndef CUSCOPE_REPORT_EXPERT_LONG_GAPS_H
#define CUSCOPE_REPORT_EXPERT_LONG_GAPS_H

#include "trace/event.h"

struct long_gap {
	const struct process *process;
	uint32_t device, context; /* context: of the work before */
	uint64_t begin_ns, end_ns;
};

struct long_gaps;

/* Gaps longer than `least_ns`; of them the `most` longest. */
struct long_gaps *long_gaps_new(uint64_t least_ns, size_t most);
void long_gaps_free(struct long_gaps *gaps);
void long_gaps_event(struct long_gaps *gaps, const struct event *event);

/* After the last event: the longest first. Owned by `gaps`. */
const struct long_gap *long_gaps_rows(struct long_gaps *gaps, size_t *n);

/* Whether there was any work on a GPU at all. */
bool long_gaps_any_work(const struct long_gaps *gaps);

/* How many more there were. */
uint64_t long_gaps_left_out(const struct long_gaps *gaps);

#endif
