// SPDX-License-Identifier: MIT
/*
 * getters [THREADS [ROUNDS]]: each thread asks for its device 2,000 times a round, and once for one
 * that there is not. In between it allocates and frees.
 */
#include <pthread.h>

#include "sample.h"

#define CALLS    2000
#define PAUSE_US 1000
#define BYTES    4096u

static CUcontext context;
static long rounds;

static void *work(void *argument)
{
	CUdeviceptr memory;
	CUdevice device;

	DRIVER(cuCtxSetCurrent, context);
	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < CALLS; k++)
			DRIVER(cuDeviceGet, &device, 0);
		DRIVER_FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet, &device, 99);
		DRIVER(cuMemAlloc_v2, &memory, BYTES);
		count_alloc("device", BYTES);
		DRIVER(cuMemFree_v2, memory);
		count_free("device", BYTES);
		usleep(PAUSE_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = sample_number(argc, argv, 1, 2);
	pthread_t threads[64];

	rounds = sample_number(argc, argv, 2, 10);
	if (n < 1 || n > 64)
		sample_fail("threads: 1 to 64");
	context = sample_context();
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return sample_end();
}
