/* SPDX-License-Identifier: MIT */
/*
 * Functions whose returns must not be probed. A return probe puts an address of the kernel's into
 * the place of the return address. Who keeps that, looks for it, or moves the stack that it lies on
 * goes wrong by that, and most such programs end.
 */
#ifndef CUSCOPE_PROBE_NO_RETURN_H
#define CUSCOPE_PROBE_NO_RETURN_H

#include "probe/elf_image.h"

#define NO_RETURN_REASONS 4 /* that there are, each one text */

/* Why, as a clause on the function; static. NULL: it may be probed. `symbol` as the linker has it.
 */
const char *no_return_for_symbol(const char *symbol);

/*
 * The same for all functions of a file: one that holds code of Go, which moves its stacks and looks
 * through them for return addresses. C code that Go calls is on a stack of its own, which stays.
 */
const char *no_return_for_file(const struct elf_image *image);

#endif
