/* SPDX-License-Identifier: MIT */
/* Which of the CUDA functions of a library, or of a program with the runtime, could be diverted. */
#ifndef CUSCOPE_DIVERT_ENTRY_MODULE_H
#define CUSCOPE_DIVERT_ENTRY_MODULE_H

#include "divert/entry_file.h"

/*
 * The functions that elf_file_functions lists, in its order; the caller frees *functions. Returns 0
 * or a negative errno, with *functions NULL. `fd` is not closed.
 */
int entry_module_judge(int fd, const char *what, struct entry_function **functions, size_t *count,
                       struct err *err);

#endif
