// SPDX-License-Identifier: MIT
/*
 * threads [THREADS [ROUNDS]]: each thread, on a stream of its own, in each round allocates, copies
 * in, launches two kernels, copies out and frees. Every thread has another shape.
 */
#include <pthread.h>

#include "sample.h"

#define BYTES(thread) (4096u * ((thread) + 1))

static CUcontext context;
static struct kernels kernels;
static long rounds;

static void round_of(unsigned thread, CUstream stream, char *host)
{
	struct shape tick = { { thread + 1, 1, 1 }, { 32, 2, 1 }, 0 };
	struct shape block = { { 7, thread + 1, 2 }, { 64, 1, 3 }, 1024 + 16 * thread };
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, BYTES(thread));
	count_alloc("device", BYTES(thread));
	DRIVER(cuMemcpyHtoDAsync_v2, memory, host, BYTES(thread), stream);
	count_copies(1, "H2D", BYTES(thread), "async");
	sample_launch(kernels.tick, TICK_NAME, tick, stream);
	sample_launch(kernels.block, BLOCK_NAME, block, stream);
	DRIVER(cuStreamSynchronize, stream);
	DRIVER(cuMemcpyDtoH_v2, host, memory, BYTES(thread));
	count_copies(1, "D2H", BYTES(thread), "sync");
	DRIVER(cuMemFree_v2, memory);
	count_free("device", BYTES(thread));
}

static void *work(void *argument)
{
	unsigned thread = (unsigned)(size_t)argument;
	char *host = malloc(BYTES(thread));
	CUstream stream;

	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	for (long i = 0; i < rounds; i++)
		round_of(thread, stream, host);
	DRIVER(cuStreamDestroy_v2, stream);
	free(host);
	return NULL;
}

int main(int argc, char **argv)
{
	long n = sample_number(argc, argv, 1, 4);
	pthread_t threads[64];

	rounds = sample_number(argc, argv, 2, 10);
	if (n < 1 || n > 64)
		sample_fail("threads: 1 to 64");
	context = sample_context();
	sample_kernels(&kernels);
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return sample_end();
}
