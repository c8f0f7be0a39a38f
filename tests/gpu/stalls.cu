// SPDX-License-Identifier: MIT
/*
 * stalls KIND SECONDS: kernels of which it is known what they wait for, until the time is over:
 *
 *   chase     memory: each load's address is what the one before loaded
 *   bank      shared memory: all lanes of a warp are at one bank
 *   barrier   other warps of the block: one works, the others are at the barrier
 *   tensor    the tensor cores: independent products, more than they take
 *   empty     nothing: as many launches as can be
 *   reset     as chase, and the device is reset ten times a second
 *   graph     as barrier, of a graph that it makes as it begins
 *
 * Prints a line for each half second, how many launches there were, and at the end what came out.
 */
#include <cuda_fp16.h>
#include <mma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NODES (1u << 24) /* of 8 bytes: more than any cache */
#define TURNS 200

static void must(cudaError_t result, const char *what)
{
	if (result == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
	exit(1);
}

__global__ void chase(const unsigned long long *next, unsigned long long *out)
{
	unsigned long long at = (blockIdx.x * blockDim.x + threadIdx.x) * 977 % NODES;

	for (int i = 0; i < TURNS; i++)
		at = next[at]; /* chase waits here */
	out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void bank(const unsigned long long *next, unsigned long long *out)
{
	__shared__ volatile unsigned int words[32 * 32 * 4];
	unsigned int sum = 0;

	for (int i = threadIdx.x; i < 32 * 32 * 4; i += blockDim.x)
		words[i] = (unsigned int)next[i];
	__syncthreads();
	for (int i = 0; i < 20 * TURNS; i++)
		sum += words[(threadIdx.x % 32 * 32 +
		              (i + threadIdx.x / 32) % 32)]; /* bank waits here */
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void barrier(const unsigned long long *next, unsigned long long *out)
{
	float x = (float)next[threadIdx.x];

	for (int i = 0; i < TURNS / 4; i++) {
		if (threadIdx.x < 32) {
			for (int j = 0; j < 200; j++)
				x = x * 1.0001f + 0.5f;
		}
		__syncthreads(); /* barrier waits here */
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned long long)x;
}

__global__ void tensor(const unsigned long long *next, unsigned long long *out)
{
	using namespace nvcuda::wmma;
	fragment<matrix_a, 16, 16, 16, half, row_major> a;
	fragment<matrix_b, 16, 16, 16, half, col_major> b;
	fragment<accumulator, 16, 16, 16, float> c[4];

	fill_fragment(a, __float2half((float)(next[0] % 3)));
	fill_fragment(b, __float2half(0.5f));
	for (int i = 0; i < 4; i++)
		fill_fragment(c[i], 0.0f);
	for (int i = 0; i < 10 * TURNS; i++) {
		mma_sync(c[0], a, b, c[0]); /* tensor waits here */
		mma_sync(c[1], a, b, c[1]);
		mma_sync(c[2], a, b, c[2]);
		mma_sync(c[3], a, b, c[3]);
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		(unsigned long long)(c[0].x[0] + c[1].x[0] + c[2].x[0] + c[3].x[0]);
}

__global__ void empty(const unsigned long long *next, unsigned long long *out)
{
}

typedef void (*kernel)(const unsigned long long *, unsigned long long *);

static const struct kind {
	const char *name;
	kernel run;
	int blocks, threads;
	int batch; /* launches before a wait */
} kinds[] = {
	{ "chase", chase, 1056, 256, 4 },     { "bank", bank, 528, 256, 4 },
	{ "barrier", barrier, 264, 1024, 4 }, { "tensor", tensor, 528, 256, 4 },
	{ "empty", empty, 1, 32, 1000 },      { "reset", chase, 1056, 256, 4 },
	{ "graph", barrier, 264, 1024, 4 }, /* of a graph that is made as the program begins */
};

static unsigned long long *next_of, *out_of;

static void prepare(void)
{
	unsigned long long *host = (unsigned long long *)malloc(NODES * sizeof(*host));

	for (unsigned long long i = 0; i < NODES; i++)
		host[i] = (i * 6364136223846793005ull + 1442695040888963407ull) % NODES;
	must(cudaMalloc(&next_of, NODES * sizeof(*host)), "cudaMalloc");
	must(cudaMalloc(&out_of, 1056 * 1024 * sizeof(*host)), "cudaMalloc");
	must(cudaMemcpy(next_of, host, NODES * sizeof(*host), cudaMemcpyHostToDevice),
	     "cudaMemcpy");
	free(host);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The sum of what the last launch left. */
static unsigned long long result(const struct kind *kind)
{
	size_t n = (size_t)kind->blocks * kind->threads;
	unsigned long long *host = (unsigned long long *)malloc(n * sizeof(*host)), sum = 0;

	must(cudaMemcpy(host, out_of, n * sizeof(*host), cudaMemcpyDeviceToHost), "cudaMemcpy");
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + host[i];
	free(host);
	return sum;
}

/* A graph of one batch. */
static cudaGraphExec_t captured(const struct kind *kind, cudaStream_t stream)
{
	cudaGraphExec_t executable;
	cudaGraph_t graph;

	must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
	for (int i = 0; i < kind->batch; i++)
		kind->run<<<kind->blocks, kind->threads, 0, stream>>>(next_of, out_of);
	must(cudaStreamEndCapture(stream, &graph), "capture");
	must(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
	return executable;
}

int main(int argc, char **argv)
{
	cudaGraphExec_t graph = NULL;
	cudaStream_t stream;
	const struct kind *kind = kinds;
	double seconds = argc > 2 ? atof(argv[2]) : 4, begin, tick, reset;
	unsigned long launches = 0;

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, argv[1]))
			kind = &kinds[i];
	}
	prepare();
	must(cudaMemset(out_of, 0, 1056 * 1024 * sizeof(*out_of)), "cudaMemset");
	must(cudaStreamCreate(&stream), "cudaStreamCreate");
	if (!strcmp(kind->name, "graph"))
		graph = captured(kind, stream);
	begin = tick = reset = now();
	while (now() - begin < seconds) {
		for (int i = 0; i < kind->batch && !graph; i++)
			kind->run<<<kind->blocks, kind->threads>>>(next_of, out_of);
		if (graph)
			must(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
		must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
		launches += kind->batch;
		if (!strcmp(kind->name, "reset") && now() - reset > 0.1) {
			must(cudaDeviceReset(), "cudaDeviceReset");
			prepare();
			reset = now();
		}
		if (now() - tick < 0.5)
			continue;
		printf("launches %.0f a second\n", launches / (now() - tick));
		fflush(stdout);
		launches = 0;
		tick = now();
	}
	printf("result %llx\n", kind->run == empty ? 0 : result(kind));
	return 0;
}
