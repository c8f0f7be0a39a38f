// SPDX-License-Identifier: MIT
/* Lists of nodes, and plans of graphs. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "graph.h"
#include "trace.h"

struct plan {
	unsigned int refs;
	uint32_t number;
	bool hooked;
	uint64_t made_ns;
	size_t n;
	uint64_t *origin; /* the number of each task's node */
	struct task task[];
};

bool node_list_copy(struct node_list *to, const CUgraphNode *node, size_t n)
{
	*to = (struct node_list){ 0 };
	if (n == 0)
		return true;
	to->node = malloc(n * sizeof(*to->node));
	if (!to->node)
		return false;
	memcpy(to->node, node, n * sizeof(*to->node));
	to->n = n;
	return true;
}

bool node_list_add(struct node_list *list, CUgraphNode node)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->node[i] == node)
			return true;
	}
	/* Room grows at powers of two. */
	if ((list->n & (list->n - 1)) == 0) {
		size_t room = list->n ? list->n * 2 : 1;
		CUgraphNode *nodes = realloc(list->node, room * sizeof(*nodes));
		if (!nodes)
			return false;
		list->node = nodes;
	}
	list->node[list->n++] = node;
	return true;
}

void node_list_clear(struct node_list *list)
{
	free(list->node);
	*list = (struct node_list){ 0 };
}

static bool node_is_ready(CUgraphNode node)
{
	for (size_t i = 0; i < node->after.n; i++) {
		if (!node->after.node[i]->placed)
			return false;
	}
	return !node->placed;
}

/* Places every node whose predecessors are placed, until none is left or none moves. */
struct plan *plan_new(CUgraph graph)
{
	static uint32_t last_number;
	const struct node_list *nodes = &graph->nodes;
	struct plan *plan = malloc(sizeof(*plan) + nodes->n * sizeof(plan->task[0]));
	if (!plan)
		return NULL;
	plan->refs = 1;
	plan->number = ++last_number;
	plan->hooked = trace_wanted();
	plan->made_ns = clock_now_ns();
	plan->n = 0;
	plan->origin = calloc(nodes->n + 1, sizeof(*plan->origin));
	if (!plan->origin) {
		free(plan);
		return NULL;
	}
	for (size_t i = 0; i < nodes->n; i++)
		nodes->node[i]->placed = false;
	size_t before;
	do {
		before = plan->n;
		for (size_t i = 0; i < nodes->n; i++) {
			if (!node_is_ready(nodes->node[i]))
				continue;
			nodes->node[i]->placed = true;
			plan->origin[plan->n] = nodes->node[i]->number;
			plan->task[plan->n++] = nodes->node[i]->task;
			task_get(&nodes->node[i]->task);
		}
	} while (plan->n > before);
	if (plan->n == nodes->n)
		return plan;
	plan_put(plan);
	return NULL;
}

void plan_get(struct plan *plan)
{
	plan->refs++;
}

void plan_put(struct plan *plan)
{
	if (--plan->refs > 0)
		return;
	for (size_t i = 0; i < plan->n; i++)
		task_put(&plan->task[i]);
	free(plan->origin);
	free(plan);
}

bool plan_like(const struct plan *one, const struct plan *other)
{
	if (one->n != other->n)
		return false;
	for (size_t i = 0; i < one->n; i++) {
		if (one->task[i].kind != other->task[i].kind)
			return false;
	}
	return true;
}

size_t plan_tasks(const struct plan *plan)
{
	return plan->n;
}

const struct task *plan_task(const struct plan *plan, size_t i)
{
	return &plan->task[i];
}

uint64_t plan_origin(const struct plan *plan, size_t i)
{
	return plan->origin[i];
}

uint32_t plan_number(const struct plan *plan)
{
	return plan->number;
}

bool plan_was_hooked(const struct plan *plan)
{
	return plan->hooked;
}

uint64_t plan_made_ns(const struct plan *plan)
{
	return plan->made_ns;
}

void plan_renumber(struct plan *plan, uint32_t number)
{
	plan->number = number;
}

CUresult plan_run(const struct plan *plan)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < plan->n && result == CUDA_SUCCESS; i++) {
		/* Memory that a capture allocated stays: the next launch gets the same. */
		if (plan->task[i].kind != TASK_FREE)
			result = task_run(&plan->task[i]);
	}
	return result;
}

uint64_t plan_duration_ns(const struct plan *plan)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < plan->n; i++)
		ns += task_duration_ns(&plan->task[i]);
	return ns;
}

bool plan_calls_program(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		if (task_calls_program(&plan->task[i]))
			return true;
	}
	return false;
}
