// SPDX-License-Identifier: MIT
#include "task.h"

#include <string.h>

#include "block.h"
#include "clock.h"
#include "graph.h"
#include "peers.h"
#include "stream.h"

static void copy_run(const struct task *task)
{
	for (size_t z = 0; z < task->copy.depth; z++) {
		for (size_t y = 0; y < task->copy.height; y++) {
			char *to =
				task->copy.to + z * task->copy.to_slice + y * task->copy.to_pitch;
			const char *from = task->copy.from + z * task->copy.from_slice +
			                   y * task->copy.from_pitch;
			memmove(to, from, task->copy.width);
		}
	}
}

static void set_run(const struct task *task)
{
	for (size_t y = 0; y < task->set.height; y++) {
		char *row = task->set.to + y * task->set.pitch;
		if (task->set.element == 1) {
			memset(row, (int)task->set.value, task->set.width);
			continue;
		}
		for (size_t x = 0; x < task->set.width; x++)
			memcpy(row + x * task->set.element, &task->set.value, task->set.element);
	}
}

static void free_run(const struct task *task)
{
	struct block block;
	if (block_take(task->free.address, BLOCK_ASYNC | BLOCK_DEVICE, &block))
		block_release(&block);
}

CUresult task_run(const struct task *task)
{
	switch (task->kind) {
	case TASK_KERNEL:
		if (peers_wanted(task->kernel.name))
			peers_meet();
		if (!task->kernel.known)
			return CUDA_SUCCESS;
		return task->kernel.known->run(task->kernel.params, task->kernel.threads);
	case TASK_COPY:
		copy_run(task);
		return CUDA_SUCCESS;
	case TASK_SET:
		set_run(task);
		return CUDA_SUCCESS;
	case TASK_HOST:
		task->host.call(task->host.data);
		return CUDA_SUCCESS;
	case TASK_CALLBACK:
		task->callback.call(task->callback.stream, CUDA_SUCCESS, task->callback.data);
		return CUDA_SUCCESS;
	case TASK_FREE:
		free_run(task);
		return CUDA_SUCCESS;
	case TASK_GRAPH:
		return plan_run(task->plan);
	default:
		return CUDA_SUCCESS;
	}
}

uint64_t task_duration_ns(const struct task *task)
{
	switch (task->kind) {
	case TASK_KERNEL:
		return clock_kernel_ns(task->kernel.threads);
	case TASK_COPY:
		return clock_copy_ns(task->copy.width * task->copy.height * task->copy.depth,
		                     task->copy.over_pcie);
	case TASK_SET:
		return clock_copy_ns(task->set.width * task->set.height * task->set.element, false);
	case TASK_GRAPH:
		return plan_duration_ns(task->plan);
	default:
		return 0;
	}
}

bool task_is_trivial(const struct task *task)
{
	return task->kind == TASK_EMPTY || task->kind == TASK_ALLOC || task->kind == TASK_EVENT ||
	       (task->kind == TASK_KERNEL && !task->kernel.known &&
	        !peers_wanted(task->kernel.name));
}

bool task_calls_program(const struct task *task)
{
	if (task->kind == TASK_GRAPH)
		return plan_calls_program(task->plan);
	return task->kind == TASK_HOST || task->kind == TASK_CALLBACK;
}

void task_get(const struct task *task)
{
	if (task->kind == TASK_WAIT)
		stream_get(task->wait.stream);
	else if (task->kind == TASK_EVENT)
		event_get(task->event.event);
	else if (task->kind == TASK_GRAPH)
		plan_get(task->plan);
}

void task_put(const struct task *task)
{
	if (task->kind == TASK_WAIT)
		stream_put(task->wait.stream);
	else if (task->kind == TASK_EVENT)
		event_put(task->event.event);
	else if (task->kind == TASK_GRAPH)
		plan_put(task->plan);
}

CUgraphNodeType task_node_type(const struct task *task)
{
	switch (task->kind) {
	case TASK_KERNEL:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	case TASK_COPY:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case TASK_SET:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	case TASK_HOST:
		return CU_GRAPH_NODE_TYPE_HOST;
	case TASK_GRAPH:
		return CU_GRAPH_NODE_TYPE_GRAPH;
	case TASK_ALLOC:
		return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	case TASK_FREE:
		return CU_GRAPH_NODE_TYPE_MEM_FREE;
	default:
		return CU_GRAPH_NODE_TYPE_EMPTY;
	}
}
