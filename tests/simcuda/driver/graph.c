// SPDX-License-Identifier: MIT
#include "graph.h"

#include <stdlib.h>

#include "capture.h"
#include "copy.h"
#include "launch.h"
#include "trace.h"

struct CUgraphExec_st {
	struct handle handle;
	struct plan *plan;
	cuuint64_t flags;
};

CUgraph graph_new(void)
{
	return handle_new(HANDLE_GRAPH, sizeof(struct CUgraph_st));
}

static void node_free(CUgraphNode node)
{
	task_put(&node->task);
	node_list_clear(&node->after);
	handle_free(node, HANDLE_NODE);
}

void graph_free(CUgraph graph)
{
	handle_close(graph);
	for (size_t i = 0; i < graph->nodes.n; i++)
		node_free(graph->nodes.node[i]);
	node_list_clear(&graph->nodes);
	handle_free(graph, HANDLE_GRAPH);
}

static CUgraphNode add(CUgraph graph, const struct task *task, const CUgraphNode *after, size_t n,
                       uint64_t original)
{
	static uint64_t last_number;
	CUgraphNode node = handle_new(HANDLE_NODE, sizeof(*node));
	if (!node)
		return NULL;
	node->graph = graph;
	node->number = ++last_number;
	node->task = *task;
	if (node_list_copy(&node->after, after, n) && node_list_add(&graph->nodes, node)) {
		trace_node_made(node->number, original);
		return node;
	}
	node_list_clear(&node->after);
	handle_free(node, HANDLE_NODE);
	return NULL;
}

CUgraphNode graph_add(CUgraph graph, const struct task *task, const CUgraphNode *after, size_t n)
{
	return add(graph, task, after, n, 0);
}

CUgraphNode graph_copy(CUgraph graph, const struct CUgraphNode_st *node)
{
	return add(graph, &node->task, NULL, 0, node->number);
}

bool graph_node_has_dependents(CUgraphNode node)
{
	const struct node_list *nodes = &node->graph->nodes;
	for (size_t i = 0; i < nodes->n; i++) {
		const struct node_list *after = &nodes->node[i]->after;
		for (size_t j = 0; j < after->n; j++) {
			if (after->node[j] == node)
				return true;
		}
	}
	return false;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Adds a node by a program's handles; takes over the references in `task`. */
static CUresult add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                         const struct task *task)
{
	if (!node || (n && !after))
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < n; i++) {
		if (!handle_is(after[i], HANDLE_NODE) || after[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	sim_enter();
	*node = graph_add(graph, task, after, n);
	sim_leave();
	return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_empty(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n)
{
	struct task task = { .kind = TASK_EMPTY };
	return add_node(node, graph, after, n, &task);
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                           const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	struct launch launch = {
		.function = params->func ? params->func : (CUfunction)params->kern,
		.grid = { params->gridDimX, params->gridDimY, params->gridDimZ },
		.block = { params->blockDimX, params->blockDimY, params->blockDimZ },
		.params = params->kernelParams,
		.extra = params->extra,
	};
	struct task task;
	CUresult result = launch_task(&launch, &task);
	return result == CUDA_SUCCESS ? add_node(node, graph, after, n, &task) : result;
}

static CUresult add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                         const CUDA_MEMCPY3D *copy)
{
	struct task task;
	CUresult result = copy_task_3d(copy, &task);
	return result == CUDA_SUCCESS ? add_node(node, graph, after, n, &task) : result;
}

static CUresult add_set(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                        const CUDA_MEMSET_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	struct task task;
	CUresult result = set_task(params->dst, params->pitch, params->value, params->elementSize,
	                           params->width, params->height, &task);
	return result == CUDA_SUCCESS ? add_node(node, graph, after, n, &task) : result;
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                         const CUDA_HOST_NODE_PARAMS *params)
{
	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	struct task task = { .kind = TASK_HOST, .host = { params->fn, params->userData } };
	return add_node(node, graph, after, n, &task);
}

static CUresult add_child(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                          CUgraph child)
{
	if (!handle_is(child, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	struct task task = { .kind = TASK_GRAPH, .plan = plan_new(child) };
	sim_leave();
	if (!task.plan)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = add_node(node, graph, after, n, &task);
	if (result != CUDA_SUCCESS) {
		sim_enter();
		task_put(&task);
		sim_leave();
	}
	return result;
}

static CUresult add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	if (!handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	if (n && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (!handle_is(from[i], HANDLE_NODE) || !handle_is(to[i], HANDLE_NODE) ||
		    from[i] == to[i])
			return CUDA_ERROR_INVALID_VALUE;
	}
	CUresult result = CUDA_SUCCESS;
	sim_enter();
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		if (!node_list_add(&to[i]->after, from[i]))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_leave();
	return result;
}

static CUresult graph_create(CUgraph *graph)
{
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = graph_new();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult graph_destroy(CUgraph graph)
{
	if (!handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	graph_free(graph);
	sim_leave();
	return CUDA_SUCCESS;
}

static bool clone_nodes(CUgraph clone, CUgraph graph)
{
	for (size_t i = 0; i < graph->nodes.n; i++) {
		CUgraphNode node = graph->nodes.node[i];
		node->clone = graph_copy(clone, node);
		if (!node->clone)
			return false;
		task_get(&node->task);
	}
	for (size_t i = 0; i < graph->nodes.n; i++) {
		CUgraphNode node = graph->nodes.node[i];
		for (size_t j = 0; j < node->after.n; j++) {
			if (!node_list_add(&node->clone->after, node->after.node[j]->clone))
				return false;
		}
	}
	return true;
}

static CUresult graph_clone(CUgraph *clone, CUgraph graph)
{
	if (!clone)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	*clone = graph_new();
	if (!*clone)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_enter();
	bool done = clone_nodes(*clone, graph);
	if (!done)
		graph_free(*clone);
	sim_leave();
	return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The nodes, or those without predecessors: into the caller's room, or only their number. */
static CUresult graph_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
	if (!handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	size_t found = 0;
	for (size_t i = 0; i < graph->nodes.n; i++) {
		CUgraphNode node = graph->nodes.node[i];
		if (roots && node->after.n)
			continue;
		if (nodes && found < *count)
			nodes[found] = node;
		found++;
	}
	sim_leave();
	for (size_t i = found; nodes && i < *count; i++)
		nodes[i] = NULL;
	*count = nodes && found > *count ? *count : found;
	return CUDA_SUCCESS;
}

static CUresult node_type(CUgraphNode node, CUgraphNodeType *type)
{
	if (!handle_is(node, HANDLE_NODE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = task_node_type(&node->task);
	return CUDA_SUCCESS;
}

/* ---- running --------------------------------------------------------------------------------- */

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, cuuint64_t flags)
{
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	struct plan *plan = plan_new(graph);
	sim_leave();
	if (!plan)
		return CUDA_ERROR_INVALID_VALUE;
	*exec = handle_new(HANDLE_EXEC, sizeof(**exec));
	if (!*exec) {
		sim_enter();
		plan_put(plan);
		sim_leave();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*exec)->plan = plan;
	(*exec)->flags = flags;
	trace_instantiated();
	trace_planned(plan);
	return CUDA_SUCCESS;
}

static CUresult instantiate_params(CUgraphExec *exec, CUgraph graph,
                                   CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = instantiate(exec, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
	                                            : CUDA_GRAPH_INSTANTIATE_ERROR;
	return result;
}

static CUresult exec_destroy(CUgraphExec exec)
{
	if (!handle_is(exec, HANDLE_EXEC))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	plan_put(exec->plan);
	handle_free(exec, HANDLE_EXEC);
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult exec_launch(CUgraphExec exec, CUstream handle, enum null_stream null)
{
	CUstream stream;
	if (!handle_is(exec, HANDLE_EXEC))
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	sim_enter();
	struct task task = { .kind = TASK_GRAPH, .plan = exec->plan };
	task_get(&task);
	sim_leave();
	return stream_submit(stream, &task, SUBMIT_ASYNC);
}

static CUresult exec_upload(CUgraphExec exec, CUstream handle, enum null_stream null)
{
	CUstream stream;
	return handle_is(exec, HANDLE_EXEC) ? stream_find(handle, null, &stream)
	                                    : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult exec_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult *why)
{
	if (!why)
		return CUDA_ERROR_INVALID_VALUE;
	*why = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (!handle_is(exec, HANDLE_EXEC) || !handle_is(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	struct plan *plan = plan_new(graph);
	bool fits = plan && plan_like(plan, exec->plan);
	if (fits) {
		plan_renumber(plan, plan_number(exec->plan));
		plan_put(exec->plan);
		exec->plan = plan;
		trace_planned(plan);
	} else if (plan) {
		plan_put(plan);
	}
	sim_leave();
	*why = fits ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	return fits ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult exec_update_info(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){ 0 };
	return exec_update(exec, graph, &info->result);
}

static CUresult exec_flags(CUgraphExec exec, cuuint64_t *flags)
{
	if (!handle_is(exec, HANDLE_EXEC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

API(cuGraphCreate, (CUgraph *, graph, unsigned int, flags), graph_create(graph))
API(cuGraphDestroy, (CUgraph, graph), graph_destroy(graph))
API(cuGraphClone, (CUgraph *, clone, CUgraph, graph), graph_clone(clone, graph))
API(cuGraphGetNodes, (CUgraph, graph, CUgraphNode *, nodes, size_t *, count),
    graph_nodes(graph, nodes, count, false))
API(cuGraphGetRootNodes, (CUgraph, graph, CUgraphNode *, nodes, size_t *, count),
    graph_nodes(graph, nodes, count, true))
API(cuGraphNodeGetType, (CUgraphNode, node, CUgraphNodeType *, type), node_type(node, type))
API(cuGraphAddEmptyNode,
    (CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, after, size_t, n),
    add_empty(node, graph, after, n))
API(cuGraphAddKernelNode_v2,
    (CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, after, size_t, n,
     const CUDA_KERNEL_NODE_PARAMS *, params),
    add_kernel(node, graph, after, n, params))
API(cuGraphAddMemcpyNode,
    (CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, after, size_t, n,
     const CUDA_MEMCPY3D *, copy, CUcontext, ctx),
    add_copy(node, graph, after, n, copy))
API(cuGraphAddMemsetNode,
    (CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, after, size_t, n,
     const CUDA_MEMSET_NODE_PARAMS *, params, CUcontext, ctx),
    add_set(node, graph, after, n, params))
API(cuGraphAddHostNode,
    (CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, after, size_t, n,
     const CUDA_HOST_NODE_PARAMS *, params),
    add_host(node, graph, after, n, params))
API(cuGraphAddChildGraphNode,
    (CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, after, size_t, n, CUgraph, child),
    add_child(node, graph, after, n, child))
API(cuGraphAddDependencies,
    (CUgraph, graph, const CUgraphNode *, from, const CUgraphNode *, to, size_t, n),
    add_edges(graph, from, to, n))
API(cuGraphAddDependencies_v2,
    (CUgraph, graph, const CUgraphNode *, from, const CUgraphNode *, to, const CUgraphEdgeData *,
     edges, size_t, n),
    add_edges(graph, from, to, n))
API(cuGraphInstantiate,
    (CUgraphExec *, exec, CUgraph, graph, CUgraphNode *, bad, char *, log, size_t, room),
    instantiate(exec, graph, 0))
API(cuGraphInstantiate_v2,
    (CUgraphExec *, exec, CUgraph, graph, CUgraphNode *, bad, char *, log, size_t, room),
    instantiate(exec, graph, 0))
API(cuGraphInstantiateWithFlags, (CUgraphExec *, exec, CUgraph, graph, unsigned long long, flags),
    instantiate(exec, graph, flags))
API_PTSZ(cuGraphInstantiateWithParams,
         (CUgraphExec *, exec, CUgraph, graph, CUDA_GRAPH_INSTANTIATE_PARAMS *, params),
         instantiate_params(exec, graph, params))
API(cuGraphExecDestroy, (CUgraphExec, exec), exec_destroy(exec))
API(cuGraphExecGetFlags, (CUgraphExec, exec, cuuint64_t *, flags), exec_flags(exec, flags))
API(cuGraphExecUpdate,
    (CUgraphExec, exec, CUgraph, graph, CUgraphNode *, bad, CUgraphExecUpdateResult *, why),
    exec_update(exec, graph, why))
API(cuGraphExecUpdate_v2, (CUgraphExec, exec, CUgraph, graph, CUgraphExecUpdateResultInfo *, info),
    exec_update_info(exec, graph, info))
API_PTSZ(cuGraphLaunch, (CUgraphExec, exec, CUstream, stream), exec_launch(exec, stream, null))
API_PTSZ(cuGraphUpload, (CUgraphExec, exec, CUstream, stream), exec_upload(exec, stream, null))
