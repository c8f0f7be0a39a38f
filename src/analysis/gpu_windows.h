/* SPDX-License-Identifier: MIT */
/*
 * How much of each GPU was used in each part of the time from the first to the last activity of a
 * process on it.
 */
#ifndef CUSCOPE_ANALYSIS_GPU_WINDOWS_H
#define CUSCOPE_ANALYSIS_GPU_WINDOWS_H

#include "trace/event.h"

#define GPU_WINDOWS 30 /* as many as nsys' gpu_time_util has */

struct gpu_windows_row {
	const struct process *process;
	uint32_t device, context; /* context: of its first activity */
	uint64_t begin_ns, end_ns;
	/* How much of each window was measured, 0 to 1; and of that how much was used: with what
	 * runs at the same time added up, so that it can be more than 1, as nsys counts; and
	 * counted once. Within 1 % of a window. Of what was not measured, 0. */
	double measured[GPU_WINDOWS], sum[GPU_WINDOWS], used[GPU_WINDOWS];
};

struct consumer *gpu_windows_new(void);

/* Less of a window than this was measured: nothing can be said about it. */
#define GPU_WINDOW_MEASURED 0.1

/* By process and device, after the last event. Owned by `windows`. */
const struct gpu_windows_row *gpu_windows_rows(struct consumer *windows, size_t *n);

#endif
