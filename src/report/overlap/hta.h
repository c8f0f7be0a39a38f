/* SPDX-License-Identifier: MIT */
/*
 * The time of a process's GPUs as Holistic Trace Analysis breaks it down, by its own rules
 * (get_temporal_breakdown, get_comm_comp_overlap), so that its figures can be compared with ours:
 *
 *   - all GPUs of a rank, which is what a process is here, are one;
 *   - what was not measured is idle;
 *   - a wait on a stream is work that is no computing;
 *   - from two different ProfilerStep ranges on, what was asked for from the begin of the last one
 *     on is left out, and so is what has no call;
 *   - kernels have their class by their names, as its regular expressions have it.
 *
 * Which step is the last is known at the end only. So what ran is kept until then: in order of its
 * begins, in a temporary file where there is much of it.
 */
#ifndef CUSCOPE_REPORT_OVERLAP_HTA_H
#define CUSCOPE_REPORT_OVERLAP_HTA_H

#include "trace/event.h"

struct hta_row {
	const struct process *process;
	uint64_t kernel_ns; /* from the begin of the first to the end of the last */
	uint64_t busy_ns, compute_ns, communication_ns;
	uint64_t both_ns;  /* of communication, while something was computed */
	uint64_t left_out; /* activities of the last step */
	uint64_t unasked;  /* activities that are left out since their call is not known */
};

struct hta;

struct work;
struct hta *hta_new(struct work *work); /* its window, or NULL: see work_share() */
void hta_free(struct hta *hta);
void hta_event(struct hta *hta, const struct event *event);

/* After the last event, once. Rows of processes that ran something, by their ids; owned by `hta`.
 * A negative errno and a sentence where the temporary file failed. */
int hta_rows(struct hta *hta, const struct hta_row **rows, size_t *n, struct err *err);

/* A class of its own: what is neither computing nor communication. */
enum hta_class { HTA_COMPUTE, HTA_COMMUNICATION, HTA_OTHER };

/* Of a kernel, by its demangled name. */
enum hta_class hta_class_of(const char *name);

#endif
