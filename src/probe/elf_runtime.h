/* SPDX-License-Identifier: MIT */
/*
 * The functions of a CUDA runtime that is linked into a program without symbols.
 *
 * That one is there is known by the number under which it asks the driver for its internal table,
 * which nothing else has. Each of its functions hands its own name to tools that listen, and is the
 * only one that refers to that text. So the function that does is the one of that name: of CUDA
 * 13.0 this was so for all 407 functions that have a name, by what its symbols said. Where
 * functions begin and end is in the unwind tables, which stripping leaves. One whose stack is not
 * that of an entry there is a part that the compiler moved away, and is left out.
 */
#pragma once

#include "probe/elf_image.h"

#define RUNTIME_NAME_MAX 128

struct elf_runtime_function {
	char name[RUNTIME_NAME_MAX];
	uint64_t address, size; /* as linked */
};

/*
 * Looks for them in a program; libraries are left alone, since those that have a runtime of their
 * own call it themselves. 0 with *list, which the caller frees; 1: there is no runtime; 2: it has
 * so much data that this is for later, where `patient` is false; -ENOTSUP: there is one, and its
 * functions could not be told.
 */
int elf_runtime_find(const struct elf_image *image, bool patient,
                     struct elf_runtime_function **list, size_t *n);
