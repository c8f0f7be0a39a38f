/* SPDX-License-Identifier: MIT */
/* What bounds a GPU that has work all the time, by its own metrics. Private to report/why.c. */
#ifndef CUSCOPE_REPORT_WHY_BOUND_H
#define CUSCOPE_REPORT_WHY_BOUND_H

#include "analysis/metrics_use.h"
#include "base/buf.h"

enum why_bound {
	BOUND_UNKNOWN,
	BOUND_TENSOR,
	BOUND_FP32,
	BOUND_FP32_ALONE, /* while the tensor cores are idle */
	BOUND_DRAM,
	BOUND_SMALL, /* few of its multiprocessors have work */
	BOUND_LATENCY,
};

/* Of the GPU with that number, or of the only one. */
enum why_bound why_bound_of(const struct metrics_use *use, uint32_t device);

const char *why_bound_name(enum why_bound bound); /* "tensor", for programs; NULL of the first */
/* "its tensor cores, busy 93 % of that time": half a sentence; nothing where it is not known. */
void why_bound_text(const struct metrics_use *use, uint32_t device, struct buf *out);

#endif
