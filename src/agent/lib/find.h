/* SPDX-License-Identifier: MIT */
/* Where a libcupti is that fits the process: its driver, its runtime. */
#pragma once

#include <stdint.h>

#include "agent/lib/failure.h"

struct found {
	void *library;    /* dlopen's; never closed: CUPTI's threads may still be in it */
	uint32_t version; /* cuptiGetVersion */
	char path[512];
};

/* The driver's version (13000), as cuDriverGetVersion of the loaded libcuda tells; 0: there is no
 * libcuda. */
uint32_t find_driver_version(void);

/*
 * `given` (a descriptor, or -1) comes first, then the one that is loaded already. Then it is looked
 * for beside the loaded libcudart, in the layouts of Python wheels next to it, in toolkits, and
 * where the loader looks. No newer than the driver, of the CUDA of libcudart where there is one, 11
 * to 13. Else -1, and `failure` lists what was tried.
 */
int find_cupti(int given, uint32_t driver_version, struct found *found, struct failure *failure);

/* Adds which libraries in this process belong to profilers, or to what has one: a guess. */
void find_profiler(struct failure *failure);
