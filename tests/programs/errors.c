// SPDX-License-Identifier: MIT
/* Calls that fail with codes that are known, on both layers, beside some that succeed. */
#include "sample.h"

#define CUDA_ERROR_TOO_MUCH ((size_t)1 << 60)

static void driver_errors(void)
{
	CUstream gone = (CUstream)0x1234560;
	CUdeviceptr memory;
	CUmodule module;
	CUfunction function;
	CUdevice device;

	DRIVER_FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet, &device, 0);
	sample_context();
	DRIVER_FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &memory, CUDA_ERROR_TOO_MUCH);
	DRIVER_FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2, &memory, 0);
	DRIVER_FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2, 0xdead0000);
	DRIVER_FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData, &module, "no code");
	DRIVER(cuModuleLoadData, &module, sample_ptx);
	DRIVER_FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction, &function, module, "nowhere");
	for (int i = 0; i < 3; i++)
		DRIVER_FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel, (CUfunction)gone, 1, 1, 1,
		             1, 1, 1, 0, NULL, NULL, NULL);
	DRIVER(cuModuleGetFunction, &function, module, TICK);
	DRIVER_FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel, function, 1, 1, 1, 4096, 1, 1, 0,
	             NULL, NULL, NULL);
	DRIVER_FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet, &device, 99);
}

static void runtime_errors(void)
{
	void *memory;

	runtime = sample_open("libcudart.so.13");
	RUNTIME_FAILS(cudaErrorMemoryAllocation, cudaMalloc, &memory, CUDA_ERROR_TOO_MUCH);
	RUNTIME_FAILS(cudaErrorInvalidDevice, cudaSetDevice, 99);
	RUNTIME_FAILS(cudaErrorInvalidValue, cudaFree, (void *)0xdead0000);
	RUNTIME(cudaMalloc, &memory, 64);
	count_alloc("device", 64);
	RUNTIME(cudaFree, memory);
	count_free("device", 64);
}

int main(int argc, char **argv)
{
	driver = sample_open("libcuda.so.1");
	driver_errors();
	if (sample_number(argc, argv, 1, 1))
		runtime_errors();
	return sample_end();
}
