/* SPDX-License-Identifier: MIT */
/* Reads a trace file and looks at everything that consumers are given. */
#ifndef CUSCOPE_FUZZ_LOOKER_H
#define CUSCOPE_FUZZ_LOOKER_H

#include <stdbool.h>
#include <stddef.h>

/* With `part`, only what is late in it is read. Aborts on what no consumer expects. */
void look_at_file(const void *data, size_t size, bool part);

#endif
