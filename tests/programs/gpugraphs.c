// SPDX-License-Identifier: MIT
/*
 * gpugraphs [NODES [LAUNCHES]]: a graph of NODES kernels in a row, a copy and a set, launched
 * LAUNCHES times; a captured one of two kernels, launched as often; and a kernel by itself between
 * any two launches.
 */
#include "sample.h"

#define BYTES 4096

static const struct shape shape = { { 2, 3, 1 }, { 64, 1, 1 }, 0 };
static CUdeviceptr memory;
static void *pinned;

static CUgraphNode add_kernels(CUgraph graph, CUfunction kernel, long nodes)
{
	CUdeviceptr pointer = 0;
	void *args[] = { &pointer, &pointer };
	CUDA_KERNEL_NODE_PARAMS params = { .func = kernel,
		                           .gridDimX = shape.grid[0],
		                           .gridDimY = shape.grid[1],
		                           .gridDimZ = shape.grid[2],
		                           .blockDimX = shape.block[0],
		                           .blockDimY = shape.block[1],
		                           .blockDimZ = shape.block[2],
		                           .kernelParams = args };
	CUgraphNode last = NULL;

	for (long i = 0; i < nodes; i++) {
		CUgraphNode node;
		DRIVER(cuGraphAddKernelNode_v2, &node, graph, last ? &last : NULL, last != NULL,
		       &params);
		last = node;
	}
	return last;
}

static CUgraphExec built(CUcontext context, const struct kernels *k, long nodes)
{
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		               .srcHost = pinned,
		               .srcPitch = BYTES,
		               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
		               .dstDevice = memory,
		               .dstPitch = BYTES,
		               .WidthInBytes = BYTES,
		               .Height = 1,
		               .Depth = 1 };
	CUDA_MEMSET_NODE_PARAMS set = {
		.dst = memory, .elementSize = 4, .width = 100, .height = 1
	};
	CUgraph graph;
	CUgraphNode last, node;
	CUgraphExec exec;

	DRIVER(cuGraphCreate, &graph, 0);
	last = add_kernels(graph, k->tick, nodes);
	DRIVER(cuGraphAddMemcpyNode, &node, graph, &last, last != NULL, &copy, context);
	DRIVER(cuGraphAddMemsetNode, &last, graph, &node, 1, &set, context);
	DRIVER(cuGraphInstantiateWithFlags, &exec, graph, 0);
	DRIVER(cuGraphDestroy, graph);
	return exec;
}

static CUgraphExec captured(const struct kernels *k, CUstream stream)
{
	CUgraph graph;
	CUgraphExec exec;

	DRIVER(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	for (int i = 0; i < 2; i++) {
		CUdeviceptr pointer = 0;
		void *args[] = { &pointer, &pointer };
		DRIVER(cuLaunchKernel, k->block, shape.grid[0], shape.grid[1], shape.grid[2],
		       shape.block[0], shape.block[1], shape.block[2], 0, stream, args, NULL);
		count_launches("captured_launches", 1, BLOCK_NAME, shape, stream);
	}
	DRIVER(cuStreamEndCapture, stream, &graph);
	DRIVER(cuGraphInstantiateWithFlags, &exec, graph, 0);
	DRIVER(cuGraphDestroy, graph);
	return exec;
}

int main(int argc, char **argv)
{
	long nodes = sample_number(argc, argv, 1, 10);
	long launches = sample_number(argc, argv, 2, 20);
	CUcontext context = sample_context();
	struct kernels kernels;
	CUstream stream;
	CUgraphExec first, second;

	sample_kernels(&kernels);
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	DRIVER(cuMemAlloc_v2, &memory, BYTES);
	count_alloc("device", BYTES);
	DRIVER(cuMemAllocHost_v2, &pinned, BYTES);
	count_alloc("host", BYTES);
	first = built(context, &kernels, nodes);
	second = captured(&kernels, stream);
	for (long i = 0; i < launches; i++) {
		DRIVER(cuGraphLaunch, first, stream);
		sample_run(kernels.plain, PLAIN, shape, stream);
		DRIVER(cuGraphLaunch, second, stream);
	}
	DRIVER(cuStreamSynchronize, stream);
	count("graph_launches", 2 * launches, "count");
	count_ran_kernels(launches * nodes, TICK_NAME, shape);
	count_ran_kernels(launches * 2, BLOCK_NAME, shape);
	count_ran_copies(launches, "H2D", BYTES, "pinned", "device");
	count_ran_sets(launches, 400, "device");
	return sample_end();
}
