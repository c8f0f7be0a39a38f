// SPDX-License-Identifier: MIT
/* Launches, kernel attributes, libraries. */
#include <string.h>

#include "runtime.h"

#define PENDING_MAX 64

/* What <<<...>>> pushed and the host stub has not popped yet. */
static __thread struct {
	struct configuration {
		dim3 grid, block;
		size_t shared_bytes;
		void *stream;
	} pushed[PENDING_MAX];
	unsigned int n;
} pending;

static bool config_is_valid(dim3 grid, dim3 block, size_t shared_bytes)
{
	return grid.x && grid.y && grid.z && block.x && block.y && block.z &&
	       (uint64_t)block.x * block.y * block.z <= 1024 && shared_bytes <= 227 * 1024;
}

static int launch(bool per_thread, bool cooperative, const void *function, dim3 grid, dim3 block,
                  void **args, size_t shared_bytes, cudaStream_t stream)
{
	CUfunction kernel = function ? kernel_resolve(function) : NULL;
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	if (!config_is_valid(grid, block, shared_bytes))
		return cudaErrorInvalidConfiguration;
	if (cooperative)
		return (int)DRV(cuLaunchCooperativeKernel,
		                _ptsz)(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		                       (unsigned int)shared_bytes, stream, args);
	return (int)DRV(cuLaunchKernel, _ptsz)(kernel, grid.x, grid.y, grid.z, block.x, block.y,
	                                       block.z, (unsigned int)shared_bytes, stream, args,
	                                       NULL);
}

static int launch_config(bool per_thread, const cudaLaunchConfig_t *config, const void *function,
                         void **args)
{
	CUfunction kernel = function ? kernel_resolve(function) : NULL;
	if (!config)
		return cudaErrorInvalidValue;
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	if (!config_is_valid(config->gridDim, config->blockDim, config->dynamicSmemBytes))
		return cudaErrorInvalidConfiguration;
	CUlaunchConfig wanted = {
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned int)config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = (CUlaunchAttribute *)config->attrs,
		.numAttrs = config->numAttrs,
	};
	return (int)DRV(cuLaunchKernelEx, _ptsz)(&wanted, kernel, args, NULL);
}

static int attributes(struct cudaFuncAttributes *wanted, const void *function)
{
	CUkernel kernel = (CUkernel)kernel_resolve(function);
	if (!wanted)
		return cudaErrorInvalidValue;
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	memset(wanted, 0, sizeof(*wanted));
	int result = (int)drv.cuKernelGetAttribute(
		&wanted->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0);
	if (result == cudaSuccess)
		result = (int)drv.cuKernelGetAttribute(&wanted->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS,
		                                       kernel, 0);
	return result;
}

static int name_of(const char **name, const void *function)
{
	CUkernel kernel = (CUkernel)kernel_resolve(function);
	return kernel ? (int)drv.cuKernelGetName(name, kernel) : cudaErrorInvalidDeviceFunction;
}

static int set_attribute(const void *function, int attribute, int value)
{
	CUkernel kernel = (CUkernel)kernel_resolve(function);
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	return (int)drv.cuKernelSetAttribute((CUfunction_attribute)attribute, value, kernel, 0);
}

static int function_by_symbol(cudaFunction_t *found, const void *function)
{
	CUkernel kernel = (CUkernel)kernel_resolve(function);
	return kernel ? (int)drv.cuKernelGetFunction(found, kernel)
	              : cudaErrorInvalidDeviceFunction;
}

__attribute__((visibility("default"))) unsigned int
__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream)
{
	if (pending.n == PENDING_MAX)
		return 1;
	pending.pushed[pending.n++] = (struct configuration){ grid, block, shared_bytes, stream };
	return 0;
}

static int pop(dim3 *grid, dim3 *block, size_t *shared_bytes, void **stream)
{
	if (pending.n == 0)
		return cudaErrorMissingConfiguration;
	const struct configuration *top = &pending.pushed[--pending.n];
	*grid = top->grid;
	*block = top->block;
	*shared_bytes = top->shared_bytes;
	*stream = top->stream;
	return cudaSuccess;
}

#define LAUNCH(cooperative)                                                                        \
	launch(per_thread, cooperative, function, grid, block, args, shared_bytes, stream)

RT_PLAIN(__cudaPopCallConfiguration,
         (dim3 *, grid, dim3 *, block, size_t *, shared_bytes, void *, stream),
         pop(grid, block, shared_bytes, stream))
RT_PTSZ(cudaLaunchKernel,
        (const void *, function, dim3, grid, dim3, block, void **, args, size_t, shared_bytes,
         cudaStream_t, stream),
        LAUNCH(false))
RT_PTSZ(cudaLaunchCooperativeKernel,
        (const void *, function, dim3, grid, dim3, block, void **, args, size_t, shared_bytes,
         cudaStream_t, stream),
        LAUNCH(true))
RT_PTSZ(cudaLaunchKernelExC,
        (const cudaLaunchConfig_t *, config, const void *, function, void **, args),
        launch_config(per_thread, config, function, args))
RT(cudaFuncGetAttributes, (struct cudaFuncAttributes *, wanted, const void *, function),
   attributes(wanted, function))
RT(cudaFuncSetAttribute, (const void *, function, enum cudaFuncAttribute, attribute, int, value),
   set_attribute(function, attribute, value))
RT(cudaFuncSetCacheConfig, (const void *, function, enum cudaFuncCache, config),
   set_attribute(function, 0, 0))
RT(cudaFuncGetName, (const char **, name, const void *, function), name_of(name, function))
RT(cudaGetFuncBySymbol, (cudaFunction_t *, found, const void *, function),
   function_by_symbol(found, function))
#if CUDART_MAJOR >= 13
RT(cudaLibraryLoadData,
   (cudaLibrary_t *, library, const void *, code, enum cudaJitOption *, jit, void **, jit_values,
    unsigned int, jit_count, enum cudaLibraryOption *, options, void **, values, unsigned int,
    count),
   drv.cuLibraryLoadData(library, code, NULL, NULL, 0, NULL, NULL, 0))
RT(cudaLibraryUnload, (cudaLibrary_t, library), drv.cuLibraryUnload(library))
RT(cudaLibraryGetKernel, (cudaKernel_t *, kernel, cudaLibrary_t, library, const char *, name),
   drv.cuLibraryGetKernel(kernel, library, name))
RT(cudaLibraryGetKernelCount, (unsigned int *, count, cudaLibrary_t, library),
   drv.cuLibraryGetKernelCount(count, library))
RT(cudaLibraryEnumerateKernels,
   (cudaKernel_t *, kernels, unsigned int, room, cudaLibrary_t, library),
   drv.cuLibraryEnumerateKernels(kernels, room, library))
RT(cudaLibraryGetGlobal,
   (void **, address, size_t *, bytes, cudaLibrary_t, library, const char *, name),
   drv.cuLibraryGetGlobal((CUdeviceptr *)address, bytes, library, name))
#endif
