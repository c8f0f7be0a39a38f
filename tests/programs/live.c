// SPDX-License-Identifier: MIT
/*
 * live HOW [MILLISECONDS]: allocates in two functions, frees a part of it in another thread, and
 * stays for a while with the rest. HOW:
 *
 *   stay      ends in good order after that
 *   die       is killed by its own signal, its memory live
 *   reset     destroys its context first, which takes the memory with it, and makes another
 *   replace   allocates and frees in eight threads that are given each other's addresses again
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "sample.h"

#define KEPT   5
#define OTHERS 3
#define ROUNDS 2000

static CUcontext context;

__attribute__((noinline)) static CUdeviceptr keep(size_t bytes)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	return memory;
}

__attribute__((noinline)) static void *pin(size_t bytes)
{
	void *memory;

	DRIVER(cuMemAllocHost_v2, &memory, bytes);
	count_alloc("host", bytes);
	return memory;
}

static void *free_one(void *memory)
{
	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuMemFree_v2, (CUdeviceptr)memory);
	count_free("device", 1000);
	return NULL;
}

static void allocate(void)
{
	pthread_t thread;
	CUdeviceptr freed = keep(1000);

	for (int i = 0; i < KEPT; i++)
		keep(1000);
	for (int i = 0; i < OTHERS; i++)
		pin(2000);
	pthread_create(&thread, NULL, free_one, (void *)freed);
	pthread_join(thread, NULL);
}

static void *come_and_go(void *unused)
{
	CUdeviceptr memory;

	DRIVER(cuCtxSetCurrent, context);
	for (int i = 0; i < ROUNDS; i++) {
		DRIVER(cuMemAlloc_v2, &memory, 4096);
		DRIVER(cuMemFree_v2, memory);
	}
	return NULL;
}

static void replace(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, come_and_go, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 8 * ROUNDS; i++) {
		count_alloc("device", 4096);
		count_free("device", 4096);
	}
}

static void stay(long milliseconds)
{
	const struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "stay";
	int status;

	context = sample_context();
	if (!strcmp(how, "replace")) {
		replace();
		return sample_end();
	}
	allocate();
	if (!strcmp(how, "reset")) {
		CUdevice device;

		DRIVER(cuCtxDestroy_v2, context);
		DRIVER(cuDeviceGet, &device, 0);
		DRIVER(cuCtxCreate_v2, &context, 0, device);
		keep(7000);
	}
	stay(sample_number(argc, argv, 2, 0));
	status = sample_end();
	if (!strcmp(how, "die"))
		raise(SIGKILL);
	return status;
}
