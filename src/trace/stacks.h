/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a run, each kept once, and their frames as well: a source finds or makes what its
 * events point to. Memory has a bound; what there is no room for is counted.
 */
#ifndef CUSCOPE_TRACE_STACKS_H
#define CUSCOPE_TRACE_STACKS_H

#include "trace/stack.h"

/* 100,000 stacks of 60 frames, and as many frames. */
#define STACKS_BYTES_MAX  ((size_t)128 << 20)
#define STACKS_BYTES_EACH ((size_t)64 << 20) /* that one owner brings */

struct stacks;

struct stacks *stacks_new(void);
void stacks_free(struct stacks *stacks);

/* Who brings what is kept from now on, a process by its number: a share is every owner's
 * (budget.h). What others have brought is had for nothing. */
void stacks_for(struct stacks *stacks, uint32_t owner);

/*
 * The one that equals `frame`, whose id is not looked at; its strings are copied where it is new.
 * It lives as long as the stacks. NULL where there is no room.
 */
const struct stack_frame *stacks_frame(struct stacks *stacks, const struct stack_frame *frame);

/* The same of a whole stack, of frames of these stacks. */
const struct stack *stacks_stack(struct stacks *stacks, const struct stack *stack);

/* What it is in its source (stack.h): once, of frames of these stacks. False: there is no room. */
bool stacks_set_parts(struct stacks *stacks, const struct stack_frame *frame,
                      const struct stack_frame *const *parts, size_t n);

size_t stacks_count(const struct stacks *stacks);
uint64_t stacks_refused(const struct stacks *stacks); /* frames and stacks without room */

#endif
