/* SPDX-License-Identifier: MIT */
/*
 * Modules and libraries, and the handles of their kernels. A CUfunction belongs to a module, which
 * belongs to a context; a CUkernel belongs to a library, which belongs to no context and makes a
 * module for each that it is used in. Both handles hold the kernel's mangled name at byte 8.
 */
#ifndef SIMCUDA_DRIVER_MODULE_H
#define SIMCUDA_DRIVER_MODULE_H

#include "context.h"
#include "image.h"
#include "kernels.h"

struct CUfunc_st {
	struct handle handle;
	char *name; /* at byte 8 */
	const struct known_kernel *known;
	CUmodule module;
	const char *kept_name; /* for records: never freed */
	CUfunction next;
};

struct CUkern_st {
	struct handle handle;
	char *name; /* at byte 8 */
	const struct known_kernel *known;
	CUlibrary library;
	const char *kept_name;
	CUkernel next;
};

_Static_assert(offsetof(struct CUfunc_st, name) == 8, "where driver 580 keeps it");
_Static_assert(offsetof(struct CUkern_st, name) == 8, "where driver 580 keeps it");

#endif
