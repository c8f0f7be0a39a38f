/* SPDX-License-Identifier: MIT */
/* The time by which readings of GPUs are dated. Private to src/gpus. */
#ifndef CUSCOPE_GPUS_GPU_CLOCK_H
#define CUSCOPE_GPUS_GPU_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC. */
static inline uint64_t gpu_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline struct timespec gpu_clock_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

#endif
