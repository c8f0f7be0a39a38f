// SPDX-License-Identifier: MIT
/* Copies of plain memory: the bytes really move, at the end that the call's name says or, for */
/* cuMemcpy, wherever the pointers lie. */
#include "copy.h"

#include "block.h"

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_ANY };

static bool is_device(uint64_t address, size_t bytes)
{
	struct block block;
	return block_find(address, bytes, BLOCK_ON_DEVICE | BLOCK_PINNED, &block);
}

/* Whether an end of a copy may be used as what the call takes it for. */
static bool side_is_valid(enum side side, uint64_t address, size_t bytes)
{
	struct block block;
	if (!address)
		return false;
	if (side == SIDE_DEVICE)
		return is_device(address, bytes);
	/* Beyond the end of a known block is wrong whatever the call; unknown memory is
	 * the host's. */
	return is_device(address, bytes) ||
	       !block_find(address, 1, BLOCK_ON_DEVICE | BLOCK_PINNED, &block);
}

static bool crosses_pcie(uint64_t address)
{
	struct block block;
	return !block_find(address, 1, BLOCK_ON_DEVICE, &block);
}

bool copy_is_pageable(const struct task *task)
{
	return !is_device((uint64_t)task->copy.to, 1) || !is_device((uint64_t)task->copy.from, 1);
}

static CUresult copy(uint64_t to, enum side to_side, uint64_t from, enum side from_side,
                     size_t bytes, CUstream handle, enum null_stream null, enum submit how)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS || bytes == 0)
		return result;
	if (!side_is_valid(to_side, to, bytes) || !side_is_valid(from_side, from, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	struct task task = {
		.kind = TASK_COPY,
		.copy = { .to = (char *)to,
		          .from = (const char *)from,
		          .width = bytes,
		          .height = 1,
		          .depth = 1,
		          .over_pcie = crosses_pcie(to) || crosses_pcie(from) },
	};
	if (how == SUBMIT_ASYNC && copy_is_pageable(&task))
		how = SUBMIT_STAGED;
	return stream_submit(stream, &task, how);
}

#define SYNC(to_side, from_side)                                                                   \
	copy((uint64_t)dst, to_side, (uint64_t)src, from_side, bytes, NULL, null, SUBMIT_SYNC)
#define ASYNC(to_side, from_side)                                                                  \
	copy((uint64_t)dst, to_side, (uint64_t)src, from_side, bytes, stream, null, SUBMIT_ASYNC)

API_PTDS(cuMemcpy, (CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes), SYNC(SIDE_ANY, SIDE_ANY))
API_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr, dst, const void *, src, size_t, bytes),
         SYNC(SIDE_DEVICE, SIDE_HOST))
API_PTDS(cuMemcpyDtoH_v2, (void *, dst, CUdeviceptr, src, size_t, bytes),
         SYNC(SIDE_HOST, SIDE_DEVICE))
API_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes),
         SYNC(SIDE_DEVICE, SIDE_DEVICE))
API_PTDS(cuMemcpyPeer,
         (CUdeviceptr, dst, CUcontext, dst_ctx, CUdeviceptr, src, CUcontext, src_ctx, size_t,
          bytes),
         SYNC(SIDE_DEVICE, SIDE_DEVICE))
API_PTSZ(cuMemcpyAsync, (CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes, CUstream, stream),
         ASYNC(SIDE_ANY, SIDE_ANY))
API_PTSZ(cuMemcpyHtoDAsync_v2,
         (CUdeviceptr, dst, const void *, src, size_t, bytes, CUstream, stream),
         ASYNC(SIDE_DEVICE, SIDE_HOST))
API_PTSZ(cuMemcpyDtoHAsync_v2, (void *, dst, CUdeviceptr, src, size_t, bytes, CUstream, stream),
         ASYNC(SIDE_HOST, SIDE_DEVICE))
API_PTSZ(cuMemcpyDtoDAsync_v2,
         (CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes, CUstream, stream),
         ASYNC(SIDE_DEVICE, SIDE_DEVICE))
API_PTSZ(cuMemcpyPeerAsync,
         (CUdeviceptr, dst, CUcontext, dst_ctx, CUdeviceptr, src, CUcontext, src_ctx, size_t, bytes,
          CUstream, stream),
         ASYNC(SIDE_DEVICE, SIDE_DEVICE))
