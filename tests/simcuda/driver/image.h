/* SPDX-License-Identifier: MIT */
/*
 * What a program hands over as code. Of PTX the kernels and global variables are read; cubins and
 * fat binaries are accepted as they are and are said to hold any kernel that is asked for, so that
 * programs that nvcc built work too.
 */
#ifndef SIMCUDA_DRIVER_IMAGE_H
#define SIMCUDA_DRIVER_IMAGE_H

#include <stdbool.h>

#include "../driver_types.h"

struct image;

/* CUDA_ERROR_INVALID_IMAGE for what is no code at all, CUDA_ERROR_INVALID_PTX for PTX without */
/* a .version. The caller holds the one reference. */
CUresult image_read(const void *data, struct image **image);
struct image *image_get(struct image *image);
void image_put(struct image *image);

bool image_has_kernel(const struct image *image, const char *name);
size_t image_kernels(const struct image *image); /* 0 where they cannot be known */
const char *image_kernel(const struct image *image, size_t i);
size_t image_global_bytes(const struct image *image, const char *name); /* 0: there is none */

#endif
