/* SPDX-License-Identifier: MIT */
/*
 * The kernels that really compute. A launch of any other kernel takes its time and does nothing,
 * and its arguments are not read, since only these kernels' parameters are known.
 */
#ifndef SIMCUDA_DRIVER_KERNELS_H
#define SIMCUDA_DRIVER_KERNELS_H

#include "../driver_types.h"

#define KERNEL_PARAMS_MAX 4

struct known_kernel {
	const char *name;
	size_t n_params;
	size_t bytes[KERNEL_PARAMS_MAX]; /* of each parameter */
	/* One value a parameter, in its low bytes. */
	CUresult (*run)(const uint64_t *params, uint64_t threads);
};

/* NULL for a kernel that only takes time. */
const struct known_kernel *known_kernel_find(const char *name);

#endif
