/* SPDX-License-Identifier: MIT */
/*
 * What NVML tells of a process, and calls do not hold: its context, code, local memory, what pools
 * keep free, and what it allocated before it was looked at. Nobody tells these apart, but for what
 * was there when NVML first told of a process whose calls were all seen: context, and code until
 * then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct memory_beyond {
	bool told;           /* by NVML; else all else is 0 */
	bool whole;          /* NVML told of it later than calls were seen: all calls were */
	uint64_t gpu_bytes;  /* that NVML tells of */
	uint64_t by_calls;   /* of these: live memory of the device's */
	uint64_t nccl_bytes; /* of these: allocated by NCCL, as stacks say */
	int64_t rest_bytes;  /* negative for as long as NVML's reading is the older one */
	int64_t first_rest;  /* the first that was not negative */
};

/* Whether memory of this kind is in NVML's figure; managed memory is not. */
bool memory_is_in_nvml(enum api_memory kind);

/* Whether NCCL's library asked for it, or its functions where it is linked in. */
bool memory_is_of_nccl(const struct stack *stack);

/* What NVML tells now. `beyond` begins as zeros, and keeps what was first. */
void memory_beyond_take(struct memory_beyond *beyond, uint64_t gpu_bytes, uint64_t by_calls,
                        uint64_t nccl_bytes);
