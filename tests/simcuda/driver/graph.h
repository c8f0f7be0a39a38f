/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes that hold tasks, and plans. A plan is what instantiation makes of a graph: its
 * tasks in an order that respects the edges. It never changes, and lives as long as a launch needs
 * it.
 */
#ifndef SIMCUDA_DRIVER_GRAPH_H
#define SIMCUDA_DRIVER_GRAPH_H

#include "stream.h"

struct CUgraphNode_st {
	struct handle handle;
	CUgraph graph;
	uint64_t number; /* CUPTI's: no other has it */
	struct task task;
	struct node_list after;
	CUgraphNode clone; /* while the graph is cloned */
	bool placed;       /* while it is planned */
};

struct CUgraph_st {
	struct handle handle;
	struct node_list nodes; /* in the order of their making */
};

struct plan;

CUgraph graph_new(void);

/* All of the following with sim_lock held, but for plan_run, which must not. */
void graph_free(CUgraph graph);
CUgraphNode graph_add(CUgraph graph, const struct task *task, const CUgraphNode *after, size_t n);
CUgraphNode graph_copy(CUgraph graph, const struct CUgraphNode_st *node); /* without edges */
bool graph_node_has_dependents(CUgraphNode node);

struct plan *plan_new(CUgraph graph); /* NULL: the edges make a circle, or no memory */
void plan_get(struct plan *plan);
void plan_put(struct plan *plan);
bool plan_like(const struct plan *one, const struct plan *other); /* same kinds of tasks */
size_t plan_tasks(const struct plan *plan);
const struct task *plan_task(const struct plan *plan, size_t i);
uint64_t plan_origin(const struct plan *plan, size_t i); /* the number of the node it was */
void plan_renumber(struct plan *plan, uint32_t number); /* an update keeps it */
bool plan_was_hooked(const struct plan *plan);          /* a profiler was there when it was made */
uint64_t plan_made_ns(const struct plan *plan);         /* of CLOCK_MONOTONIC */
uint32_t plan_number(const struct plan *plan);          /* of the executable graph, for records */

CUresult plan_run(const struct plan *plan);
uint64_t plan_duration_ns(const struct plan *plan);
bool plan_calls_program(const struct plan *plan);

#endif
