/* SPDX-License-Identifier: MIT */
/* Copies and sets as tasks, checked: for calls that run them and for nodes of graphs. */
#ifndef SIMCUDA_DRIVER_COPY_H
#define SIMCUDA_DRIVER_COPY_H

#include "stream.h"

struct CUarray_st {
	struct handle handle;
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	uint64_t start;
	size_t pitch, slice;
};

CUresult copy_task_3d(const CUDA_MEMCPY3D *copy, struct task *task);

/* `element` is 1, 2 or 4 bytes; `width` counts elements. */
CUresult set_task(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned int element, size_t width,
                  size_t height, struct task *task);

/* Whether one end of the copy is host memory that is not pinned. */
bool copy_is_pageable(const struct task *task);

#endif
