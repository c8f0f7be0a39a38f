/* SPDX-License-Identifier: MIT */
/*
 * Axes of a picture: where the round numbers are, and how they are written. "Round" is what a
 * person would choose: 1, 2 and 4 times a power of 1024 for bytes, seconds and minutes for time.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* Distance of marks on an axis from 0 to at least `most`, so that there are `marks` or fewer. */
uint64_t axis_step_bytes(uint64_t most, unsigned marks);
uint64_t axis_step_ns(uint64_t most, unsigned marks);

/*
 * "1.5 GiB", "250 ms", "1 h 10 min": no decimals that say nothing. `exact`: the step of the axis,
 * so that no two marks read the same ("1:23:20"); 0: as a person would say it.
 */
void axis_add_bytes(struct buf *out, uint64_t bytes);
void axis_add_ns(struct buf *out, uint64_t ns, uint64_t exact);
