// SPDX-License-Identifier: MIT
/*
 * tight FUNCTION COUNT [THREADS]: COUNT calls of one function in each thread, with nothing in
 * between, and prints what one took. SIMCUDA_TIME_SCALE=0 makes the simulated work itself free.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu.h"

static struct gpu gpu;
static uint64_t times;
static const struct loop *wanted;
static pthread_barrier_t start;

/* A loop calls through a pointer of its own: counting is done once, after it. */
#define LOOP(function, ...)                                                                        \
	static void loop_##function(CUstream stream)                                               \
	{                                                                                          \
		__typeof__(&function) call = (__typeof__(&function))sample_symbol(#function);      \
		for (uint64_t i = 0; i < times; i++) {                                             \
			if (call(__VA_ARGS__) != 0)                                                \
				sample_die("%s failed", #function);                                \
		}                                                                                  \
		count(CALLS, #function, times);                                                    \
	}

static int number;
static CUcontext ctx_out;
static void *pointer;

LOOP(cuDriverGetVersion, &number)
LOOP(cuCtxGetDevice, &number)
LOOP(cuCtxGetCurrent, &ctx_out)
LOOP(cuStreamQuery, stream)
LOOP(cuStreamSynchronize, stream)
LOOP(cuLaunchKernel, gpu.nothing, 5, 4, 3, 8, 4, 2, 16, stream, NULL, NULL)
LOOP(cudaGetDevice, &number)
LOOP(cudaStreamQuery, stream)

/* Pairs: what one makes the other takes away. */
static void loop_cuMemAlloc_v2(CUstream stream)
{
	CUdeviceptr address;
	__typeof__(&cuMemAlloc_v2) take =
		(__typeof__(&cuMemAlloc_v2))sample_symbol("cuMemAlloc_v2");
	__typeof__(&cuMemFree_v2) give = (__typeof__(&cuMemFree_v2))sample_symbol("cuMemFree_v2");
	for (uint64_t i = 0; i < times; i++) {
		if (take(&address, 4096) != 0 || give(address) != 0)
			sample_die("cuMemAlloc_v2 or cuMemFree_v2 failed");
	}
	count(CALLS, "cuMemAlloc_v2", times);
	count(CALLS, "cuMemFree_v2", times);
	count(BYTES, "alloc", times * 4096);
	count(BYTES, "free", times * 4096);
}

static void loop_cudaMalloc(CUstream stream)
{
	__typeof__(&cudaMalloc) take = (__typeof__(&cudaMalloc))sample_symbol("cudaMalloc");
	__typeof__(&cudaFree) give = (__typeof__(&cudaFree))sample_symbol("cudaFree");
	void *address = pointer;
	for (uint64_t i = 0; i < times; i++) {
		if (take(&address, 4096) != 0 || give(address) != 0)
			sample_die("cudaMalloc or cudaFree failed");
	}
	count(CALLS, "cudaMalloc", times);
	count(CALLS, "cudaFree", times);
	count(BYTES, "alloc", times * 4096);
	count(BYTES, "free", times * 4096);
}

static const struct loop {
	const char *function;
	void (*run)(CUstream stream);
} loops[] = {
#define ROW(function)                                                                              \
	{                                                                                          \
#function, loop_##function                                                         \
	}
	ROW(cuDriverGetVersion),  ROW(cuCtxGetDevice), ROW(cuCtxGetCurrent), ROW(cuStreamQuery),
	ROW(cuStreamSynchronize), ROW(cuLaunchKernel), ROW(cuMemAlloc_v2),   ROW(cudaGetDevice),
	ROW(cudaStreamQuery),	  ROW(cudaMalloc),
};

static void *run(void *data)
{
	CUstream stream;
	gpu_attach(&gpu);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	pthread_barrier_wait(&start);
	wanted->run(stream);
	if (wanted->run == loop_cuLaunchKernel)
		count(LAUNCHES, KERNEL_NOTHING, times);
	pthread_barrier_wait(&start);
	MUST(cuStreamDestroy_v2, stream);
	return NULL;
}

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < sizeof(loops) / sizeof(loops[0]); i++) {
		if (strcmp(loops[i].function, argv[1]) == 0)
			wanted = &loops[i];
	}
	if (!wanted)
		sample_die("usage: tight FUNCTION COUNT [THREADS], with one of the functions that "
			   "tight.c lists");
	times = strtoull(argv[2], NULL, 10);
	int n = argc > 3 ? atoi(argv[3]) : 1;
	pthread_t *thread = calloc((size_t)n, sizeof(*thread));
	gpu_open(&gpu);
	pthread_barrier_init(&start, NULL, (unsigned int)n + 1);
	for (int i = 0; i < n; i++) {
		count_thread();
		if (!thread || pthread_create(&thread[i], NULL, run, NULL) != 0)
			sample_die("no thread");
	}
	pthread_barrier_wait(&start);
	double begin = now_ns();
	pthread_barrier_wait(&start);
	printf("%s: %.1f ns\n", wanted->function, (now_ns() - begin) / (double)times);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	sample_finish();
	return 0;
}
