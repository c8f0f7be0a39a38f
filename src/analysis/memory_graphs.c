// SPDX-License-Identifier: MIT
/*
 * Memory that graphs allocate: it exists when they run. Which stream a call was recorded on is not
 * followed here: what was recorded since the last end of a capture is of the capture that ends.
 */
#include <stdlib.h>

#include "analysis/memory_inside.h"
#include "base/map.h"
#include "base/xalloc.h"

/* ---- memory vmm ---------------------------------------------------------------------------- */

/* Memory that is mapped to addresses: it lives as long as it is, whatever became of its handle. */

static struct allocation *find_handle(struct process_memory *process, uint64_t handle)
{
	const struct memory_key key = { handle, SPACE_HANDLE };
	struct allocation *a = memory_find(process, &key);

	return a && !a->late ? a : NULL;
}

/* The memory of the addresses is held once less, unless its handle is that of other memory now. */
static uint64_t forget_mapping(struct memory *memory, struct process_memory *process,
                               struct allocation *mapping, uint64_t now_ns)
{
	struct allocation *a = find_handle(process, mapping->handle);
	bool same = a && a->about.time_ns == mapping->made_ns;

	memory_drop(memory, process, mapping);
	return same ? memory_give_back(memory, process, a, now_ns) : 0;
}

/* What was mapped there before was unmapped by a call that is not over yet, or was not seen. */
static uint64_t vmm_map(struct memory *memory, struct process_memory *process,
                        const struct event *event)
{
	const struct memory_allocation wanted = memory_about(event, MEMORY_NONE);
	const struct memory_key key = { wanted.address, SPACE_MAPPED };
	struct allocation *of = find_handle(process, event->call->args.source);
	struct allocation *old = memory_find(process, &key), *mapping;
	uint64_t freed = 0;

	if (of)
		of->held++;
	if (old)
		freed = forget_mapping(memory, process, old, event->time_ns);
	if (!of)
		return freed; /* not known: nothing is, of what it lives for */
	if (!wanted.bytes || memory->n_allocations >= ALLOCATIONS_MAX) {
		of->held--;
		return freed;
	}
	mapping = memory_keep(memory, process, &key, &wanted);
	mapping->handle = of->key.address;
	mapping->made_ns = of->about.time_ns;
	return freed;
}

/* All mappings from its address on, one after the other, that were there when it began. */
static uint64_t vmm_unmap(struct memory *memory, struct process_memory *process,
                          const struct event *event)
{
	uint64_t address = event->call->args.address, at = 0, freed = 0;

	while (at < event->call->args.bytes) {
		const struct memory_key key = { address + at, SPACE_MAPPED };
		struct allocation *mapping = memory_find(process, &key);

		if (!mapping || mapping->about.time_ns > event->call->begin_ns)
			break;
		if (__builtin_add_overflow(at, mapping->about.bytes, &at))
			at = UINT64_MAX;
		freed += forget_mapping(memory, process, mapping, event->time_ns);
	}
	return freed;
}

/* Of memory of another process nothing is known but that its handle is to be given back. */
static void vmm_retain(struct memory *memory, struct process_memory *process,
                       const struct event *event)
{
	const struct memory_allocation wanted = memory_about(event, MEMORY_VMM);
	const struct memory_key key = { wanted.address, SPACE_HANDLE };
	struct allocation *a = memory_find(process, &key);

	if (a && !a->late) {
		a->held++;
		return;
	}
	if (a)
		memory_drop(memory, process, a);
	if (wanted.address && memory->n_allocations < ALLOCATIONS_MAX)
		memory_keep(memory, process, &key, &wanted);
}

uint64_t memory_follow_vmm(struct memory *memory, const struct event *event)
{
	struct process_memory *process = memory_find_process(memory, event->process->id);

	switch (event->call->op) {
	case OP_MAP:
		return vmm_map(memory, process, event);
	case OP_UNMAP:
		return vmm_unmap(memory, process, event);
	case OP_RETAIN:
		vmm_retain(memory, memory_the_process(memory, event->process), event);
		return 0;
	default:
		return 0;
	}
}

/* ---- memory graphs ------------------------------------------------------------------------- */

/* Of all graphs and of what was instantiated of them, and these themselves: 96 bytes at most. */
#define NODES_MAX 65536

/*
 * A launch of a graph, a few bytes of a trace, goes through all of its nodes, in some 200 ns each.
 * So each event, of whichever kind and process, is worth so many nodes, as at the begin is what
 * WORK_FIRST says, of all processes together. One user but root has three quarters of that. What is
 * beyond is counted as not followed.
 */
#define WORK_FIRST 4000000
#define WORK_EACH  8

struct graph_node {
	uint64_t address, bytes; /* bytes 0: it frees */
	struct graph_node *next;
};

/* A graph, or what was instantiated of one: by its handle. */
struct graph {
	uint64_t handle;
	struct graph_node *first, **end;
	size_t n;                  /* nodes */
	uint64_t allocates, bytes; /* those of them that do */
	bool cut;                  /* not all of them are here */
	UT_hash_handle hh;
};

struct memory_graphs {
	struct graph recorded; /* that no capture has ended of */
	struct graph *graphs, *execs;
};

static struct memory_graphs *graphs_of(struct memory *memory, const struct event *event)
{
	struct process_memory *process = memory_the_process(memory, event->process);

	if (!process->graphs) {
		process->graphs = xcalloc(1, sizeof(*process->graphs));
		process->graphs->recorded.end = &process->graphs->recorded.first;
	}
	return process->graphs;
}

static void add_node(struct memory *memory, struct graph *graph, uint64_t address, uint64_t bytes)
{
	struct graph_node *node;

	if (!graph || !address)
		return;
	graph->n++;
	graph->allocates += bytes != 0;
	graph->bytes += bytes;
	graph->cut |= memory->n_graph_nodes >= NODES_MAX;
	if (graph->cut)
		return;
	memory->n_graph_nodes++;
	node = xcalloc(1, sizeof(*node));
	node->address = address;
	node->bytes = bytes;
	*graph->end = node;
	graph->end = &node->next;
}

static void empty(struct memory *memory, struct graph *graph)
{
	struct graph_node *node;

	while ((node = graph->first)) {
		graph->first = node->next;
		free(node);
		memory->n_graph_nodes--;
	}
	graph->end = &graph->first;
	graph->n = 0;
	graph->allocates = graph->bytes = 0;
	graph->cut = false;
}

/* Makes an empty one have what the other has, which is empty then. */
static void take_nodes(struct graph *graph, struct graph *from)
{
	graph->first = from->first;
	graph->end = from->first ? from->end : &graph->first;
	graph->n = from->n;
	graph->allocates = from->allocates;
	graph->bytes = from->bytes;
	graph->cut = from->cut;
	from->first = NULL;
}

/* Whether there may be so much more work for a process. */
static bool may_work(struct memory *memory, const struct process *process, size_t nodes)
{
	struct quota *work = &memory->graph_work;

	work->all.most = WORK_FIRST + WORK_EACH * memory->n_events;
	work->user.most = work->all.most / 4 * 3;
	work->others.most = work->all.most / 8 * 7; /* the rest is root's */
	return !quota_take(work, process->person, 0, nodes);
}

static void drop_all(struct memory *memory, struct graph **all)
{
	struct graph *graph, *next;

	HASH_ITER (hh, *all, graph, next) {
		empty(memory, graph);
		MAP_DROP(*all, graph);
		memory->n_graph_nodes--;
	}
}

static struct graph *find_graph(struct graph *all, uint64_t handle)
{
	return MAP_FIND(all, &handle);
}

/* NULL: there is no room for one more. */
static struct graph *the_graph(struct memory *memory, struct graph **all, uint64_t handle)
{
	struct graph *graph = find_graph(*all, handle);

	if (graph || memory->n_graph_nodes >= NODES_MAX)
		return graph;
	memory->n_graph_nodes++;
	graph = MAP_ADD(*all, handle, &handle);
	graph->end = &graph->first;
	return graph;
}

void memory_free_graphs(struct memory *memory, struct process_memory *process)
{
	if (!process->graphs)
		return;
	empty(memory, &process->graphs->recorded);
	drop_all(memory, &process->graphs->graphs);
	drop_all(memory, &process->graphs->execs);
	free(process->graphs);
	process->graphs = NULL;
}

void memory_follow_captured(struct memory *memory, const struct event *event)
{
	const struct call *call = event->call;

	if (call->op == OP_ALLOC && call->args.bytes)
		add_node(memory, &graphs_of(memory, event)->recorded, call->args.address,
		         call->args.bytes);
	else if (call->op == OP_FREE)
		add_node(memory, &graphs_of(memory, event)->recorded, call->args.address, 0);
}

/* There is no room for it, so when it runs is not known: it is counted as if it did so once. */
static void leave_out(struct memory *memory, const struct event *event, const struct graph *graph)
{
	struct memory_allocation made = memory_about(event, MEMORY_ASYNC);

	made.bytes = graph->bytes;
	if (graph->allocates)
		memory_add_untracked(memory, &made, graph->allocates);
}

/* A graph's handle can be given out again: a new one has what is recorded now alone. */
static void end_capture(struct memory *memory, struct memory_graphs *graphs,
                        const struct event *event)
{
	uint64_t handle = event->call->args.source;
	struct graph *recorded = &graphs->recorded;
	struct graph *graph = recorded->n ? the_graph(memory, &graphs->graphs, handle)
	                                  : find_graph(graphs->graphs, handle);

	if (!graph) {
		leave_out(memory, event, recorded);
		empty(memory, recorded);
		return;
	}
	empty(memory, graph);
	take_nodes(graph, recorded);
	empty(memory, recorded);
}

static void instantiate(struct memory *memory, struct memory_graphs *graphs,
                        const struct event *event)
{
	uint64_t handle = event->call->args.handle;
	const struct graph *graph = find_graph(graphs->graphs, event->call->args.source);
	struct graph *exec = graph ? the_graph(memory, &graphs->execs, handle)
	                           : find_graph(graphs->execs, handle);

	if (exec)
		empty(memory, exec);
	else if (graph)
		leave_out(memory, event, graph);
	if (graph && exec && (graph->cut || !may_work(memory, event->process, graph->n))) {
		exec->n = graph->n;
		exec->allocates = graph->allocates;
		exec->bytes = graph->bytes;
		exec->cut = true;
		return;
	}
	for (const struct graph_node *node = graph ? graph->first : NULL; node; node = node->next)
		add_node(memory, exec, node->address, node->bytes);
}

/* What it left from the launch before is freed by this one, or the driver would have refused it. */
static void launch(struct memory *memory, struct process_memory *process, const struct event *event)
{
	const struct graph *exec = find_graph(process->graphs->execs, event->call->args.handle);
	struct memory_allocation made = memory_about(event, MEMORY_ASYNC);

	if (exec && (exec->cut || !may_work(memory, event->process, exec->n))) {
		made.bytes = exec->bytes;
		memory_add_untracked(memory, &made, exec->allocates);
		return;
	}
	for (const struct graph_node *node = exec ? exec->first : NULL; node; node = node->next) {
		const struct memory_key key = { node->address, SPACE_ADDRESS };
		struct allocation *a = memory_find(process, &key);

		if (a && !a->late)
			memory_give_back(memory, process, a, event->time_ns);
		if (!node->bytes)
			continue;
		made.address = node->address;
		made.bytes = node->bytes;
		memory_add(memory, &made);
	}
}

static void add_to_graph(struct memory *memory, const struct event *event)
{
	const struct api_call *args = &event->call->args;
	struct graph *graph = the_graph(memory, &graphs_of(memory, event)->graphs, args->source);
	uint64_t bytes = event->call->op == OP_GRAPH_ALLOC ? args->bytes : 0;

	if (graph)
		add_node(memory, graph, args->address, bytes);
	else if (args->address)
		leave_out(memory, event,
		          &(struct graph){ .allocates = bytes != 0, .bytes = bytes });
}

void memory_follow_graph(struct memory *memory, const struct event *event)
{
	struct process_memory *process = memory_find_process(memory, event->process->id);
	struct memory_graphs *graphs = process ? process->graphs : NULL;

	if (event->call->op == OP_GRAPH_ALLOC || event->call->op == OP_GRAPH_FREE)
		add_to_graph(memory, event);
	else if (graphs && event->call->op == OP_CAPTURE_END)
		end_capture(memory, graphs, event);
	else if (graphs && event->call->op == OP_INSTANTIATE)
		instantiate(memory, graphs, event);
	else if (graphs && event->call->op == OP_GRAPH_LAUNCH)
		launch(memory, process, event);
}
