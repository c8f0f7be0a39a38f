// SPDX-License-Identifier: MIT
/*
 * Every way to allocate and to free, on both layers; memory freed by another thread and by the
 * other layer's function; a known rest stays live. Then memory goes with its context.
 */
#include <pthread.h>

#include "sample.h"

static CUcontext context;

static void device_memory(void)
{
	CUdeviceptr memory, pitched, managed;
	void *pinned, *host;
	size_t pitch;

	DRIVER(cuMemAlloc_v2, &memory, 1111);
	count_alloc("device", 1111);
	DRIVER(cuMemAllocPitch_v2, &pitched, &pitch, 100, 7, 4);
	count_alloc("device", pitch * 7);
	DRIVER(cuMemAllocManaged, &managed, 2222, CU_MEM_ATTACH_GLOBAL);
	count_alloc("managed", 2222);
	DRIVER(cuMemAllocHost_v2, &pinned, 3333);
	count_alloc("host", 3333);
	DRIVER(cuMemHostAlloc, &host, 4444, CU_MEMHOSTALLOC_PORTABLE);
	count_alloc("host", 4444);
	DRIVER(cuMemFree_v2, pitched);
	count_free("device", pitch * 7);
	DRIVER(cuMemFree_v2, managed);
	count_free("managed", 2222);
	DRIVER(cuMemFreeHost, pinned);
	count_free("host", 3333);
	/* `memory` and `host` stay */
}

static void pool_memory(void)
{
	CUdeviceptr first, second;
	CUmemoryPool pool;
	CUdevice device;
	CUstream stream;

	DRIVER(cuDeviceGet, &device, 0);
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	DRIVER(cuDeviceGetDefaultMemPool, &pool, device);
	DRIVER(cuMemAllocAsync, &first, 5555, stream);
	count_alloc("async", 5555);
	DRIVER(cuMemAllocFromPoolAsync, &second, 6666, pool, stream);
	count_alloc("async", 6666);
	DRIVER(cuMemFreeAsync, first, stream);
	count_free("async", 5555);
	DRIVER(cuStreamSynchronize, stream);
	DRIVER(cuMemFree_v2, second); /* allowed for memory of a pool, too */
	count_free("async", 6666);
}

static void virtual_memory(void)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle handle;
	size_t bytes = 2 << 20;
	CUdeviceptr address;

	DRIVER(cuMemAddressReserve, &address, bytes, 0, 0, 0);
	count("reserved", 1, "%zu", bytes);
	DRIVER(cuMemCreate, &handle, bytes, &properties, 0);
	count_alloc("vmm", bytes);
	DRIVER(cuMemMap, address, bytes, 0, handle, 0);
	DRIVER(cuMemUnmap, address, bytes);
	DRIVER(cuMemRelease, handle);
	count_free("vmm", bytes);

	/* as allocators that grow do it: the handle is given back at once */
	DRIVER(cuMemCreate, &handle, bytes, &properties, 0);
	count_alloc("vmm", bytes);
	DRIVER(cuMemMap, address, bytes, 0, handle, 0);
	DRIVER(cuMemRelease, handle);
	DRIVER(cuMemUnmap, address, bytes);
	count_free("vmm", bytes);
	DRIVER(cuMemAddressFree, address, bytes);

	/* and what is mapped to the end is there to the end */
	DRIVER(cuMemAddressReserve, &address, bytes, 0, 0, 0);
	count("reserved", 1, "%zu", bytes);
	DRIVER(cuMemCreate, &handle, bytes, &properties, 0);
	count_alloc("vmm", bytes);
	DRIVER(cuMemMap, address, bytes, 0, handle, 0);
	DRIVER(cuMemRelease, handle);
}

static void runtime_memory(void)
{
	struct cudaChannelFormatDesc format = { 32, 0, 0, 0, cudaChannelFormatKindFloat };
	struct cudaPitchedPtr volume;
	void *memory, *pitched, *pinned;
	cudaArray_t array;
	size_t pitch;

	RUNTIME(cudaMalloc, &memory, 7777);
	count_alloc("device", 7777);
	RUNTIME(cudaMallocPitch, &pitched, &pitch, 100, 9);
	count_alloc("device", pitch * 9);
	RUNTIME(cudaMalloc3D, &volume, (struct cudaExtent){ 64, 5, 3 });
	count_alloc("device", volume.pitch * 5 * 3);
	RUNTIME(cudaMallocHost, &pinned, 8888);
	count_alloc("host", 8888);
	RUNTIME(cudaMallocArray, &array, &format, 16, 8, 0);
	count_alloc("array", 16 * 8 * 4);
	RUNTIME(cudaFree, pitched);
	count_free("device", pitch * 9);
	RUNTIME(cudaFreeHost, pinned);
	count_free("host", 8888);
	RUNTIME(cudaFreeArray, array);
	count_free("array", 16 * 8 * 4);
	DRIVER(cuMemFree_v2, (CUdeviceptr)memory); /* allocated by the runtime */
	count_free("device", 7777);
	/* the volume stays */
	RUNTIME(cudaFree, NULL); /* does nothing and is no error */
}

static void *free_elsewhere(void *memory)
{
	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuMemFree_v2, (CUdeviceptr)memory);
	count_free("device", 9999);
	return NULL;
}

static void freed_by_another_thread(void)
{
	CUdeviceptr memory;
	pthread_t thread;

	DRIVER(cuMemAlloc_v2, &memory, 9999);
	count_alloc("device", 9999);
	pthread_create(&thread, NULL, free_elsewhere, (void *)memory);
	pthread_join(thread, NULL);
}

int main(void)
{
	context = sample_context();
	device_memory();
	pool_memory();
	virtual_memory();
	runtime = sample_open("libcudart.so.13");
	runtime_memory();
	freed_by_another_thread();
	return sample_end();
}
