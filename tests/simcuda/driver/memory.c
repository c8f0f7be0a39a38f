// SPDX-License-Identifier: MIT
/* Allocation of device, managed and pinned host memory, and questions about pointers. */
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "ioctls.h"
#include "capture.h"

#define PITCH_ALIGN 512u

/* An allocation that a capture in this thread's way forbids, or that has no context. */
static CUresult may_allocate(CUcontext *ctx)
{
	CUresult result = context_need(ctx);
	return result == CUDA_SUCCESS ? capture_forbids_unsafe() : result;
}

static CUresult device_alloc(CUdeviceptr *address, size_t bytes, enum block_kind kind)
{
	CUcontext ctx;
	CUresult result = may_allocate(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!address || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	ioctls_of_alloc(bytes);
	struct block block = { .bytes = bytes, .kind = kind, .ctx = ctx };
	block.start = device_memory_take(bytes);
	if (!block.start)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!block_add(&block)) {
		device_memory_give(block.start, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = block.start;
	return CUDA_SUCCESS;
}

static CUresult pitch_alloc(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
	if (!pitch || width == 0 || height == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (element != 4 && element != 8 && element != 16)
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = (width + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN;
	return device_alloc(address, *pitch * height, BLOCK_DEVICE);
}

static CUresult managed_alloc(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return device_alloc(address, bytes, BLOCK_MANAGED);
}

/* As the real driver: null is no error, and the free waits for the device. */
static CUresult device_free(CUdeviceptr address)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	struct block block;
	if (!address)
		return CUDA_SUCCESS;
	if (!block_find(address, 1, BLOCK_DEVICE | BLOCK_ASYNC | BLOCK_MANAGED, &block) ||
	    block.start != address)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle_is(block.ctx, HANDLE_CONTEXT))
		streams_drain(block.ctx);
	if (!block_take(address, BLOCK_DEVICE | BLOCK_ASYNC | BLOCK_MANAGED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	block_release(&block);
	return CUDA_SUCCESS;
}

static CUresult host_alloc(void **address, size_t bytes, unsigned int flags)
{
	CUcontext ctx;
	CUresult result = may_allocate(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	void *memory;
	if (!address || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > (size_t)1 << 46 || posix_memalign(&memory, 4096, bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct block block = { .start = (uint64_t)memory,
		               .bytes = bytes,
		               .kind = BLOCK_HOST,
		               .ctx = ctx,
		               .flags = flags };
	if (!block_add(&block)) {
		free(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = memory;
	return CUDA_SUCCESS;
}

static CUresult host_free(void *address)
{
	struct block block;
	if (!address)
		return CUDA_SUCCESS;
	if (!block_find((uint64_t)address, 1, BLOCK_HOST, &block))
		return CUDA_ERROR_INVALID_VALUE;
	if (handle_is(block.ctx, HANDLE_CONTEXT))
		streams_drain(block.ctx);
	if (!block_take((uint64_t)address, BLOCK_HOST, &block))
		return CUDA_ERROR_INVALID_VALUE;
	block_release(&block);
	return CUDA_SUCCESS;
}

static CUresult host_register(void *address, size_t bytes, unsigned int flags)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!address || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct block block = { .start = (uint64_t)address,
		               .bytes = bytes,
		               .ctx = ctx,
		               .kind = BLOCK_REGISTERED,
		               .flags = flags };
	return block_add(&block) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

static CUresult host_unregister(void *address)
{
	struct block block;
	if (!address)
		return CUDA_ERROR_INVALID_VALUE;
	return block_take((uint64_t)address, BLOCK_REGISTERED, &block)
	               ? CUDA_SUCCESS
	               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static CUresult host_device_pointer(CUdeviceptr *device, void *host)
{
	struct block block;
	if (!device || !block_find((uint64_t)host, 1, BLOCK_PINNED | BLOCK_MANAGED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	*device = (CUdeviceptr)host;
	return CUDA_SUCCESS;
}

static CUresult host_flags(unsigned int *flags, void *host)
{
	struct block block;
	if (!flags || !block_find((uint64_t)host, 1, BLOCK_PINNED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = block.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct block block;
	if (!block_find(address, 1, BLOCK_ON_DEVICE | BLOCK_PINNED, &block))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = block.start;
	if (bytes)
		*bytes = block.bytes;
	return CUDA_SUCCESS;
}

static CUresult memory_info(size_t *free_bytes, size_t *total)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	*total = device_memory_bytes();
	*free_bytes = *total - device_memory_used();
	return CUDA_SUCCESS;
}

static CUresult pointer_attribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct block block;
	if (!value || !block_find(address, 1, BLOCK_ON_DEVICE | BLOCK_PINNED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	bool host = block.kind & BLOCK_PINNED;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = block.ctx;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)value = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && block.kind != BLOCK_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)value = (void *)address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)value = block.kind == BLOCK_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = handle_is(block.ctx, HANDLE_CONTEXT) ? block.ctx->device : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)value = block.start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = block.bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult pointer_attributes(unsigned int count, const CUpointer_attribute *attributes,
                                   void **values, CUdeviceptr address)
{
	if (!attributes || !values)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		/* What is not known of a pointer is null, not an error. */
		if (pointer_attribute(values[i], attributes[i], address) != CUDA_SUCCESS &&
		    values[i])
			*(int *)values[i] = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult managed_hint(CUdeviceptr address, size_t bytes)
{
	struct block block;
	return bytes && block_find(address, bytes, BLOCK_MANAGED, &block)
	               ? CUDA_SUCCESS
	               : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemGetInfo_v2, (size_t *, free_bytes, size_t *, total), memory_info(free_bytes, total))
API(cuMemAlloc_v2, (CUdeviceptr *, address, size_t, bytes),
    device_alloc(address, bytes, BLOCK_DEVICE))
API(cuMemAllocPitch_v2,
    (CUdeviceptr *, address, size_t *, pitch, size_t, width, size_t, height, unsigned int, element),
    pitch_alloc(address, pitch, width, height, element))
API(cuMemAllocManaged, (CUdeviceptr *, address, size_t, bytes, unsigned int, flags),
    managed_alloc(address, bytes, flags))
API(cuMemFree_v2, (CUdeviceptr, address), device_free(address))
API(cuMemAllocHost_v2, (void **, address, size_t, bytes), host_alloc(address, bytes, 0))
API(cuMemHostAlloc, (void **, address, size_t, bytes, unsigned int, flags),
    host_alloc(address, bytes, flags))
API(cuMemFreeHost, (void *, address), host_free(address))
API(cuMemHostRegister, (void *, address, size_t, bytes, unsigned int, flags),
    host_register(address, bytes, flags))
API(cuMemHostRegister_v2, (void *, address, size_t, bytes, unsigned int, flags),
    host_register(address, bytes, flags))
API(cuMemHostUnregister, (void *, address), host_unregister(address))
API(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, device, void *, host, unsigned int, flags),
    host_device_pointer(device, host))
API(cuMemHostGetFlags, (unsigned int *, flags, void *, host), host_flags(flags, host))
API(cuMemGetAddressRange_v2, (CUdeviceptr *, base, size_t *, bytes, CUdeviceptr, address),
    address_range(base, bytes, address))
API(cuPointerGetAttribute, (void *, value, CUpointer_attribute, attribute, CUdeviceptr, address),
    pointer_attribute(value, attribute, address))
API(cuPointerGetAttributes,
    (unsigned int, count, CUpointer_attribute *, attributes, void **, values, CUdeviceptr, address),
    pointer_attributes(count, attributes, values, address))
API(cuMemAdvise, (CUdeviceptr, address, size_t, bytes, CUmem_advise, advice, CUdevice, device),
    managed_hint(address, bytes))
API(cuMemAdvise_v2,
    (CUdeviceptr, address, size_t, bytes, CUmem_advise, advice, CUmemLocation, location),
    managed_hint(address, bytes))
API_PTSZ(cuMemPrefetchAsync,
         (CUdeviceptr, address, size_t, bytes, CUdevice, device, CUstream, stream),
         managed_hint(address, bytes))
API_PTSZ(cuMemPrefetchAsync_v2,
         (CUdeviceptr, address, size_t, bytes, CUmemLocation, location, unsigned int, flags,
          CUstream, stream),
         managed_hint(address, bytes))
