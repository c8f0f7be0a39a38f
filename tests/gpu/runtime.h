/* SPDX-License-Identifier: MIT */
/* What the programs on the runtime API share. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <cuda_runtime.h>

#include "counts.h"

/* A call that must succeed; ends the program where it does not. */
#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t check_error = (call);                                                  \
		if (check_error != cudaSuccess) {                                                  \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,              \
			        cudaGetErrorName(check_error));                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static inline struct shape shape_of(dim3 grid, dim3 block, unsigned shmem = 0)
{
	return { { grid.x, grid.y, grid.z }, { block.x, block.y, block.z }, shmem };
}

static inline uint64_t address_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

#endif
