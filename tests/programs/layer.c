// SPDX-License-Identifier: MIT
/*
 * layer/libcuda.so.1: a library between the runtime and the driver, as those that share out a GPU's
 * memory. It has the driver's name, gives the runtime functions of its own, and calls the driver,
 * which SAMPLE_DRIVER names, by these. The first bytes of its cuMemAlloc_v2 are a call, so that its
 * entry cannot be diverted.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/driver_api.h"

#define EXPORT __attribute__((visibility("default")))

static void *driver_function(const char *name)
{
	static void *driver;

	if (!driver)
		driver = dlopen(getenv("SAMPLE_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	return driver ? dlsym(driver, name) : NULL;
}

#define DRIVERS(name) ((__typeof__(name) *)driver_function(#name))

EXPORT CUresult cuInit(unsigned int flags)
{
	return DRIVERS(cuInit)(flags);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                               void **params, void **extra)
{
	return DRIVERS(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
	                               shared_bytes, stream, params, extra);
}

__attribute__((used)) static CUresult allocate(CUdeviceptr *address, size_t bytes)
{
	return DRIVERS(cuMemAlloc_v2)(address, bytes);
}

#ifdef __x86_64__
__asm__(".globl cuMemAlloc_v2\n"
        ".type cuMemAlloc_v2, @function\n"
        "cuMemAlloc_v2:\n"
        "	.cfi_startproc\n"
        "	sub $8, %rsp\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	call allocate\n"
        "	add $8, %rsp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".size cuMemAlloc_v2, . - cuMemAlloc_v2\n");
#else
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	return allocate(address, bytes);
}
#endif

static void *own_function(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} own[] = {
		{ "cuInit", (void *)cuInit },
		{ "cuLaunchKernel", (void *)cuLaunchKernel },
		{ "cuMemAlloc", (void *)cuMemAlloc_v2 },
		{ "cuMemAlloc_v2", (void *)cuMemAlloc_v2 },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i].name, name))
			return own[i].function;
	return NULL;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult result = DRIVERS(cuGetProcAddress_v2)(symbol, function, version, flags, status);

	if (!result && own_function(symbol))
		*function = own_function(symbol);
	return result;
}
