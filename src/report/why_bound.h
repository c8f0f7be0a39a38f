/* SPDX-License-Identifier: MIT */
/* What bounds a GPU that has work all the time, by its own metrics. Private to report/why.c. */
#pragma once

#include "account/account.h"
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

/* The machine's number of the one GPU that the driver says a process used; FACTS_NONE: it used
 * several, or that was not recorded. */
uint32_t why_bound_used(const struct run_info *run, const struct process *process);

/*
 * The machine's number of an account's GPU; FACTS_NONE: not known. A process numbers GPUs by itself
 * (CUDA_VISIBLE_DEVICES, containers). It is the one that the driver says it used; of several, or
 * where that was not recorded, the one that was as busy, and of several that were, any of those
 * that are bound by the same.
 */
uint32_t why_bound_gpu(const struct metrics_use *use, const struct run_info *run,
                       const struct account *account);

/* Of the machine's GPU with that number. */
enum why_bound why_bound_of(const struct metrics_use *use, uint32_t gpu);

const char *why_bound_name(enum why_bound bound); /* "tensor", for programs; NULL of the first */
/* "its tensor cores, busy 93 % of that time": half a sentence; nothing where it is not known. */
void why_bound_text(const struct metrics_use *use, uint32_t gpu, struct buf *out);
