// SPDX-License-Identifier: MIT
/*
 * errors: calls of both layers that fail, each with a known code; and polls that say "not ready".
 * The program ends with status 1 if a code is another one than on the real libraries.
 */
#include "gpu.h"

#define HUGE_BYTES ((size_t)1 << 50)

static void expect(int result, int wanted, const char *what)
{
	if (result != wanted)
		sample_die("%s: %d instead of %d", what, result, wanted);
}

#define FAILS(wanted, function, ...) expect(CALL(function, __VA_ARGS__), wanted, #function)

/* Before cuInit and without a context. */
static void fail_early(void)
{
	CUdeviceptr address;
	int count_of;
	FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount, &count_of);
	MUST(cuInit, 0);
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2, &address, 4096);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuInit, 1);
}

static void fail_driver(const struct gpu *gpu)
{
	CUdevice device;
	CUdeviceptr address;
	CUmodule module;
	CUfunction function;
	CUstream stream;
	CUevent event;
	float ms;
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet, &device, 99);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &address, HUGE_BYTES);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &address, HUGE_BYTES / 2);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2, &address, 0);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2, 0x1234000);
	FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData, &module, "this is no code at all");
	FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction, &function, gpu->module, "nowhere");
	FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel, gpu->nothing, 1, 1, 1, 2048, 1, 1, 0, NULL,
	      NULL, NULL);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel, gpu->nothing, 0, 1, 1, 32, 1, 1, 0, NULL,
	      NULL, NULL);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel, NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL,
	      NULL);
	MUST(cuEventCreate, &event, 0);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime, &ms, event, event);
	MUST(cuEventDestroy_v2, event);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	FAILS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture, stream, &(CUgraph){ NULL });
	MUST(cuStreamDestroy_v2, stream);
}

static void fail_runtime(void)
{
	void *address;
	char text[16] = { 0 };
	dim3 one = { 1, 1, 1 };
	cudaEvent_t event;
	float ms;
	FAILS(cudaErrorInvalidDevice, cudaSetDevice, 99);
	FAILS(cudaErrorMemoryAllocation, cudaMalloc, &address, HUGE_BYTES);
	FAILS(cudaErrorMemoryAllocation, cudaMalloc, &address, HUGE_BYTES);
	FAILS(cudaErrorInvalidValue, cudaFree, (void *)0x1234000);
	FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy, text, text, sizeof(text),
	      (enum cudaMemcpyKind)9);
	FAILS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel, NULL, one, one, NULL, 0, NULL);
	MUST(cudaEventCreate, &event);
	FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime, &ms, event, event);
	FAILS(cudaErrorInvalidResourceHandle, cudaGetLastError);
	MUST(cudaGetLastError);
	MUST(cudaEventDestroy, event);
}

static int released;

static void hold(void *data)
{
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		;
}

/* Polls of work that a host function keeps from ending: no failures, though they are not 0. */
static void poll_early(void)
{
	CUstream stream;
	CUevent event;
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	MUST(cuEventCreate, &event, 0);
	MUST(cuLaunchHostFunc, stream, hold, NULL);
	MUST(cuEventRecord, event, stream);
	FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery, stream);
	FAILS(CUDA_ERROR_NOT_READY, cuEventQuery, event);
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
	MUST(cuStreamSynchronize, stream);
	MUST(cuEventQuery, event);
	MUST(cuEventDestroy_v2, event);
	MUST(cuStreamDestroy_v2, stream);
}

int main(void)
{
	struct gpu gpu;
	fail_early();
	gpu_open(&gpu);
	fail_driver(&gpu);
	poll_early();
	fail_runtime();
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
