/* SPDX-License-Identifier: MIT */
/* Where a library of NVIDIA's is, of the places that nobody but root can change. */
#pragma once

#include <stddef.h>

/*
 * Writes the path of the library `name` to `path`: of `folders` (with colons between them) first,
 * then of those where drivers, containers and CUDA's toolkits put it. Empty where it is in none of
 * them. A file that others than root and the user of this process could have written, or exchanged,
 * is passed over; `refused` has the last such one, or "".
 */
void library_path_find(const char *name, const char *folders, char *path, size_t size,
                       char *refused, size_t refused_size);
