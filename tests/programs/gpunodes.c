// SPDX-License-Identifier: MIT
/*
 * gpunodes [LAUNCHES]: a graph that two threads capture, each in a function of its own, with a copy
 * and a set of the first; and a kernel that is added to it by hand. It is cloned, the clone is a
 * child of another graph, and that one is launched; so is the first, and after an update by a graph
 * that a third function captures. Between the launches of graphs a kernel runs by itself.
 *
 * With `wait` behind the number it captures, launches a kernel at times, and goes on with graphs
 * when a line comes from its input. With `late` it captures only then.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "sample.h"

#define BYTES 4096
#define PLACE __attribute__((noinline, noclone, noipa))

static const struct shape shape = { { 2, 3, 1 }, { 64, 1, 1 }, 0 };
static struct kernels kernels;
static CUcontext context;
static CUdeviceptr memory;
static void *pinned;
static CUevent forked, joined;
static CUstream first, second;

static inline __attribute__((always_inline)) void launch(CUfunction kernel, CUstream stream)
{
	CUdeviceptr pointer = 0;
	void *args[] = { &pointer, &pointer };

	DRIVER(cuLaunchKernel, kernel, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
	       shape.block[1], shape.block[2], 0, stream, args, NULL);
}

static PLACE void capture_attention(void)
{
	launch(kernels.tick, first);
	__asm__ volatile("");
}

static PLACE void capture_transfers(void)
{
	DRIVER(cuMemcpyHtoDAsync_v2, memory, pinned, BYTES, first);
	DRIVER(cuMemsetD8Async, memory, 0, BYTES, first);
	__asm__ volatile("");
}

static PLACE void *capture_backward(void *unused)
{
	DRIVER(cuCtxSetCurrent, context);
	launch(kernels.block, second);
	return unused;
}

static PLACE CUgraph capture_both(void)
{
	pthread_t backward;
	CUgraph graph;

	DRIVER(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_RELAXED);
	capture_attention();
	DRIVER(cuEventRecord, forked, first);
	DRIVER(cuStreamWaitEvent, second, forked, 0);
	pthread_create(&backward, NULL, capture_backward, NULL);
	pthread_join(backward, NULL);
	DRIVER(cuEventRecord, joined, second);
	DRIVER(cuStreamWaitEvent, first, joined, 0);
	capture_transfers();
	DRIVER(cuStreamEndCapture, first, &graph);
	return graph;
}

static PLACE CUgraph capture_update(void)
{
	CUgraph graph;

	DRIVER(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_RELAXED);
	launch(kernels.plain, first);
	launch(kernels.plain, first);
	DRIVER(cuStreamEndCapture, first, &graph);
	return graph;
}

static PLACE CUgraph capture_updated(void)
{
	CUgraph graph;

	DRIVER(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_RELAXED);
	launch(kernels.tick, first);
	launch(kernels.tick, first);
	DRIVER(cuStreamEndCapture, first, &graph);
	return graph;
}

static CUgraphExec instantiated(CUgraph graph)
{
	CUgraphExec exec;

	DRIVER(cuGraphInstantiateWithFlags, &exec, graph, 0);
	return exec;
}

static CUgraph parent_of(CUgraph child)
{
	CUdeviceptr pointer = 0;
	void *args[] = { &pointer, &pointer };
	const CUDA_KERNEL_NODE_PARAMS params = { .func = kernels.plain,
		                                 .gridDimX = 1,
		                                 .gridDimY = 1,
		                                 .gridDimZ = 1,
		                                 .blockDimX = 32,
		                                 .blockDimY = 1,
		                                 .blockDimZ = 1,
		                                 .kernelParams = args };
	CUgraph clone, parent;
	CUgraphNode node, added;

	DRIVER(cuGraphClone, &clone, child);
	DRIVER(cuGraphCreate, &parent, 0);
	DRIVER(cuGraphAddChildGraphNode, &node, parent, NULL, 0, clone);
	DRIVER(cuGraphAddKernelNode_v2, &added, parent, &node, 1, &params);
	return parent;
}

static PLACE void replay(CUgraphExec exec)
{
	DRIVER(cuGraphLaunch, exec, first);
	__asm__ volatile("");
}

static void run_until_told(const char *words)
{
	struct pollfd input = { .events = POLLIN };

	puts(words);
	fflush(stdout);
	while (!poll(&input, 1, 5))
		sample_run(kernels.plain, PLAIN, shape, first);
}

int main(int argc, char **argv)
{
	long launches = sample_number(argc, argv, 1, 20);
	CUgraph graph, update, updated;
	CUgraphExec plain, nested, changed;
	CUgraphExecUpdateResultInfo info;

	context = sample_context();
	sample_kernels(&kernels);
	DRIVER(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING);
	DRIVER(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	DRIVER(cuEventCreate, &forked, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuEventCreate, &joined, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuMemAlloc_v2, &memory, BYTES);
	DRIVER(cuMemAllocHost_v2, &pinned, BYTES);
	if (argc > 2 && !strcmp(argv[2], "late"))
		run_until_told("ready");
	graph = capture_both();
	update = capture_update();
	updated = capture_updated();
	plain = instantiated(graph);
	nested = instantiated(parent_of(graph));
	changed = instantiated(update);
	DRIVER(cuGraphExecUpdate_v2, changed, updated, &info);
	if (argc > 2 && !strcmp(argv[2], "wait"))
		run_until_told("captured");
	for (long i = 0; i < launches; i++) {
		replay(plain);
		replay(nested);
		replay(changed);
		sample_run(kernels.plain, PLAIN, shape, first);
		DRIVER(cuStreamSynchronize, first);
	}
	return sample_end();
}
