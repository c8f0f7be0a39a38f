/* SPDX-License-Identifier: MIT */
/* What things are called in reports. Names as Nsight Systems has them. */
#ifndef CUSCOPE_REPORT_NAMES_H
#define CUSCOPE_REPORT_NAMES_H

#include "base/buf.h"
#include "report/report.h"

/* Appends a kernel's name in the form asked for; a mangled name that is not known is the name. */
void add_kernel_name(struct buf *out, const struct kernel *kernel, enum kernel_names names);

/* Appends a function's name without a version that the runtime's callbacks have, "_v7000". */
void add_function_name(struct buf *out, const struct function *function);

/* "[CUDA memcpy Host-to-Device]", "[CUDA memset]"; NULL for a kernel. */
const char *operation_name(const struct activity *activity);

#endif
