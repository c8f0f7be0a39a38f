// SPDX-License-Identifier: MIT
/*
 * The least that a program pays for GPU times: CUPTI's kernel activities, whose buffers are thrown
 * away. Loaded by CUDA_INJECTION64_PATH, or later, and then raw_begin and raw_end turn it on and
 * off. RAW_CUPTI is the libcupti to use, else the one that the process has.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES           65536
#define KIND_CONCURRENT_KERNEL 10 /* CUpti_ActivityKind */

static void give(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*buffer = aligned_alloc(64, BUFFER_BYTES);
	*bytes = BUFFER_BYTES;
	*records = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

static int is_cupti(struct dl_phdr_info *info, size_t bytes, void *path)
{
	if (!strstr(info->dlpi_name, "/libcupti.so"))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

static void *cupti(void)
{
	static void *library;
	const char *path = getenv("RAW_CUPTI");

	if (!path)
		dl_iterate_phdr(is_cupti, &path);
	if (!library)
		library = dlopen(path ? path : "libcupti.so", RTLD_NOW | RTLD_LOCAL);
	return library;
}

/* The status of one of CUPTI's functions of one number or none; -1: it is not there. */
static int call(const char *name, unsigned number)
{
	int (*function)(unsigned) = cupti() ? (int (*)(unsigned))dlsym(cupti(), name) : NULL;

	return function ? function(number) : -1;
}

int raw_begin(void);
int raw_end(void);
int InitializeInjection(void);

/* 0: kernels are measured from now on. */
int raw_begin(void)
{
	int (*callbacks)(void *, void *);

	if (!cupti())
		return -1;
	callbacks = (int (*)(void *, void *))dlsym(cupti(), "cuptiActivityRegisterCallbacks");
	if (!callbacks || callbacks((void *)give, (void *)take))
		return -1;
	return call("cuptiActivityEnable", KIND_CONCURRENT_KERNEL);
}

/* 0: CUPTI has left the process. */
int raw_end(void)
{
	call("cuptiActivityDisable", KIND_CONCURRENT_KERNEL);
	call("cuptiActivityFlushAll", 1);
	return call("cuptiFinalize", 0);
}

int InitializeInjection(void)
{
	return raw_begin() == 0;
}
