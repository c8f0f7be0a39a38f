/* SPDX-License-Identifier: MIT */
/* The keys of jsonl lines: of what ran on the GPU, ranges, samples and stacks. Private to
 * src/output. */
#pragma once

#include "base/buf.h"
#include "output/format.h"
#include "trace/event.h"

/* From "type" to the duration; the process's keys follow, then the second part. */
void jsonl_begin_activity(struct buf *out, const struct activity *activity,
                          const struct delay *delay);
void jsonl_add_activity(struct buf *out, const struct activity *activity);

void jsonl_begin_range(struct buf *out, const struct range *range, uint32_t tid);
void jsonl_add_range(struct buf *out, const struct range *range);

/* Metrics of a GPU, after the time. */
void jsonl_add_metrics(struct buf *out, const struct gpu_metrics_sample *sample);

/* All but its time, process and kernel. */
void jsonl_add_stall(struct buf *out, const struct stall *stall);

/* Which stacks have had their line. Zeroed: none. */
struct jsonl_stacks {
	bool *told; /* by id */
	size_t n;
};

void jsonl_stacks_free(struct jsonl_stacks *stacks);

/* True at the first time: its line goes before the one that refers to it. */
bool jsonl_stacks_meet(struct jsonl_stacks *stacks, const struct stack *stack);

void jsonl_add_stack(struct buf *out, const struct stack *stack);

/* From the thread to the weight; the process's keys follow, then the stack. */
void jsonl_begin_sample(struct buf *out, const struct event *event);
void jsonl_add_stack_of(struct buf *out, const struct stack *stack); /* nothing of NULL */

const char *jsonl_op(enum api_op op); /* "graph_launch" */

/* "kernel" (a launch), "memory", "transfer", "userspace", "kernel_side", "hook" */
const char *jsonl_type(const struct call *call);
