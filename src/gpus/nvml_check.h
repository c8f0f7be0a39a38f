/* SPDX-License-Identifier: MIT */
/* Whether a message of the process that calls NVML can be true. Private to src/gpus. */
#ifndef CUSCOPE_GPUS_NVML_CHECK_H
#define CUSCOPE_GPUS_NVML_CHECK_H

#include "gpus/nvml_wire.h"

/*
 * `bytes`: how long it was, which may be more than there is room for. Every number that anything
 * here counts by is in its bounds then, every text ends, and has no control characters: those
 * become question marks.
 */
bool nvml_check(struct nvml_message *message, size_t bytes, enum nvml_wanted wanted,
                uint64_t now_ns);

#endif
