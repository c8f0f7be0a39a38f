// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_nodes.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/array.h"
#include "base/map.h"
#include "base/xalloc.h"

#define THREADS_MOST 256  /* that capture, at a time */
#define CALLS_MOST   4096 /* of a thread, until their nodes are told of; a power of two */
#define COPIES_DEEP  8    /* a graph is copied into another, that is instantiated, and so on */

struct node {
	uint64_t number;
	uint64_t original; /* it is a copy of that one; 0: of none */
	uint64_t time_ns;
	const struct stack *stack;   /* NULL: not known */
	struct node_thread *awaited; /* its call is of this thread; NULL: none is to come */
	TAILQ_ENTRY(node) waiting;   /* of the thread, in order of time */
	UT_hash_handle hh;           /* in the order in which they came */
};

struct node_call {
	uint64_t begin_ns, end_ns;
	const struct stack *stack;
};

struct node_thread {
	uint32_t tid;
	TAILQ_HEAD(node_waiting, node) waiting;
	struct node_call *calls; /* a circle of CALLS_MOST at most, in order of their ends */
	size_t n_calls, capacity;
	UT_hash_handle hh;
};

struct gpu_nodes {
	struct budget *budget;
	uint32_t owner;
	size_t taken;
	struct node *nodes;
	struct node_thread *threads;
};

struct gpu_nodes *gpu_nodes_new(struct budget *budget, uint32_t owner)
{
	struct gpu_nodes *nodes = xcalloc(1, sizeof(*nodes));

	nodes->budget = budget;
	nodes->owner = owner;
	return nodes;
}

static bool nodes_take(struct gpu_nodes *nodes, size_t bytes)
{
	if (!budget_take(nodes->budget, nodes->owner, bytes))
		return false;
	nodes->taken += bytes;
	return true;
}

static void nodes_give(struct gpu_nodes *nodes, size_t bytes)
{
	budget_give(nodes->budget, nodes->owner, bytes);
	nodes->taken -= bytes;
}

static void thread_free(struct node_thread *thread)
{
	free(thread->calls);
	free(thread);
}

void gpu_nodes_free(struct gpu_nodes *nodes)
{
	if (!nodes)
		return;
	MAP_FREE(nodes->nodes, free);
	MAP_FREE(nodes->threads, thread_free);
	budget_give(nodes->budget, nodes->owner, nodes->taken);
	free(nodes);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void node_settle(struct node *node, const struct stack *stack)
{
	TAILQ_REMOVE(&node->awaited->waiting, node, waiting);
	node->awaited = NULL;
	node->stack = stack;
}

/* The oldest makes room. */
static struct node_thread *thread_get(struct gpu_nodes *nodes, uint32_t tid)
{
	struct node_thread *thread = MAP_FIND(nodes->threads, &tid), *oldest = nodes->threads;

	if (thread)
		return thread;
	if (HASH_COUNT(nodes->threads) >= THREADS_MOST) {
		while (!TAILQ_EMPTY(&oldest->waiting))
			node_settle(TAILQ_FIRST(&oldest->waiting), NULL);
		nodes_give(nodes, sizeof(*oldest) + oldest->capacity * sizeof(*oldest->calls));
		HASH_DEL(nodes->threads, oldest);
		thread_free(oldest);
	}
	if (!nodes_take(nodes, sizeof(*thread)))
		return NULL;
	thread = MAP_ADD(nodes->threads, tid, &tid);
	TAILQ_INIT(&thread->waiting);
	return thread;
}

/* Its i-th call of those that are kept, from the oldest on. */
static struct node_call *thread_call(const struct node_thread *thread, size_t i)
{
	size_t kept = thread->n_calls < thread->capacity ? thread->n_calls : thread->capacity;

	return &thread->calls[(thread->n_calls - kept + i) & (thread->capacity - 1)];
}

/* Full circles are doubled while they may be; the calls in one stay where their numbers say. */
static bool thread_grow(struct gpu_nodes *nodes, struct node_thread *thread)
{
	size_t capacity = thread->capacity ? 2 * thread->capacity : 16;
	struct node_call *calls;

	if (thread->n_calls < thread->capacity || capacity > CALLS_MOST ||
	    !nodes_take(nodes, (capacity - thread->capacity) * sizeof(*calls)))
		return thread->capacity;
	calls = xcalloc(capacity, sizeof(*calls));
	for (size_t i = 0; i < thread->capacity; i++)
		calls[(thread->n_calls - thread->capacity + i) & (capacity - 1)] =
			*thread_call(thread, i);
	free(thread->calls);
	thread->calls = calls;
	thread->capacity = capacity;
	return true;
}

/* ---- calls and nodes ----------------------------------------------------------------------- */

void gpu_nodes_call(struct gpu_nodes *nodes, uint32_t tid, const struct call *call)
{
	struct node_thread *thread = thread_get(nodes, tid);
	struct node *node;

	if (!thread)
		return;
	if (thread_grow(nodes, thread)) {
		thread->calls[thread->n_calls++ & (thread->capacity - 1)] =
			(struct node_call){ call->begin_ns, call->end_ns, call->stack };
	}
	while ((node = TAILQ_FIRST(&thread->waiting)) && node->time_ns <= call->end_ns)
		node_settle(node, node->time_ns >= call->begin_ns ? call->stack : NULL);
}

/* Of a call that has come already; else it waits, where one can still come. */
static void node_place(struct node *node, struct node_thread *thread)
{
	size_t kept = thread->n_calls < thread->capacity ? thread->n_calls : thread->capacity;
	size_t at = ARRAY_BEFORE(kept, i, thread_call(thread, i)->end_ns < node->time_ns);
	const struct node *last = TAILQ_LAST(&thread->waiting, node_waiting);

	if (at < kept) {
		if (thread_call(thread, at)->begin_ns <= node->time_ns)
			node->stack = thread_call(thread, at)->stack;
		return;
	}
	if (last && last->time_ns > node->time_ns)
		return;
	node->awaited = thread;
	TAILQ_INSERT_TAIL(&thread->waiting, node, waiting);
}

static struct node *node_get(struct gpu_nodes *nodes, uint64_t number)
{
	struct node *node = MAP_FIND(nodes->nodes, &number), *oldest = nodes->nodes;

	if (node)
		return node;
	if (HASH_COUNT(nodes->nodes) >= GPU_NODES_MOST || !nodes_take(nodes, sizeof(*node))) {
		if (!oldest)
			return NULL;
		if (oldest->awaited)
			node_settle(oldest, NULL);
		MAP_DROP(nodes->nodes, oldest);
	}
	return MAP_ADD(nodes->nodes, number, &number);
}

void gpu_nodes_made(struct gpu_nodes *nodes, const struct agent_node *record, uint32_t tid)
{
	struct node *node = record->node ? node_get(nodes, record->node) : NULL;
	struct node_thread *thread;

	if (!node)
		return;
	if (node->awaited)
		node_settle(node, NULL);
	if (record->original) {
		node->original = record->original;
		node->stack = NULL;
		return;
	}
	node->time_ns = record->time_ns;
	node->stack = NULL;
	thread = tid ? thread_get(nodes, tid) : NULL;
	if (thread)
		node_place(node, thread);
}

const struct stack *gpu_nodes_stack(struct gpu_nodes *nodes, uint64_t number)
{
	struct node *node = MAP_FIND(nodes->nodes, &number), *from = node;

	for (int i = 0; i < COPIES_DEEP && from && !from->stack && from->original; i++)
		from = MAP_FIND(nodes->nodes, &from->original);
	if (!from)
		return NULL;
	node->stack = from->stack; /* the next time it is not looked for */
	return from->stack;
}
