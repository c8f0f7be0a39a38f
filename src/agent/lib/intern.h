/* SPDX-License-Identifier: MIT */
/*
 * What kernels have in common is written once: their names, their shapes (a name with a grid), and
 * their lanes (a stream of a context on a device). The tables are bounded: what has to make room is
 * written again when it comes back. To be used by one thread at a time.
 */
#pragma once

#include <stdint.h>

#include "agent/lib/cupti_abi.h"
#include "agent/lib/ring.h"

struct intern;

struct intern *intern_new(uint32_t (*name_number)(void)); /* NULL: no memory */
void intern_free(struct intern *intern);

/* Numbers, written to the ring before where they are new; 0: the ring is full. */
uint32_t intern_shape(struct intern *intern, struct ring *ring, const struct cupti_kernel *kernel);
uint32_t intern_name(struct intern *intern, struct ring *ring, const char *text);
uint16_t intern_lane(struct intern *intern, struct ring *ring, uint32_t device, uint32_t context,
                     uint32_t stream);
