/* SPDX-License-Identifier: MIT */
/* The markers of an ELF file (USDT): notes that say where they are and what their arguments are. */
#ifndef CUSCOPE_PROBE_OWN_MARKERS_H
#define CUSCOPE_PROBE_OWN_MARKERS_H

#include "probe/elf_image.h"
#include "probe/own_functions.h"

/* Adds those that the hook names, whose number in its list is `number`. Notes that make no sense
 * are passed over. */
void own_markers_read(const struct elf_image *image, const struct hook_spec *spec, size_t number,
                      struct own_functions *into);

#endif
