// SPDX-License-Identifier: MIT
/* Copies with a pitch and a height, arrays included. A 2D copy is a 3D copy of one slice. */
#include "block.h"
#include "copy.h"

/* One end of a shaped copy, as its descriptor states it. */
struct end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

/* The same as an address with steps from row to row and slice to slice. */
struct place {
	uint64_t address;
	size_t pitch, slice;
};

static bool end_resolve(const struct end *end, size_t width, size_t height, size_t depth,
                        struct place *place)
{
	uint64_t base;
	place->pitch = end->pitch ? end->pitch : width;
	place->slice = place->pitch * (end->height ? end->height : height);
	switch (end->type) {
	case CU_MEMORYTYPE_HOST:
		base = (uint64_t)end->host;
		break;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		base = end->device;
		break;
	case CU_MEMORYTYPE_ARRAY:
		if (!handle_is(end->array, HANDLE_ARRAY))
			return false;
		base = end->array->start;
		place->pitch = end->array->pitch;
		place->slice = end->array->slice;
		break;
	default:
		return false;
	}
	place->address = base + end->z * place->slice + end->y * place->pitch + end->x;
	if (!base || place->pitch < width)
		return false;
	if (end->type == CU_MEMORYTYPE_HOST || end->type == CU_MEMORYTYPE_UNIFIED)
		return true;
	struct block block;
	size_t span = (depth - 1) * place->slice + (height - 1) * place->pitch + width;
	return block_find(place->address, span, BLOCK_ON_DEVICE | BLOCK_PINNED, &block);
}

CUresult copy_task_3d(const CUDA_MEMCPY3D *copy, struct task *task)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	struct end from = { copy->srcMemoryType, copy->srcHost,     copy->srcDevice,
		            copy->srcArray,      copy->srcXInBytes, copy->srcY,
		            copy->srcZ,          copy->srcPitch,    copy->srcHeight };
	struct end to = { copy->dstMemoryType, copy->dstHost,     copy->dstDevice,
		          copy->dstArray,      copy->dstXInBytes, copy->dstY,
		          copy->dstZ,          copy->dstPitch,    copy->dstHeight };
	struct place source, target;
	*task = (struct task){ .kind = TASK_EMPTY };
	if (copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0)
		return CUDA_SUCCESS;
	if (!end_resolve(&from, copy->WidthInBytes, copy->Height, copy->Depth, &source) ||
	    !end_resolve(&to, copy->WidthInBytes, copy->Height, copy->Depth, &target))
		return CUDA_ERROR_INVALID_VALUE;
	*task = (struct task){
		.kind = TASK_COPY,
		.copy = { .to = (char *)target.address,
		          .from = (const char *)source.address,
		          .width = copy->WidthInBytes,
		          .height = copy->Height,
		          .depth = copy->Depth,
		          .to_pitch = target.pitch,
		          .to_slice = target.slice,
		          .from_pitch = source.pitch,
		          .from_slice = source.slice,
		          .over_pcie = from.type == CU_MEMORYTYPE_HOST ||
		                       to.type == CU_MEMORYTYPE_HOST },
	};
	return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream handle, enum null_stream null,
                        enum submit how)
{
	CUstream stream;
	struct task task;
	CUresult result = stream_find(handle, null, &stream);
	if (result == CUDA_SUCCESS)
		result = copy_task_3d(copy, &task);
	if (result != CUDA_SUCCESS)
		return result;
	if (how == SUBMIT_ASYNC && task.kind == TASK_COPY && copy_is_pageable(&task))
		how = SUBMIT_STAGED;
	return stream_submit(stream, &task, how);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *flat, CUstream handle, enum null_stream null,
                        enum submit how)
{
	if (!flat)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D copy = {
		.srcXInBytes = flat->srcXInBytes,
		.srcY = flat->srcY,
		.srcMemoryType = flat->srcMemoryType,
		.srcHost = flat->srcHost,
		.srcDevice = flat->srcDevice,
		.srcArray = flat->srcArray,
		.srcPitch = flat->srcPitch,
		.dstXInBytes = flat->dstXInBytes,
		.dstY = flat->dstY,
		.dstMemoryType = flat->dstMemoryType,
		.dstHost = flat->dstHost,
		.dstDevice = flat->dstDevice,
		.dstArray = flat->dstArray,
		.dstPitch = flat->dstPitch,
		.WidthInBytes = flat->WidthInBytes,
		.Height = flat->Height,
		.Depth = 1,
	};
	return copy_3d(&copy, handle, null, how);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static size_t format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static CUresult array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!array || !descriptor || descriptor->Width == 0 || descriptor->NumChannels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	size_t element = format_bytes(descriptor->Format) * descriptor->NumChannels;
	size_t rows = descriptor->Height ? descriptor->Height : 1;
	size_t slices = descriptor->Depth ? descriptor->Depth : 1;
	if (element == 0)
		return CUDA_ERROR_INVALID_VALUE;
	*array = handle_new(HANDLE_ARRAY, sizeof(**array));
	if (!*array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*array)->descriptor = *descriptor;
	(*array)->pitch = element * descriptor->Width;
	(*array)->slice = (*array)->pitch * rows;
	struct block block = { .bytes = (*array)->slice * slices, .kind = BLOCK_ARRAY, .ctx = ctx };
	block.start = device_memory_take(block.bytes);
	if (block.start && block_add(&block)) {
		(*array)->start = block.start;
		return CUDA_SUCCESS;
	}
	if (block.start)
		block_release(&block);
	handle_free(*array, HANDLE_ARRAY);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult array_create_2d(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *flat)
{
	if (!flat)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { .Width = flat->Width,
		                               .Height = flat->Height,
		                               .Format = flat->Format,
		                               .NumChannels = flat->NumChannels };
	return array_create(array, &descriptor);
}

static CUresult array_descriptor(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
	if (!handle_is(array, HANDLE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!descriptor)
		return CUDA_ERROR_INVALID_VALUE;
	*descriptor = array->descriptor;
	return CUDA_SUCCESS;
}

static CUresult array_destroy(CUarray array)
{
	struct block block;
	if (!handle_is(array, HANDLE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (block_take(array->start, BLOCK_ARRAY, &block)) {
		if (handle_is(block.ctx, HANDLE_CONTEXT))
			streams_drain(block.ctx);
		block_release(&block);
	}
	handle_free(array, HANDLE_ARRAY);
	return CUDA_SUCCESS;
}

API_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *, shape), copy_2d(shape, NULL, null, SUBMIT_SYNC))
API_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *, shape),
         copy_2d(shape, NULL, null, SUBMIT_SYNC))
API_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *, shape, CUstream, stream),
         copy_2d(shape, stream, null, SUBMIT_ASYNC))
API_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *, shape), copy_3d(shape, NULL, null, SUBMIT_SYNC))
API_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *, shape, CUstream, stream),
         copy_3d(shape, stream, null, SUBMIT_ASYNC))
API(cuArrayCreate_v2, (CUarray *, array, const CUDA_ARRAY_DESCRIPTOR *, descriptor),
    array_create_2d(array, descriptor))
API(cuArray3DCreate_v2, (CUarray *, array, const CUDA_ARRAY3D_DESCRIPTOR *, descriptor),
    array_create(array, descriptor))
API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *, descriptor, CUarray, array),
    array_descriptor(descriptor, array))
API(cuArrayDestroy, (CUarray, array), array_destroy(array))
