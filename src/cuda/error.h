/* SPDX-License-Identifier: MIT */
/*
 * Names of results. The runtime's cudaError_t and the driver's CUresult are two numberings that
 * mostly agree and sometimes do not, so there are two tables, complete for CUDA 13.
 */
#pragma once

#include <stdbool.h>

#include "cuda/api.h"

/* "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY"; of LAYER_KERNEL as
 * kernel_status_name() has it; NULL for a number without a name. */
const char *cuda_error_name(enum api_layer layer, int code);

/* Codes that report a state rather than a failure (not ready: a poll that came too early). */
bool cuda_error_is_status(enum api_layer layer, int code);

/*
 * Codes of calls that came when CUDA had been shut down, as it is when a process ends: what
 * libraries clean up after that is gone already. PyTorch makes 27 of them at each exit.
 */
bool cuda_error_is_shutdown(enum api_layer layer, int code);
