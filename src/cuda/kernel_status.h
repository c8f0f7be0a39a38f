/* SPDX-License-Identifier: MIT */
/*
 * Names of what calls of the kernel side come back with: the driver's own status, which its ioctls
 * write into their parameters, or a negative errno where the system call failed.
 */
#ifndef CUSCOPE_CUDA_KERNEL_STATUS_H
#define CUSCOPE_CUDA_KERNEL_STATUS_H

/* "NV_OK", "NV_ERR_NO_MEMORY", "ENOTTY"; NULL for a number without a name. */
const char *kernel_status_name(int status);

#endif
