// SPDX-License-Identifier: MIT
/*
 * Graphs: what is captured does not run, also on a second stream that the capture spread to by an
 * event, and what another thread launches meanwhile does.
 */
#include <pthread.h>

#include "runtime.h"

#define REPLAYS  20
#define MEANTIME 200

__global__ void step(int *x)
{
	x[threadIdx.x]++;
}

__global__ void side(int *x)
{
	x[threadIdx.x]--;
}

static int *x, *y, *host;

static void launch_steps(int times, cudaStream_t stream, bool captured)
{
	for (int i = 0; i < times; i++)
		step<<<2, 64, 0, stream>>>(x);
	count_launches(times, "step(int*)", shape_of(2, 64), stream, captured);
}

static void *launch_meanwhile(void *arg)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < MEANTIME; i++)
		side<<<4, 32, 0, stream>>>(y);
	count_launches(MEANTIME, "side(int*)", shape_of(4, 32), stream, false);
	CHECK(cudaStreamSynchronize(stream));
	return NULL;
}

static cudaGraph_t capture(cudaStream_t stream, cudaStream_t other)
{
	cudaEvent_t forked, joined;
	cudaGraph_t graph;
	pthread_t thread;

	CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	if (pthread_create(&thread, NULL, launch_meanwhile, NULL))
		exit(1);
	launch_steps(3, stream, true);
	CHECK(cudaMemcpyAsync(x, host, 4096, cudaMemcpyHostToDevice, stream));
	count_copies(1, "H2D", 4096, true);
	CHECK(cudaMemsetAsync(x, 0, 1024, stream));
	count_sets(1, 1024, true);
	CHECK(cudaEventRecord(forked, stream));
	CHECK(cudaStreamWaitEvent(other, forked, 0));
	launch_steps(2, other, true);
	CHECK(cudaEventRecord(joined, other));
	CHECK(cudaStreamWaitEvent(stream, joined, 0));
	launch_steps(1, stream, true);
	pthread_join(thread, NULL);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaEventDestroy(forked));
	CHECK(cudaEventDestroy(joined));
	return graph;
}

/* A graph of nodes that were never launched by a call. */
static cudaGraph_t build(void)
{
	void *args[] = { &x };
	cudaKernelNodeParams params = {};
	params.func = (void *)side;
	params.gridDim = dim3(5);
	params.blockDim = dim3(32);
	params.kernelParams = args;
	cudaGraphNode_t first, second;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &params));
	CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &params));
	count_calls(2, "cudaGraphAddKernelNode");
	return graph;
}

static void replay(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < REPLAYS; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	count_graph_launches(REPLAYS);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

int main(void)
{
	cudaStream_t stream, other;

	CHECK(cudaMalloc(&x, 4096));
	CHECK(cudaMalloc(&y, 4096));
	CHECK(cudaMallocHost(&host, 4096));
	count_alloc("device", address_of(x), 4096);
	count_alloc("device", address_of(y), 4096);
	count_alloc("host", address_of(host), 4096);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));

	launch_steps(5, stream, false);
	side<<<1, 32, 0, stream>>>(x); /* loaded before the capture */
	count_launches(1, "side(int*)", shape_of(1, 32), stream, false);
	CHECK(cudaStreamSynchronize(stream));
	replay(capture(stream, other), stream);
	count_kernel_nodes(6 * REPLAYS, "step(int*)");
	count_copy_nodes(REPLAYS, "H2D", 4096);
	launch_steps(5, stream, false);
	launch_steps(5, other, false);
	replay(build(), stream);
	count_kernel_nodes(2 * REPLAYS, "side(int*)");
	CHECK(cudaDeviceSynchronize());
	count_calls(2, "cudaGraphInstantiate");
	count_calls(1, "cudaStreamBeginCapture");
	count_calls(1, "cudaStreamEndCapture");
	return 0;
}
