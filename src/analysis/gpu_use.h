/* SPDX-License-Identifier: MIT */
/* What ran on the GPUs, and for how long, where GPU times were recorded. */
#ifndef CUSCOPE_ANALYSIS_GPU_USE_H
#define CUSCOPE_ANALYSIS_GPU_USE_H

#include "trace/event.h"

/* Devices that are told apart: by their number, modulo this. */
#define GPU_USE_DEVICES 64

struct gpu_kernel {
	const char *name;
	uint64_t count, ns; /* ns: of each run, overlaps counted twice */
};

struct gpu_use;

struct gpu_use *gpu_use_new(void);
void gpu_use_free(struct gpu_use *use);
void gpu_use_event(struct gpu_use *use, const struct event *event);

uint64_t gpu_use_activities(const struct gpu_use *use);

/* In which at least one activity ran on a device; `device` below GPU_USE_DEVICES. */
uint64_t gpu_use_busy_ns(const struct gpu_use *use, uint32_t device);
uint64_t gpu_use_short_ns(const struct gpu_use *use, uint32_t device); /* that it lacks at most */

/* Most time first, by name. Owned by `use`, until the next event. */
const struct gpu_kernel *gpu_use_kernels(struct gpu_use *use, size_t *n);

#endif
