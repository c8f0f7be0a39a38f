// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_nodes.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

#define COPIES_DEEP 8 /* a graph is copied into another, that is instantiated, and so on */

struct node {
	uint64_t number;
	uint64_t original;         /* it is a copy of that one; 0: of none */
	const struct stack *stack; /* NULL: not known */
	UT_hash_handle hh;         /* in the order in which they came */
};

struct gpu_nodes {
	struct budget *budget;
	uint32_t owner;
	size_t taken;
	struct node *nodes;
};

struct gpu_nodes *gpu_nodes_new(struct budget *budget, uint32_t owner)
{
	struct gpu_nodes *nodes = xcalloc(1, sizeof(*nodes));

	nodes->budget = budget;
	nodes->owner = owner;
	return nodes;
}

void gpu_nodes_free(struct gpu_nodes *nodes)
{
	if (!nodes)
		return;
	MAP_FREE(nodes->nodes, free);
	budget_give(nodes->budget, nodes->owner, nodes->taken);
	free(nodes);
}

static bool nodes_have_room(struct gpu_nodes *nodes)
{
	if (HASH_COUNT(nodes->nodes) >= GPU_NODES_MOST ||
	    !budget_take(nodes->budget, nodes->owner, sizeof(struct node)))
		return false;
	nodes->taken += sizeof(struct node);
	return true;
}

static struct node *node_get(struct gpu_nodes *nodes, uint64_t number)
{
	struct node *node = MAP_FIND(nodes->nodes, &number), *oldest = nodes->nodes;

	if (node || !number)
		return node;
	if (!nodes_have_room(nodes)) {
		if (!oldest)
			return NULL;
		MAP_DROP(nodes->nodes, oldest);
	}
	return MAP_ADD(nodes->nodes, number, &number);
}

void gpu_nodes_made(struct gpu_nodes *nodes, uint64_t number, const struct stack *stack)
{
	struct node *node = node_get(nodes, number);

	if (node)
		node->stack = stack;
}

void gpu_nodes_copied(struct gpu_nodes *nodes, uint64_t number, uint64_t original)
{
	struct node *node = node_get(nodes, number);

	if (node)
		node->original = original;
}

const struct stack *gpu_nodes_stack(struct gpu_nodes *nodes, uint64_t number)
{
	struct node *from = MAP_FIND(nodes->nodes, &number);

	for (int i = 0; i < COPIES_DEEP && from && from->original; i++)
		from = MAP_FIND(nodes->nodes, &from->original);
	return from && !from->original ? from->stack : NULL;
}
