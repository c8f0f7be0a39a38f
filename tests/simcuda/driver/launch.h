/* SPDX-License-Identifier: MIT */
/* One launch of a kernel, however it was asked for. */
#ifndef SIMCUDA_DRIVER_LAUNCH_H
#define SIMCUDA_DRIVER_LAUNCH_H

#include "task.h"

struct launch {
	CUfunction function; /* or a CUkernel: the real driver takes both */
	unsigned int grid[3], block[3];
	unsigned int shared_bytes;
	bool cooperative;
	void **params;
	void **extra;
};

/* Checks the launch and copies its parameters, which may be gone when it runs. */
CUresult launch_task(const struct launch *launch, struct task *task);

#endif
