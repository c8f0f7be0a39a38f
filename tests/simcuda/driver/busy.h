/* SPDX-License-Identifier: MIT */
/* Work as it begins, for those who look at a device from outside: ../busy_log.h. */
#ifndef SIMCUDA_DRIVER_BUSY_H
#define SIMCUDA_DRIVER_BUSY_H

#include "context.h"
#include "task.h"

void busy_note(const struct task *task, CUstream stream, uint64_t begin_ns, uint64_t end_ns);

#endif
