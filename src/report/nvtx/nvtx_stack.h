/* SPDX-License-Identifier: MIT */
/*
 * Which ranges are around and inside of each that a thread pushed and popped. They come in the
 * order of their ends, a range after those inside of it, so what these took is known by then. The
 * range around it gets its number before it has ended.
 */
#ifndef CUSCOPE_REPORT_NVTX_NVTX_STACK_H
#define CUSCOPE_REPORT_NVTX_NVTX_STACK_H

#include "table/table.h"
#include "trace/event.h"

struct nvtx_stacks;

struct nvtx_nesting {
	uint64_t id, parent;         /* numbers of ranges, from 1; parent 0: there is none */
	uint64_t child_ns, children; /* of those directly inside */
	uint32_t depth;              /* as it is shown: at most 63 */
	const char *stack; /* ":1:2:3", of this range and those around it; until the next */
};

struct nvtx_stacks *nvtx_stacks_new(void);
void nvtx_stacks_free(struct nvtx_stacks *stacks);

/* Of a RANGE_PUSHPOP; each is to be told once. */
struct nvtx_nesting nvtx_stacks_nest(struct nvtx_stacks *stacks, const struct event *event);

/* The cells Lvl, NumChild, RangeId, ParentId and RangeStack. */
void nvtx_add_nesting(struct table *table, uint32_t level, const struct nvtx_nesting *nesting);

#endif
