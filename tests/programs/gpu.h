/* SPDX-License-Identifier: MIT */
/* The usual steps of a program that uses the driver API, counted: see sample.h. */
#ifndef SAMPLE_GPU_H
#define SAMPLE_GPU_H

#include "sample.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of sample_ptx: adds vectors; scales one onto another; does nothing; a template's name. */
#define KERNEL_ADD	"_Z9vectorAddPKfS0_Pfi"
#define KERNEL_SAXPY	"_Z5saxpyfPKfPfi"
#define KERNEL_NOTHING	"_Z7nothingv"
#define KERNEL_TEMPLATE "_Z6reduceIfLi256EEvPT_S1_"

extern const char sample_ptx[];

struct gpu {
	CUdevice device;
	CUcontext ctx;
	CUmodule module;
	CUfunction nothing, add;
};

/* cuInit, a context (the primary one) that is current in this thread, the module and two kernels.
 */
void gpu_open(struct gpu *gpu);
void gpu_attach(const struct gpu *gpu); /* in another thread: cuCtxSetCurrent */
void gpu_close(struct gpu *gpu);

CUdeviceptr gpu_alloc(size_t bytes);
void gpu_free(CUdeviceptr address);
void gpu_to_device(CUdeviceptr dst, const void *src, size_t bytes);
void gpu_from_device(void *dst, CUdeviceptr src, size_t bytes);

/* Launches the kernel that does nothing: grid (blocks,1,1), block (32,1,1). */
void gpu_launch(const struct gpu *gpu, unsigned int blocks, CUstream stream);

/* A bit of everything, `rounds` times: alloc, copy in, launch, copy out, free; then synchronises.
 */
void gpu_work(const struct gpu *gpu, int rounds);

#ifdef __cplusplus
}
#endif

#endif
