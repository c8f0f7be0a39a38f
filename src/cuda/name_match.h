/* SPDX-License-Identifier: MIT */
/* Patterns for names that users type: --only 'cuMemcpy*', --kernel 'gemm*'. */
#ifndef CUSCOPE_CUDA_NAME_MATCH_H
#define CUSCOPE_CUDA_NAME_MATCH_H

#include <stdbool.h>

/* Whether a glob matches a function's name, with or without its variant suffixes (_v2, _ptsz). */
bool name_match_function(const char *glob, const char *name);

/*
 * Whether it matches a kernel's: the name as a person reads it, that without return type,
 * namespaces, template arguments and parameters, or the mangled one, which may be NULL.
 */
bool name_match_kernel(const char *glob, const char *name, const char *mangled);

#endif
