/* SPDX-License-Identifier: MIT */
/*
 * System calls to the kernel's driver, as the real library makes them: on two devices that
 * SIMCUDA_DRIVER names, "/dev/null,/dev/zero" for what has no driver. Without it there are none.
 * The first stands for nvidiactl, the second for nvidia-uvm.
 */
#ifndef SIMCUDA_DRIVER_IOCTLS_H
#define SIMCUDA_DRIVER_IOCTLS_H

#include <stddef.h>

void ioctls_of_init(void);
void ioctls_of_alloc(size_t bytes);

#endif
