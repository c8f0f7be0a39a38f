// SPDX-License-Identifier: MIT
/*
 * capture [LAUNCHES]: launches recorded into a graph, on the stream that is captured and on one
 * that the capture spreads to by an event, among launches that run; then the graph is launched.
 */
#include "sample.h"

static const struct shape shape = { { 4, 1, 1 }, { 64, 1, 1 }, 32 };

static void launch_captured(CUfunction kernel, const char *name, CUstream stream)
{
	CUdeviceptr pointer = 0;
	int n = 0;
	void *args[] = { &pointer, &n };

	DRIVER(cuLaunchKernel, kernel, 4, 1, 1, 64, 1, 1, 32, stream, args, NULL);
	count_launches("captured_launches", 1, name, shape, stream);
}

/* Fork the capture from one stream to the other and join it again. */
static void capture_two_streams(struct kernels *k, CUstream first, CUstream second, CUevent event)
{
	CUgraph graph;
	CUgraphExec exec;

	DRIVER(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_RELAXED);
	launch_captured(k->tick, TICK_NAME, first);
	DRIVER(cuEventRecord, event, first);
	DRIVER(cuStreamWaitEvent, second, event, 0);
	launch_captured(k->block, BLOCK_NAME, second);
	launch_captured(k->block, BLOCK_NAME, second);
	DRIVER(cuEventRecord, event, second);
	DRIVER(cuStreamWaitEvent, first, event, 0);
	sample_launch(k->plain, PLAIN, shape, NULL); /* not captured: another stream, relaxed */
	DRIVER(cuStreamEndCapture, first, &graph);
	/* both streams run again */
	sample_launch(k->tick, TICK_NAME, shape, first);
	sample_launch(k->tick, TICK_NAME, shape, second);
	DRIVER(cuGraphInstantiateWithFlags, &exec, graph, 0);
	DRIVER(cuGraphLaunch, exec, first);
	DRIVER(cuGraphLaunch, exec, second);
	count("graph_launches", 2, "count");
	DRIVER(cuStreamSynchronize, first);
	DRIVER(cuStreamSynchronize, second);
	DRIVER(cuGraphExecDestroy, exec);
	DRIVER(cuGraphDestroy, graph);
}

/* A copy and a set are recorded, too; an allocation from a pool as well. */
static void capture_transfers(CUstream stream, CUdeviceptr memory, char *host, size_t bytes)
{
	CUgraph graph;

	DRIVER(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	DRIVER(cuMemcpyHtoDAsync_v2, memory, host, bytes, stream);
	count("captured_copies", 1, "H2D %zu async", bytes);
	DRIVER(cuMemsetD8Async, memory, 0, bytes, stream);
	count("captured_sets", 1, "%zu", bytes);
	DRIVER(cuStreamEndCapture, stream, &graph);
	DRIVER(cuGraphDestroy, graph);
	DRIVER(cuMemsetD8Async, memory, 0, bytes, stream);
	count_sets(1, bytes);
}

int main(void)
{
	struct kernels kernels;
	CUstream first, second;
	CUdeviceptr memory;
	CUevent event;
	void *host;

	sample_context();
	sample_kernels(&kernels);
	DRIVER(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING);
	DRIVER(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	DRIVER(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuMemAllocHost_v2, &host, 512);
	count_alloc("host", 512);
	DRIVER(cuMemAlloc_v2, &memory, 512);
	count_alloc("device", 512);
	capture_two_streams(&kernels, first, second, event);
	capture_two_streams(&kernels, second, first, event);
	capture_transfers(first, memory, host, 512);
	DRIVER(cuCtxSynchronize);
	return sample_end();
}
