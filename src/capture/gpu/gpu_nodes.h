/* SPDX-License-Identifier: MIT */
/*
 * Nodes of the CUDA graphs of one process, and the stacks of the calls that made them: a launch
 * that is captured does not run, but its node does, each time that the graph is launched. Of each
 * node an agent tells the thread and the time, or of which other it is a copy. Either of call and
 * node may come first.
 *
 * The oldest node makes room for a new one. Of nodes that were made before anybody looked, or by
 * no captured call, nothing is known.
 */
#ifndef CUSCOPE_CAPTURE_GPU_GPU_NODES_H
#define CUSCOPE_CAPTURE_GPU_GPU_NODES_H

#include "agent/wire.h"
#include "base/budget.h"
#include "trace/event.h"

#define GPU_NODES_MOST (1u << 15) /* of some 110 bytes each, within the process's budget */

struct gpu_nodes;

/* What is kept is of the owner's budget, which may be NULL. */
struct gpu_nodes *gpu_nodes_new(struct budget *budget, uint32_t owner);
void gpu_nodes_free(struct gpu_nodes *nodes);

/* A call that was recorded into a graph, with its stack, in order of the ends of its thread's; tid
 * as the agent's records have it after it was translated. */
void gpu_nodes_call(struct gpu_nodes *nodes, uint32_t tid, const struct call *call);

void gpu_nodes_made(struct gpu_nodes *nodes, const struct agent_node *record, uint32_t tid);

/* NULL: not known. */
const struct stack *gpu_nodes_stack(struct gpu_nodes *nodes, uint64_t node);

#endif
