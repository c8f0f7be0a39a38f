// SPDX-License-Identifier: MIT
/*
 * memory: every kind of allocation and free of both layers, frees by another thread than the one
 * that allocated, frees of null, and some allocations that stay: "live" in the counts.
 */
#include <pthread.h>
#include <string.h>

#include "gpu.h"

#define MIB ((size_t)1 << 20)

/* An allocation whose call succeeded. */
#define ALLOCATED(function, kind, address, bytes)                                                  \
	count_alloc(#function, kind, (uint64_t)(address), bytes)

static void driver_kinds(CUstream stream)
{
	CUdeviceptr address;
	size_t pitch;
	void *host;
	MUST(cuMemAllocPitch_v2, &address, &pitch, 1000, 10, 4);
	ALLOCATED(cuMemAllocPitch_v2, "device", address, pitch * 10);
	count(NUMBERS, "pitch", pitch);
	gpu_free(address);
	MUST(cuMemAllocManaged, &address, 3 * MIB, CU_MEM_ATTACH_GLOBAL);
	ALLOCATED(cuMemAllocManaged, "managed", address, 3 * MIB);
	memset((void *)address, 0, MIB);
	gpu_free(address);
	MUST(cuMemAllocHost_v2, &host, 2 * MIB);
	ALLOCATED(cuMemAllocHost_v2, "host", host, 2 * MIB);
	count_free((uint64_t)host);
	MUST(cuMemFreeHost, host);
	MUST(cuMemHostAlloc, &host, 5000, CU_MEMHOSTALLOC_PORTABLE);
	ALLOCATED(cuMemHostAlloc, "host", host, 5000);
	count_free((uint64_t)host);
	MUST(cuMemFreeHost, host);
	MUST(cuMemAllocAsync, &address, 7 * MIB, stream);
	ALLOCATED(cuMemAllocAsync, "async", address, 7 * MIB);
	count_free(address);
	MUST(cuMemFreeAsync, address, stream);
	MUST(cuStreamSynchronize, stream);
}

static void driver_pool(CUdevice device, CUstream stream)
{
	CUmemoryPool pool;
	CUdeviceptr address;
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	MUST(cuMemPoolCreate, &pool, &properties);
	MUST(cuMemAllocFromPoolAsync, &address, MIB, pool, stream);
	ALLOCATED(cuMemAllocFromPoolAsync, "async", address, MIB);
	count_free(address);
	MUST(cuMemFreeAsync, address, stream);
	MUST(cuStreamSynchronize, stream);
	MUST(cuMemPoolDestroy, pool);
}

/* Physical memory counts when it is created; the addresses that it is mapped to do not. */
static void driver_vmm(CUdevice device)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUmemAccessDesc access = { properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;
	size_t grain;
	MUST(cuMemGetAllocationGranularity, &grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	MUST(cuMemAddressReserve, &range, 4 * grain, 0, 0, 0);
	MUST(cuMemCreate, &handle, 2 * grain, &properties, 0);
	ALLOCATED(cuMemCreate, "vmm", handle, 2 * grain);
	MUST(cuMemMap, range, 2 * grain, 0, handle, 0);
	MUST(cuMemSetAccess, range, 2 * grain, &access, 1);
	MUST(cuMemsetD8_v2, range, 1, 2 * grain);
	count_bytes("cuMemsetD8_v2", "set", 2 * grain);
	MUST(cuMemUnmap, range, 2 * grain);
	count_free(handle);
	MUST(cuMemRelease, handle);
	MUST(cuMemAddressFree, range, 4 * grain);
}

static void driver_array(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = {
		.Width = 64, .Height = 32, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4
	};
	CUarray array;
	MUST(cuArrayCreate_v2, &array, &flat);
	count(NUMBERS, "arrays", 1);
	MUST(cuArrayDestroy, array);
}

static void runtime_kinds(void)
{
	void *address;
	size_t pitch;
	struct cudaPitchedPtr pitched;
	struct cudaExtent extent = { 300, 20, 5 };
	MUST(cudaMalloc, &address, 12345);
	ALLOCATED(cudaMalloc, "device", address, 12345);
	count_free((uint64_t)address);
	MUST(cudaFree, address);
	MUST(cudaFree, NULL);
	MUST(cudaMallocPitch, &address, &pitch, 100, 50);
	ALLOCATED(cudaMallocPitch, "device", address, pitch * 50);
	count_free((uint64_t)address);
	MUST(cudaFree, address);
	MUST(cudaMalloc3D, &pitched, extent);
	ALLOCATED(cudaMalloc3D, "device", pitched.ptr,
		  pitched.pitch * extent.height * extent.depth);
	count_free((uint64_t)pitched.ptr);
	MUST(cudaFree, pitched.ptr);
	MUST(cudaMallocManaged, &address, MIB, cudaMemAttachGlobal);
	ALLOCATED(cudaMallocManaged, "managed", address, MIB);
	count_free((uint64_t)address);
	MUST(cudaFree, address);
	MUST(cudaMallocHost, &address, 4096);
	ALLOCATED(cudaMallocHost, "host", address, 4096);
	count_free((uint64_t)address);
	MUST(cudaFreeHost, address);
	MUST(cudaHostAlloc, &address, 8192, cudaHostAllocDefault);
	ALLOCATED(cudaHostAlloc, "host", address, 8192);
	count_free((uint64_t)address);
	MUST(cudaFreeHost, address);
}

static void runtime_async(void)
{
	cudaStream_t stream;
	cudaMemPool_t pool;
	void *address;
	struct cudaMemPoolProps properties = { .allocType = cudaMemAllocationTypePinned,
					       .location = { cudaMemLocationTypeDevice, 0 } };
	MUST(cudaStreamCreate, &stream);
	MUST(cudaMallocAsync, &address, 2 * MIB, stream);
	ALLOCATED(cudaMallocAsync, "async", address, 2 * MIB);
	count_free((uint64_t)address);
	MUST(cudaFreeAsync, address, stream);
	MUST(cudaMemPoolCreate, &pool, &properties);
	MUST(cudaMallocFromPoolAsync, &address, 3 * MIB, pool, stream);
	ALLOCATED(cudaMallocFromPoolAsync, "async", address, 3 * MIB);
	count_free((uint64_t)address);
	MUST(cudaFreeAsync, address, stream);
	MUST(cudaStreamSynchronize, stream);
	MUST(cudaMemPoolDestroy, pool);
	MUST(cudaStreamDestroy, stream);
}

static struct gpu gpu;

static void *free_elsewhere(void *data)
{
	CUdeviceptr *address = data;
	count_thread();
	gpu_attach(&gpu);
	for (int i = 0; i < 8; i++)
		gpu_free(address[i]);
	return NULL;
}

int main(void)
{
	CUstream stream;
	CUdeviceptr address[8];
	pthread_t thread;
	void *kept;
	gpu_open(&gpu);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	driver_kinds(stream);
	driver_pool(gpu.device, stream);
	driver_vmm(gpu.device);
	driver_array();
	runtime_kinds();
	runtime_async();
	for (int i = 0; i < 8; i++)
		address[i] = gpu_alloc(MIB);
	if (pthread_create(&thread, NULL, free_elsewhere, address) != 0)
		sample_die("no thread");
	pthread_join(thread, NULL);
	MUST(cuMemFree_v2, 0);
	/* These stay: 2 from the driver, 1 from the runtime, 1 pinned. */
	gpu_alloc(MIB);
	gpu_alloc(10000);
	MUST(cudaMalloc, &kept, 4 * MIB);
	ALLOCATED(cudaMalloc, "device", kept, 4 * MIB);
	MUST(cuMemAllocHost_v2, &kept, 65536);
	ALLOCATED(cuMemAllocHost_v2, "host", kept, 65536);
	sample_finish();
	return 0;
}
