// SPDX-License-Identifier: MIT
/*
 * The least that a program pays for GPU times: CUPTI's kernel activities, whose buffers are thrown
 * away. Loaded by CUDA_INJECTION64_PATH; RAW_CUPTI is the libcupti to use.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

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

int InitializeInjection(void);

int InitializeInjection(void)
{
	const char *path = getenv("RAW_CUPTI");
	void *cupti = dlopen(path ? path : "libcupti.so", RTLD_NOW | RTLD_LOCAL);
	int (*callbacks)(void *, void *), (*enable)(int);

	if (!cupti)
		return 0;
	callbacks = (int (*)(void *, void *))dlsym(cupti, "cuptiActivityRegisterCallbacks");
	enable = (int (*)(int))dlsym(cupti, "cuptiActivityEnable");
	return callbacks && enable && callbacks((void *)give, (void *)take) == 0 &&
	       enable(KIND_CONCURRENT_KERNEL) == 0;
}
