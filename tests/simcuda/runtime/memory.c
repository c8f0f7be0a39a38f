// SPDX-License-Identifier: MIT
/* Allocations, copies and sets of the simulated runtime. */
#include <string.h>

#include "runtime.h"

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

/* Unlike the driver's, the runtime's allocation of nothing succeeds, and gives null. */
static int device_alloc(void **address, size_t bytes)
{
	if (!address)
		return cudaErrorInvalidValue;
	*address = NULL;
	return bytes ? (int)drv.cuMemAlloc_v2((CUdeviceptr *)address, bytes) : cudaSuccess;
}

static int device_free(void *address)
{
	return address ? (int)drv.cuMemFree_v2(ADDRESS(address)) : cudaSuccess;
}

static int host_free(void *address)
{
	return address ? (int)drv.cuMemFreeHost(address) : cudaSuccess;
}

static int pitched_alloc(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	CUdeviceptr address;
	if (!pitched)
		return cudaErrorInvalidValue;
	int result = (int)drv.cuMemAllocPitch_v2(&address, &pitched->pitch, extent.width,
	                                         extent.height * extent.depth, 4);
	if (result == cudaSuccess) {
		pitched->ptr = (void *)(uintptr_t)address;
		pitched->xsize = extent.width;
		pitched->ysize = extent.height;
	}
	return result;
}

static CUarray_format array_format(const struct cudaChannelFormatDesc *format)
{
	bool is_signed = format->f == cudaChannelFormatKindSigned;
	if (format->f == cudaChannelFormatKindFloat)
		return format->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
	if (format->x == 8)
		return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
	if (format->x == 16)
		return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
	return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
}

static int array_alloc(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                       struct cudaExtent extent, unsigned int flags)
{
	if (!array || !format)
		return cudaErrorInvalidValue;
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Format = array_format(format),
		.NumChannels = 1u + (format->y != 0) + (format->z != 0) + (format->w != 0),
		.Flags = flags,
	};
	return (int)drv.cuArray3DCreate_v2((CUarray *)array, &descriptor);
}

static int array_free(cudaArray_t array)
{
	return array ? (int)drv.cuArrayDestroy((CUarray)array) : cudaSuccess;
}

static int pointer_attributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
	unsigned int type, managed;
	CUdeviceptr address = ADDRESS(pointer);
	if (!attributes)
		return cudaErrorInvalidValue;
	memset(attributes, 0, sizeof(*attributes));
	if (drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) !=
	    CUDA_SUCCESS) {
		attributes->type = cudaMemoryTypeUnregistered;
		attributes->device = -2; /* as the real runtime marks what it does not know */
		attributes->hostPointer = (void *)pointer;
		return cudaSuccess;
	}
	drv.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
	drv.cuPointerGetAttribute(&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	                          address);
	attributes->type = managed                      ? cudaMemoryTypeManaged
	                   : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
	                                                : cudaMemoryTypeDevice;
	attributes->devicePointer = (void *)pointer;
	if (attributes->type != cudaMemoryTypeDevice)
		attributes->hostPointer = (void *)pointer;
	return cudaSuccess;
}

static int pool_create(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	if (!properties)
		return cudaErrorInvalidValue;
	CUmemPoolProps wanted = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, properties->location.id },
		.maxSize = properties->maxSize,
	};
	return (int)drv.cuMemPoolCreate(pool, &wanted);
}

static CUmemLocation location_of(int type, int id)
{
	return (CUmemLocation){ (CUmemLocationType)type, id };
}

RT(cudaMemGetInfo, (size_t *, free, size_t *, total), drv.cuMemGetInfo_v2(free, total))
RT(cudaMalloc, (void **, address, size_t, bytes), device_alloc(address, bytes))
RT(cudaMallocManaged, (void **, address, size_t, bytes, unsigned int, flags),
   drv.cuMemAllocManaged((CUdeviceptr *)address, bytes, flags))
RT(cudaMallocPitch, (void **, address, size_t *, pitch, size_t, width, size_t, height),
   drv.cuMemAllocPitch_v2((CUdeviceptr *)address, pitch, width, height, 4))
RT(cudaMalloc3D, (struct cudaPitchedPtr *, pitched, struct cudaExtent, extent),
   pitched_alloc(pitched, extent))
RT(cudaFree, (void *, address), device_free(address))
RT(cudaMallocHost, (void **, address, size_t, bytes), drv.cuMemAllocHost_v2(address, bytes))
RT(cudaHostAlloc, (void **, address, size_t, bytes, unsigned int, flags),
   drv.cuMemHostAlloc(address, bytes, flags))
RT(cudaFreeHost, (void *, address), host_free(address))
RT(cudaHostRegister, (void *, address, size_t, bytes, unsigned int, flags),
   drv.cuMemHostRegister_v2(address, bytes, flags))
RT(cudaHostUnregister, (void *, address), drv.cuMemHostUnregister(address))
RT(cudaHostGetDevicePointer, (void **, device, void *, host, unsigned int, flags),
   drv.cuMemHostGetDevicePointer_v2((CUdeviceptr *)device, host, flags))
RT(cudaHostGetFlags, (unsigned int *, flags, void *, host), drv.cuMemHostGetFlags(flags, host))
RT(cudaMallocArray,
   (cudaArray_t *, array, const struct cudaChannelFormatDesc *, format, size_t, width, size_t,
    height, unsigned int, flags),
   array_alloc(array, format, (struct cudaExtent){ width, height, 0 }, flags))
RT(cudaMalloc3DArray,
   (cudaArray_t *, array, const struct cudaChannelFormatDesc *, format, struct cudaExtent, extent,
    unsigned int, flags),
   array_alloc(array, format, extent, flags))
RT(cudaFreeArray, (cudaArray_t, array), array_free(array))
RT(cudaPointerGetAttributes, (struct cudaPointerAttributes *, attributes, const void *, pointer),
   pointer_attributes(attributes, pointer))
RT(cudaDeviceGetDefaultMemPool, (cudaMemPool_t *, pool, int, device),
   drv.cuDeviceGetDefaultMemPool(pool, device))
RT(cudaDeviceGetMemPool, (cudaMemPool_t *, pool, int, device), drv.cuDeviceGetMemPool(pool, device))
RT(cudaDeviceSetMemPool, (int, device, cudaMemPool_t, pool), drv.cuDeviceSetMemPool(device, pool))
RT(cudaMemPoolCreate, (cudaMemPool_t *, pool, const struct cudaMemPoolProps *, properties),
   pool_create(pool, properties))
RT(cudaMemPoolDestroy, (cudaMemPool_t, pool), drv.cuMemPoolDestroy(pool))
RT(cudaMemPoolTrimTo, (cudaMemPool_t, pool, size_t, keep), drv.cuMemPoolTrimTo(pool, keep))
RT(cudaMemPoolSetAttribute, (cudaMemPool_t, pool, enum cudaMemPoolAttr, attribute, void *, value),
   drv.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value))
RT(cudaMemPoolGetAttribute, (cudaMemPool_t, pool, enum cudaMemPoolAttr, attribute, void *, value),
   drv.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value))
RT_PTSZ(cudaMallocAsync, (void **, address, size_t, bytes, cudaStream_t, stream),
        DRV(cuMemAllocAsync, _ptsz)((CUdeviceptr *)address, bytes, stream))
RT_PTSZ(cudaMallocFromPoolAsync,
        (void **, address, size_t, bytes, cudaMemPool_t, pool, cudaStream_t, stream),
        DRV(cuMemAllocFromPoolAsync, _ptsz)((CUdeviceptr *)address, bytes, pool, stream))
RT_PTSZ(cudaFreeAsync, (void *, address, cudaStream_t, stream),
        DRV(cuMemFreeAsync, _ptsz)(ADDRESS(address), stream))
#if CUDART_MAJOR < 13
RT(cudaMemAdvise,
   (const void *, address, size_t, bytes, enum cudaMemoryAdvise, advice, int, device),
   drv.cuMemAdvise_v2(ADDRESS(address), bytes, (CUmem_advise)advice,
                      location_of(CU_MEM_LOCATION_TYPE_DEVICE, device)))
RT_PTSZ(cudaMemPrefetchAsync,
        (const void *, address, size_t, bytes, int, device, cudaStream_t, stream),
        DRV(cuMemPrefetchAsync_v2, _ptsz)(ADDRESS(address), bytes,
                                          location_of(CU_MEM_LOCATION_TYPE_DEVICE, device), 0,
                                          stream))
#else
RT(cudaMemAdvise,
   (const void *, address, size_t, bytes, enum cudaMemoryAdvise, advice, struct cudaMemLocation,
    location),
   drv.cuMemAdvise_v2(ADDRESS(address), bytes, (CUmem_advise)advice,
                      location_of(location.type, location.id)))
RT_PTSZ(cudaMemPrefetchAsync,
        (const void *, address, size_t, bytes, struct cudaMemLocation, location, unsigned int,
         flags, cudaStream_t, stream),
        DRV(cuMemPrefetchAsync_v2, _ptsz)(ADDRESS(address), bytes,
                                          location_of(location.type, location.id), flags, stream))
#endif
