// SPDX-License-Identifier: MIT
/* Copies and sets: the runtime's kinds become the driver's functions. */
#include "runtime.h"

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static int copy(bool per_thread, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	if (bytes == 0)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return (int)DRV(cuMemcpyHtoD_v2, _ptds)(ADDRESS(dst), src, bytes);
	case cudaMemcpyDeviceToHost:
		return (int)DRV(cuMemcpyDtoH_v2, _ptds)(dst, ADDRESS(src), bytes);
	case cudaMemcpyDeviceToDevice:
		return (int)DRV(cuMemcpyDtoD_v2, _ptds)(ADDRESS(dst), ADDRESS(src), bytes);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return (int)DRV(cuMemcpy, _ptds)(ADDRESS(dst), ADDRESS(src), bytes);
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

static int copy_async(bool per_thread, void *dst, const void *src, size_t bytes,
                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	if (bytes == 0)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return (int)DRV(cuMemcpyHtoDAsync_v2, _ptsz)(ADDRESS(dst), src, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return (int)DRV(cuMemcpyDtoHAsync_v2, _ptsz)(dst, ADDRESS(src), bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return (int)DRV(cuMemcpyDtoDAsync_v2, _ptsz)(ADDRESS(dst), ADDRESS(src), bytes,
		                                             stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return (int)DRV(cuMemcpyAsync, _ptsz)(ADDRESS(dst), ADDRESS(src), bytes, stream);
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

/* ---- shaped copies --------------------------------------------------------------------------- */

/* What the kind says of one end; what it leaves open the driver finds out from the address. */
static CUmemorytype side(enum cudaMemcpyKind kind, bool destination)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	bool device = kind == cudaMemcpyDeviceToDevice ||
	              kind == (destination ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
	return device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static void set_source(CUDA_MEMCPY2D *flat, const void *src, size_t pitch, enum cudaMemcpyKind kind)
{
	flat->srcMemoryType = side(kind, false);
	flat->srcHost = src;
	flat->srcDevice = ADDRESS(src);
	flat->srcPitch = pitch;
}

static void set_target(CUDA_MEMCPY2D *flat, void *dst, size_t pitch, enum cudaMemcpyKind kind)
{
	flat->dstMemoryType = side(kind, true);
	flat->dstHost = dst;
	flat->dstDevice = ADDRESS(dst);
	flat->dstPitch = pitch;
}

static int copy_flat(bool per_thread, CUDA_MEMCPY2D *flat, size_t width, size_t height,
                     enum cudaMemcpyKind kind, const cudaStream_t *stream)
{
	if ((unsigned int)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	flat->WidthInBytes = width;
	flat->Height = height;
	if (stream)
		return (int)DRV(cuMemcpy2DAsync_v2, _ptsz)(flat, *stream);
	return (int)DRV(cuMemcpy2DUnaligned_v2, _ptds)(flat);
}

static int copy_2d(bool per_thread, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                   size_t width, size_t height, enum cudaMemcpyKind kind,
                   const cudaStream_t *stream)
{
	if (width > dst_pitch || width > src_pitch)
		return cudaErrorInvalidPitchValue;
	CUDA_MEMCPY2D flat = { 0 };
	set_source(&flat, src, src_pitch, kind);
	set_target(&flat, dst, dst_pitch, kind);
	return copy_flat(per_thread, &flat, width, height, kind, stream);
}

static int copy_to_array(bool per_thread, cudaArray_t dst, size_t x, size_t y, const void *src,
                         size_t pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
                         const cudaStream_t *stream)
{
	CUDA_MEMCPY2D flat = { .dstMemoryType = CU_MEMORYTYPE_ARRAY,
		               .dstArray = (CUarray)dst,
		               .dstXInBytes = x,
		               .dstY = y };
	set_source(&flat, src, pitch, kind);
	return copy_flat(per_thread, &flat, width, height, kind, stream);
}

static int copy_from_array(bool per_thread, void *dst, size_t pitch, cudaArray_const_t src,
                           size_t x, size_t y, size_t width, size_t height,
                           enum cudaMemcpyKind kind, const cudaStream_t *stream)
{
	CUDA_MEMCPY2D flat = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
		               .srcArray = (CUarray)src,
		               .srcXInBytes = x,
		               .srcY = y };
	set_target(&flat, dst, pitch, kind);
	return copy_flat(per_thread, &flat, width, height, kind, stream);
}

static int copy_3d(bool per_thread, const struct cudaMemcpy3DParms *shape,
                   const cudaStream_t *stream)
{
	if (!shape || (unsigned int)shape->kind > cudaMemcpyDefault)
		return cudaErrorInvalidValue;
	CUDA_MEMCPY3D wanted = {
		.srcXInBytes = shape->srcPos.x,
		.srcY = shape->srcPos.y,
		.srcZ = shape->srcPos.z,
		.srcMemoryType = shape->srcArray ? CU_MEMORYTYPE_ARRAY : side(shape->kind, false),
		.srcHost = shape->srcPtr.ptr,
		.srcDevice = ADDRESS(shape->srcPtr.ptr),
		.srcArray = (CUarray)shape->srcArray,
		.srcPitch = shape->srcPtr.pitch,
		.srcHeight = shape->srcPtr.ysize,
		.dstXInBytes = shape->dstPos.x,
		.dstY = shape->dstPos.y,
		.dstZ = shape->dstPos.z,
		.dstMemoryType = shape->dstArray ? CU_MEMORYTYPE_ARRAY : side(shape->kind, true),
		.dstHost = shape->dstPtr.ptr,
		.dstDevice = ADDRESS(shape->dstPtr.ptr),
		.dstArray = (CUarray)shape->dstArray,
		.dstPitch = shape->dstPtr.pitch,
		.dstHeight = shape->dstPtr.ysize,
		.WidthInBytes = shape->extent.width,
		.Height = shape->extent.height,
		.Depth = shape->extent.depth,
	};
	if (stream)
		return (int)DRV(cuMemcpy3DAsync_v2, _ptsz)(&wanted, *stream);
	return (int)DRV(cuMemcpy3D_v2, _ptds)(&wanted);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static int copy_symbol(bool per_thread, const void *symbol, void *to, const void *from,
                       size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                       const cudaStream_t *stream)
{
	CUdeviceptr address;
	size_t room;
	int result = symbol_resolve(symbol, &address, &room);
	if (result != cudaSuccess)
		return result;
	if (offset > room || bytes > room - offset)
		return cudaErrorInvalidValue;
	void *variable = (void *)(uintptr_t)(address + offset);
	void *dst = to ? to : variable;
	const void *src = to ? variable : from;
	if (stream)
		return copy_async(per_thread, dst, src, bytes, kind, *stream);
	return copy(per_thread, dst, src, bytes, kind);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Slices that follow one another without a gap are one set, others one each. */
static int set_3d(bool per_thread, struct cudaPitchedPtr dst, int value, struct cudaExtent extent,
                  const cudaStream_t *stream)
{
	size_t slices = extent.depth, rows = extent.height;
	if (dst.ysize == extent.height) {
		rows *= slices;
		slices = slices ? 1 : 0;
	}
	int result = cudaSuccess;
	for (size_t z = 0; z < slices && result == cudaSuccess; z++) {
		CUdeviceptr at = ADDRESS(dst.ptr) + z * dst.ysize * dst.pitch;
		if (stream)
			result = (int)DRV(cuMemsetD2D8Async, _ptsz)(
				at, dst.pitch, (unsigned char)value, extent.width, rows, *stream);
		else
			result = (int)DRV(cuMemsetD2D8_v2, _ptds)(
				at, dst.pitch, (unsigned char)value, extent.width, rows);
	}
	return result;
}

RT_PTDS(cudaMemcpy, (void *, dst, const void *, src, size_t, bytes, enum cudaMemcpyKind, kind),
        copy(per_thread, dst, src, bytes, kind))
RT_PTSZ(cudaMemcpyAsync,
        (void *, dst, const void *, src, size_t, bytes, enum cudaMemcpyKind, kind, cudaStream_t,
         stream),
        copy_async(per_thread, dst, src, bytes, kind, stream))
RT(cudaMemcpyPeer,
   (void *, dst, int, dst_device, const void *, src, int, src_device, size_t, bytes),
   drv.cuMemcpyPeer(ADDRESS(dst), NULL, ADDRESS(src), NULL, bytes))
RT(cudaMemcpyPeerAsync,
   (void *, dst, int, dst_device, const void *, src, int, src_device, size_t, bytes, cudaStream_t,
    stream),
   drv.cuMemcpyPeerAsync(ADDRESS(dst), NULL, ADDRESS(src), NULL, bytes, stream))
RT_PTDS(cudaMemcpy2D,
        (void *, dst, size_t, dst_pitch, const void *, src, size_t, src_pitch, size_t, width,
         size_t, height, enum cudaMemcpyKind, kind),
        copy_2d(per_thread, dst, dst_pitch, src, src_pitch, width, height, kind, NULL))
RT_PTSZ(cudaMemcpy2DAsync,
        (void *, dst, size_t, dst_pitch, const void *, src, size_t, src_pitch, size_t, width,
         size_t, height, enum cudaMemcpyKind, kind, cudaStream_t, stream),
        copy_2d(per_thread, dst, dst_pitch, src, src_pitch, width, height, kind, &stream))
RT_PTDS(cudaMemcpy2DToArray,
        (cudaArray_t, dst, size_t, x, size_t, y, const void *, src, size_t, pitch, size_t, width,
         size_t, height, enum cudaMemcpyKind, kind),
        copy_to_array(per_thread, dst, x, y, src, pitch, width, height, kind, NULL))
RT_PTSZ(cudaMemcpy2DToArrayAsync,
        (cudaArray_t, dst, size_t, x, size_t, y, const void *, src, size_t, pitch, size_t, width,
         size_t, height, enum cudaMemcpyKind, kind, cudaStream_t, stream),
        copy_to_array(per_thread, dst, x, y, src, pitch, width, height, kind, &stream))
RT_PTDS(cudaMemcpy2DFromArray,
        (void *, dst, size_t, pitch, cudaArray_const_t, src, size_t, x, size_t, y, size_t, width,
         size_t, height, enum cudaMemcpyKind, kind),
        copy_from_array(per_thread, dst, pitch, src, x, y, width, height, kind, NULL))
RT_PTSZ(cudaMemcpy2DFromArrayAsync,
        (void *, dst, size_t, pitch, cudaArray_const_t, src, size_t, x, size_t, y, size_t, width,
         size_t, height, enum cudaMemcpyKind, kind, cudaStream_t, stream),
        copy_from_array(per_thread, dst, pitch, src, x, y, width, height, kind, &stream))
RT_PTDS(cudaMemcpy3D, (const struct cudaMemcpy3DParms *, shape), copy_3d(per_thread, shape, NULL))
RT_PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *, shape, cudaStream_t, stream),
        copy_3d(per_thread, shape, &stream))
RT_PTDS(cudaMemcpyToSymbol,
        (const void *, symbol, const void *, src, size_t, bytes, size_t, offset,
         enum cudaMemcpyKind, kind),
        copy_symbol(per_thread, symbol, NULL, src, bytes, offset, kind, NULL))
RT_PTSZ(cudaMemcpyToSymbolAsync,
        (const void *, symbol, const void *, src, size_t, bytes, size_t, offset,
         enum cudaMemcpyKind, kind, cudaStream_t, stream),
        copy_symbol(per_thread, symbol, NULL, src, bytes, offset, kind, &stream))
RT_PTDS(cudaMemcpyFromSymbol,
        (void *, dst, const void *, symbol, size_t, bytes, size_t, offset, enum cudaMemcpyKind,
         kind),
        copy_symbol(per_thread, symbol, dst, NULL, bytes, offset, kind, NULL))
RT_PTSZ(cudaMemcpyFromSymbolAsync,
        (void *, dst, const void *, symbol, size_t, bytes, size_t, offset, enum cudaMemcpyKind,
         kind, cudaStream_t, stream),
        copy_symbol(per_thread, symbol, dst, NULL, bytes, offset, kind, &stream))
RT_PTDS(cudaMemset, (void *, dst, int, value, size_t, bytes),
        DRV(cuMemsetD8_v2, _ptds)(ADDRESS(dst), (unsigned char)value, bytes))
RT_PTSZ(cudaMemsetAsync, (void *, dst, int, value, size_t, bytes, cudaStream_t, stream),
        DRV(cuMemsetD8Async, _ptsz)(ADDRESS(dst), (unsigned char)value, bytes, stream))
RT_PTDS(cudaMemset2D, (void *, dst, size_t, pitch, int, value, size_t, width, size_t, height),
        DRV(cuMemsetD2D8_v2, _ptds)(ADDRESS(dst), pitch, (unsigned char)value, width, height))
RT_PTSZ(cudaMemset2DAsync,
        (void *, dst, size_t, pitch, int, value, size_t, width, size_t, height, cudaStream_t,
         stream),
        DRV(cuMemsetD2D8Async, _ptsz)(ADDRESS(dst), pitch, (unsigned char)value, width, height,
                                      stream))
RT_PTDS(cudaMemset3D, (struct cudaPitchedPtr, dst, int, value, struct cudaExtent, extent),
        set_3d(per_thread, dst, value, extent, NULL))
RT_PTSZ(cudaMemset3DAsync,
        (struct cudaPitchedPtr, dst, int, value, struct cudaExtent, extent, cudaStream_t, stream),
        set_3d(per_thread, dst, value, extent, &stream))
