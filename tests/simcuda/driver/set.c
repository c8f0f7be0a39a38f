// SPDX-License-Identifier: MIT
/* Filling memory. */
#include "block.h"
#include "copy.h"

CUresult set_task(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned int element, size_t width,
                  size_t height, struct task *task)
{
	struct block block;
	*task = (struct task){ .kind = TASK_EMPTY };
	if (element != 1 && element != 2 && element != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (width == 0 || height == 0)
		return CUDA_SUCCESS;
	if (dst % element != 0 || (height > 1 && pitch < width * element))
		return CUDA_ERROR_INVALID_VALUE;
	size_t span = (height - 1) * pitch + width * element;
	if (!block_find(dst, span, BLOCK_ON_DEVICE | BLOCK_PINNED, &block))
		return CUDA_ERROR_INVALID_VALUE;
	*task = (struct task){
		.kind = TASK_SET,
		.set = { .to = (char *)dst,
		         .pitch = pitch,
		         .width = width,
		         .height = height,
		         .value = value,
		         .element = element },
	};
	return CUDA_SUCCESS;
}

static CUresult set(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned int element,
                    size_t width, size_t height, CUstream handle, enum null_stream null,
                    enum submit how)
{
	CUstream stream;
	struct task task;
	CUresult result = stream_find(handle, null, &stream);
	if (result == CUDA_SUCCESS)
		result = set_task(dst, pitch, value, element, width, height, &task);
	return result == CUDA_SUCCESS ? stream_submit(stream, &task, how) : result;
}

/* The same six functions for elements of 1, 2 and 4 bytes. */
#define SETS(bits, type)                                                                           \
	API_PTDS(cuMemsetD##bits##_v2, (CUdeviceptr, dst, type, value, size_t, count),             \
	         set(dst, 0, value, bits / 8, count, 1, NULL, null, SUBMIT_SYNC))                  \
	API_PTSZ(cuMemsetD##bits##Async,                                                           \
	         (CUdeviceptr, dst, type, value, size_t, count, CUstream, stream),                 \
	         set(dst, 0, value, bits / 8, count, 1, stream, null, SUBMIT_ASYNC))               \
	API_PTDS(cuMemsetD2D##bits##_v2,                                                           \
	         (CUdeviceptr, dst, size_t, pitch, type, value, size_t, width, size_t, height),    \
	         set(dst, pitch, value, bits / 8, width, height, NULL, null, SUBMIT_SYNC))         \
	API_PTSZ(cuMemsetD2D##bits##Async,                                                         \
	         (CUdeviceptr, dst, size_t, pitch, type, value, size_t, width, size_t, height,     \
	          CUstream, stream),                                                               \
	         set(dst, pitch, value, bits / 8, width, height, stream, null, SUBMIT_ASYNC))

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
