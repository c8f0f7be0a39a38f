// SPDX-License-Identifier: MIT
/* Stream-ordered allocation. The address is given out at once; a free takes effect when
 * the stream */
/* comes to it. */
#include "block.h"
#include "capture.h"

struct CUmemPoolHandle_st {
	struct handle handle;
	CUdevice device;
	cuuint64_t release_threshold;
};

static CUmemoryPool default_pool[DEVICES_MAX], device_pool[DEVICES_MAX]; /* by sim_lock */

static CUmemoryPool pool_new(CUdevice device)
{
	CUmemoryPool pool = handle_new(HANDLE_POOL, sizeof(*pool));
	if (pool)
		pool->device = device;
	return pool;
}

static CUmemoryPool default_pool_of(CUdevice device)
{
	sim_enter();
	if (!default_pool[device])
		default_pool[device] = pool_new(device);
	CUmemoryPool pool = default_pool[device];
	sim_leave();
	return pool;
}

static CUresult pool_of_device(CUmemoryPool *pool, CUdevice device, bool by_default)
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = by_default ? NULL : device_pool[device];
	if (!*pool)
		*pool = default_pool_of(device);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_device_pool(CUdevice device, CUmemoryPool pool)
{
	if (device < 0 || device >= device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	if (!handle_is(pool, HANDLE_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	device_pool[device] = pool;
	return CUDA_SUCCESS;
}

static CUresult pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	if (!pool || !properties || properties->location.id < 0 ||
	    properties->location.id >= device_count())
		return CUDA_ERROR_INVALID_VALUE;
	*pool = pool_new(properties->location.id);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult pool_destroy(CUmemoryPool pool)
{
	if (!handle_is(pool, HANDLE_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < DEVICES_MAX; i++) {
		if (pool == default_pool[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (pool == device_pool[i])
			device_pool[i] = NULL;
	}
	handle_free(pool, HANDLE_POOL);
	return CUDA_SUCCESS;
}

static CUresult alloc_async(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream handle,
                            enum null_stream null)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!address || bytes == 0 || (pool && !handle_is(pool, HANDLE_POOL)))
		return CUDA_ERROR_INVALID_VALUE;
	struct block block = {
		.bytes = bytes, .kind = BLOCK_ASYNC, .ctx = stream->ctx, .owner = pool
	};
	block.start = device_memory_take(bytes);
	if (!block.start)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!block_add(&block)) {
		block_release(&block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct task task = { .kind = TASK_ALLOC };
	result = stream_submit(stream, &task, SUBMIT_ASYNC);
	if (result == CUDA_SUCCESS)
		*address = block.start;
	else if (block_take(block.start, BLOCK_ASYNC, &block))
		block_release(&block);
	return result;
}

static CUresult free_async(CUdeviceptr address, CUstream handle, enum null_stream null)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS || !address)
		return result;
	struct block block;
	struct task task = { .kind = TASK_FREE, .free = { address } };
	if (!block_find(address, 1, BLOCK_ASYNC | BLOCK_DEVICE, &block) || block.start != address)
		return CUDA_ERROR_INVALID_VALUE;
	/* A captured free does not run with its graph (see plan_run), so it claims nothing. */
	if (!stream->capture && !block_claim(address, BLOCK_ASYNC | BLOCK_DEVICE))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_submit(stream, &task, SUBMIT_ASYNC);
}

static CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value,
                               bool set)
{
	if (!handle_is(pool, HANDLE_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	cuuint64_t *number = value;
	if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && set)
		pool->release_threshold = *number;
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*number = pool->release_threshold;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT && !set)
		*number = device_memory_used();
	else if (!set)
		*(int *)value = 0; /* the reuse policies, of which there are none here */
	return CUDA_SUCCESS;
}

static CUresult pool_trim(CUmemoryPool pool)
{
	return handle_is(pool, HANDLE_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuDeviceGetDefaultMemPool, (CUmemoryPool *, pool, CUdevice, device),
    pool_of_device(pool, device, true))
API(cuDeviceGetMemPool, (CUmemoryPool *, pool, CUdevice, device),
    pool_of_device(pool, device, false))
API(cuDeviceSetMemPool, (CUdevice, device, CUmemoryPool, pool), set_device_pool(device, pool))
API(cuMemPoolCreate, (CUmemoryPool *, pool, const CUmemPoolProps *, properties),
    pool_create(pool, properties))
API(cuMemPoolDestroy, (CUmemoryPool, pool), pool_destroy(pool))
API(cuMemPoolTrimTo, (CUmemoryPool, pool, size_t, keep), pool_trim(pool))
API(cuMemPoolSetAttribute, (CUmemoryPool, pool, CUmemPool_attribute, attribute, void *, value),
    pool_attribute(pool, attribute, value, true))
API(cuMemPoolGetAttribute, (CUmemoryPool, pool, CUmemPool_attribute, attribute, void *, value),
    pool_attribute(pool, attribute, value, false))
API(cuMemPoolSetAccess, (CUmemoryPool, pool, const CUmemAccessDesc *, access, size_t, count),
    pool_trim(pool))
API_PTSZ(cuMemAllocAsync, (CUdeviceptr *, address, size_t, bytes, CUstream, stream),
         alloc_async(address, bytes, NULL, stream, null))
API_PTSZ(cuMemAllocFromPoolAsync,
         (CUdeviceptr *, address, size_t, bytes, CUmemoryPool, pool, CUstream, stream),
         alloc_async(address, bytes, pool, stream, null))
API_PTSZ(cuMemFreeAsync, (CUdeviceptr, address, CUstream, stream),
         free_async(address, stream, null))
