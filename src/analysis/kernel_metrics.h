/* SPDX-License-Identifier: MIT */
/*
 * How well a GPU was used while each kernel ran: of runs that are long enough for the samples of
 * the GPU's counters and for what their times can be wrong by, in a recording with kernels and
 * stretches (gpu_metrics.h) both. Counters are
 * the GPU's, so of kernels that ran at the same time nothing is told. Nor is it of several GPUs,
 * since nobody tells which of them a process calls 0.
 *
 * Memory is bounded: some minutes of stretches, and kernels that wait for theirs.
 */
#pragma once

#include "trace/event.h"

struct kernel_metrics_row {
	const struct kernel *kernel;
	uint64_t runs, ns;       /* that are long enough, and whose time was sampled */
	double sm, tensor, dram; /* means by time, percent; NAN: not told */
};

struct kernel_metrics;

struct kernel_metrics *kernel_metrics_new(void);
void kernel_metrics_free(struct kernel_metrics *metrics);
void kernel_metrics_event(struct kernel_metrics *metrics, const struct event *event);

/*
 * After the last event: the most time first. `edge_ns`: how near to a run's begin and end stretches
 * may be another's.
 */
const struct kernel_metrics_row *kernel_metrics_rows(struct kernel_metrics *metrics,
                                                     uint64_t edge_ns, size_t *n);

/* Whether there are kernels and stretches, both. */
bool kernel_metrics_any(const struct kernel_metrics *metrics);

/* Of which length runs are told, by kernel_metrics_rows(). 0: of none, since times are too bad. */
uint64_t kernel_metrics_least_ns(const struct kernel_metrics *metrics);

/* Runs of that length or longer that were left out, by why. */
uint64_t kernel_metrics_together(const struct kernel_metrics *metrics);  /* with others */
uint64_t kernel_metrics_unsampled(const struct kernel_metrics *metrics); /* not all of it */
bool kernel_metrics_of_several(const struct kernel_metrics *metrics);    /* GPUs: no rows */
