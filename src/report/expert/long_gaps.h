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

/* Gaps longer than `least_ns`; of them the `most` longest. */
struct consumer *long_gaps_new(uint64_t least_ns, size_t most);

/* After the last event: the longest first. Owned by `gaps`. */
const struct long_gap *long_gaps_rows(struct consumer *gaps, size_t *n);

/* Whether there was any work on a GPU at all. */
bool long_gaps_any_work(const struct consumer *gaps);

/* Work that became known when gaps before its end could not be filled any more. */
uint64_t long_gaps_late(const struct consumer *gaps);

/* How many more there were. */
uint64_t long_gaps_left_out(const struct consumer *gaps);

#endif
