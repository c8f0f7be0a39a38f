// SPDX-License-Identifier: MIT
/*
 * answers ROUNDS: calls of the runtime that it refuses by itself, between others that go on to the
 * driver and calls of the driver's own; in the main thread and in another one.
 */
#include <pthread.h>
#include <string.h>

#include "sample.h"

static long rounds;

/* Below the place on the stack where the runtime was called just before. */
__attribute__((noinline, noipa)) static void call_driver(CUcontext context)
{
	volatile char room[512];

	memset((char *)room, 0, sizeof(room));
	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuCtxSynchronize);
}

static void refuse(const char *name, cudaError_t result)
{
	if (!result)
		sample_fail("%s was not refused", name);
	count("alone", 1, "%s", name);
}

static void *loop(void *context)
{
	void *memory;

	call_driver(context);
	for (long i = 0; i < rounds; i++) {
		refuse("cudaMalloc", cudaMalloc(NULL, 64));
		call_driver(context);
		sample_check("cudaMalloc", LINKED(cudaMalloc, &memory, 128), 0, NULL);
		refuse("cudaMemcpy", cudaMemcpy(memory, memory, 16, (enum cudaMemcpyKind)77));
		refuse("cudaMemcpy", cudaMemcpy(memory, memory, 16, (enum cudaMemcpyKind)77));
		sample_check("cudaFree", LINKED(cudaFree, memory), 0, NULL);
		count("driver", 1, "cuMemAlloc_v2");
		count("driver", 1, "cuMemFree_v2");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	CUcontext context;

	rounds = sample_number(argc, argv, 1, 100);
	context = sample_context();
	sample_check("cudaFree", LINKED(cudaFree, NULL), 0,
	             NULL); /* which initialises the runtime */
	pthread_create(&thread, NULL, loop, context);
	loop(context);
	pthread_join(thread, NULL);
	return sample_end();
}
