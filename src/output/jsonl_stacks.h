/* SPDX-License-Identifier: MIT */
/* The keys of jsonl lines about stacks and samples, and what stands for an op. Private to
 * src/output. */
#ifndef CUSCOPE_OUTPUT_JSONL_STACKS_H
#define CUSCOPE_OUTPUT_JSONL_STACKS_H

#include "base/buf.h"
#include "trace/event.h"

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

#endif
