/* SPDX-License-Identifier: MIT */
/*
 * Where stacks of makecontext() begin. glibc has it "return" to the first byte of __start_context,
 * which nobody has called: its frame is the outermost one. Its unwind table does not say so, and
 * gdb shows two frames more that are none.
 */
#ifndef CUSCOPE_UNWIND_START_CONTEXT_H
#define CUSCOPE_UNWIND_START_CONTEXT_H

#include <stdint.h>

#include "probe/elf_image.h"

/* As linked; 0: not in this file. Of x86-64 alone. */
uint64_t start_context_find(const struct elf_image *image);

#endif
