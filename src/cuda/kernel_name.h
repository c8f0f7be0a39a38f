/* SPDX-License-Identifier: MIT */
/* Names of kernels: what looks like one, and the form that a person reads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Where a CUfunction and a CUkernel hold the pointer to their mangled name, on driver 580
 * (docs/decisions.md, 7). Verified at run time before use.
 */
#define KERNEL_HANDLE_NAME_OFFSET 8

#define KERNEL_NAME_STUB "__device_stub_" /* before the name of the function that launches it */

/* Whether `text` can be the name of a kernel: not empty, printable, no blanks unless demangled. */
bool kernel_name_plausible(const char *text);

/*
 * "vectorAdd(float const*, float*, int)" for "_Z9vectorAddPKfPfi"; a name that is not mangled is
 * copied, and one that is longer than TEXT_NAME_MAX is cut. Host stubs' "__device_stub__" prefix is
 * taken off first. The caller frees the result.
 *
 * A name of 300 bytes can make this take hours: names of programs are read by probe/plain_name.h.
 */
char *kernel_name_demangle(const char *mangled);

/*
 * "gemm" for "void cutlass::gemm<float, 128>(float const*, int)": without return type, namespaces,
 * template arguments and parameters. `len` is its length; it is a part of `name`, not ended there.
 */
const char *kernel_name_base(const char *name, size_t *len);

/*
 * "at::_ops::mm::call" for "at::Tensor at::_ops::mm::call(at::Tensor const&)": the same with
 * namespaces. The caller frees it.
 */
char *kernel_name_qualified(const char *name);

/* Patterns for names that users type: --only 'cuMemcpy*', --kernel 'gemm*'. */

/* Whether a glob matches a function's name, with or without its variant suffixes (_v2, _ptsz). */
bool name_match_function(const char *glob, const char *name);

/*
 * Whether it matches a kernel's: the name as a person reads it, that without return type,
 * namespaces, template arguments and parameters, or the mangled one, which may be NULL.
 */
bool name_match_kernel(const char *glob, const char *name, const char *mangled);
