/* SPDX-License-Identifier: MIT */
/*
 * Nodes of the CUDA graphs of one process, and the stacks of the calls that made them: a launch
 * that is captured does not run, but its node does, each time that the graph is launched. A probe
 * in the agent tells of each node with its stack, and the agent of which others are copies, in
 * either order.
 *
 * The oldest node makes room for a new one. Of nodes that were made before anybody looked nothing
 * is known.
 */
#pragma once

#include <stdint.h>

#include "base/budget.h"
#include "trace/event.h"

#define GPU_NODES_MOST (1u << 17) /* of some 80 bytes each, within the process's budget */

struct gpu_nodes;

/* What is kept is of the owner's budget, which may be NULL. */
struct gpu_nodes *gpu_nodes_new(struct budget *budget, uint32_t owner);
void gpu_nodes_free(struct gpu_nodes *nodes);

/* A node was made by a call with this stack, which may be NULL. */
void gpu_nodes_made(struct gpu_nodes *nodes, uint64_t node, const struct stack *stack);

/* It is a copy: where its original was made counts. */
void gpu_nodes_copied(struct gpu_nodes *nodes, uint64_t node, uint64_t original);

/* NULL: not known. */
const struct stack *gpu_nodes_stack(struct gpu_nodes *nodes, uint64_t node);
