// SPDX-License-Identifier: MIT
/*
 * capture [LAUNCHES] [GRAPHS]: records launches into a graph, on one stream and, through events, on
 * a second one; meanwhile it launches as usual on a third. The graph then runs GRAPHS times.
 * Launches that were captured are counted as such and not as launches; so is every graph launch.
 */
#include <stdlib.h>

#include "gpu.h"

#define ELEMENTS 1024

static struct gpu gpu;

static void launch_add(CUstream stream, CUdeviceptr *vector, enum group group)
{
	int n = ELEMENTS;
	void *params[] = { &vector[0], &vector[1], &vector[2], &n };
	MUST(cuLaunchKernel, gpu.add, ELEMENTS / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL);
	count(group, KERNEL_ADD, 1);
}

static void launch_captured(CUstream stream)
{
	MUST(cuLaunchKernel, gpu.nothing, 2, 1, 1, 64, 1, 1, 0, stream, NULL, NULL);
	count(CAPTURED, KERNEL_NOTHING, 1);
}

static void fill(CUdeviceptr address, float value)
{
	float values[ELEMENTS];
	for (int i = 0; i < ELEMENTS; i++)
		values[i] = value;
	gpu_to_device(address, values, sizeof(values));
}

static void expect(CUdeviceptr address, float value)
{
	float values[ELEMENTS];
	gpu_from_device(values, address, sizeof(values));
	for (int i = 0; i < ELEMENTS; i++) {
		if (values[i] != value)
			sample_die("[%d] is %g, not %g", i, (double)values[i], (double)value);
	}
}

/* first: add, fork; second: launches; first: launches, join */
static CUgraph record(CUstream first, CUstream second, CUstream other, CUdeviceptr *vector,
		      int launches)
{
	CUgraph graph;
	CUevent fork_event, join_event;
	MUST(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
	MUST(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
	MUST(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	launch_add(first, vector, CAPTURED);
	MUST(cuEventRecord, fork_event, first);
	MUST(cuStreamWaitEvent, second, fork_event, 0);
	for (int i = 0; i < launches; i++) {
		launch_captured(first);
		launch_captured(second);
		gpu_launch(&gpu, 3, other);
	}
	MUST(cuEventRecord, join_event, second);
	MUST(cuStreamWaitEvent, first, join_event, 0);
	MUST(cuStreamEndCapture, first, &graph);
	MUST(cuEventDestroy_v2, fork_event);
	MUST(cuEventDestroy_v2, join_event);
	return graph;
}

int main(int argc, char **argv)
{
	int launches = argc > 1 ? atoi(argv[1]) : 10;
	int graphs = argc > 2 ? atoi(argv[2]) : 3;
	CUstream stream[3];
	CUdeviceptr vector[3];
	CUgraphExec exec;
	size_t nodes = 0;
	gpu_open(&gpu);
	for (int i = 0; i < 3; i++) {
		MUST(cuStreamCreate, &stream[i], CU_STREAM_NON_BLOCKING);
		vector[i] = gpu_alloc(ELEMENTS * sizeof(float));
		fill(vector[i], 1 << i); /* 1, 2 and, until it is their sum, 4 */
	}
	CUgraph graph = record(stream[0], stream[1], stream[2], vector, launches);
	MUST(cuGraphGetNodes, graph, NULL, &nodes);
	count(NUMBERS, "graph_nodes", nodes);
	expect(vector[2], 4); /* recorded, not run */
	MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
	for (int i = 0; i < graphs; i++) {
		MUST(cuGraphLaunch, exec, stream[0]);
		count(NUMBERS, "graph_launches", 1);
	}
	MUST(cuStreamSynchronize, stream[0]);
	expect(vector[2], graphs ? 3 : 4);
	launch_add(stream[0], vector, LAUNCHES); /* the stream is an ordinary one again */
	MUST(cuStreamSynchronize, stream[0]);
	MUST(cuGraphExecDestroy, exec);
	MUST(cuGraphDestroy, graph);
	for (int i = 0; i < 3; i++) {
		gpu_free(vector[i]);
		MUST(cuStreamDestroy_v2, stream[i]);
	}
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
