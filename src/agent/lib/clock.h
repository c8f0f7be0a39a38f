/* SPDX-License-Identifier: MIT */
/*
 * One clock: CLOCK_MONOTONIC. CUPTI takes its times from it where it lets us say so (CUDA 11.6 on);
 * elsewhere its own clock is compared with ours, and again during long runs.
 */
#pragma once

#include <stdint.h>

/* ns of CLOCK_MONOTONIC outside of time namespaces; also what CUPTI is given to call. */
uint64_t clock_now(void);

/* The same as of the kernel's last tick, some milliseconds ago at most, which costs less. */
uint64_t clock_coarse(void);

/* What is added to the process's own clock from now on; returns by how much that changed. */
int64_t clock_set_offset(int64_t offset_ns);

void clock_pause_ms(unsigned ms); /* below 1000 */

/* CUPTI counts in our clock. */
void clock_shared(void);

/*
 * Compares with CUPTI's clock, which `read` tells (0: it could). Returns the error to be expected
 * of clock_converted. It is half of the narrowest pair of our readings around one of its, and how
 * far the clocks drifted apart since the last comparison. UINT64_MAX: it cannot be read.
 */
uint64_t clock_compare(uint32_t (*read)(uint64_t *ns));

/* CUPTI's time in ours; 0 stays 0. */
uint64_t clock_converted(uint64_t cupti_ns);
