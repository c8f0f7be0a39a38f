/* SPDX-License-Identifier: MIT */
/*
 * What a multiprocessor has room for. It follows from the compute capability, so nothing is asked
 * of a GPU. Source: CUDA C++ Programming Guide, technical specifications per compute capability.
 */
#ifndef CUSCOPE_GPUS_GPU_LIMITS_H
#define CUSCOPE_GPUS_GPU_LIMITS_H

#include <stdint.h>

struct gpu_limits {
	uint32_t major, minor;
	uint32_t cores;           /* that NVML counts for a multiprocessor */
	uint32_t warps;           /* at most, of 32 threads */
	uint32_t blocks;          /* at most */
	uint32_t registers;       /* of 32 bits; as many for one block */
	uint32_t shmem_kib;       /* shared memory */
	uint32_t block_shmem_kib; /* of one block that asked for it */
};

#define GPU_THREADS_PER_WARP  32
#define GPU_THREADS_PER_BLOCK 1024
#define GPU_BLOCK_SHMEM_BYTES (48u << 10) /* of a block that asked for nothing special */
#define GPU_CONSTANT_BYTES    (64u << 10)

/*
 * How many blocks of a kernel a multiprocessor has room for at once: by its warps, registers and
 * shared memory, which are given out in pieces.
 */
uint32_t gpu_resident_blocks(const struct gpu_limits *limits, uint64_t block_threads,
                             uint32_t thread_registers, uint64_t block_shmem);

/* Of a later GPU than those in the table: NULL. */
const struct gpu_limits *gpu_limits(uint32_t major, uint32_t minor);

#endif
