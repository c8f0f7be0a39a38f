/* SPDX-License-Identifier: MIT */
/*
 * The mappings of code of a process, kept for a moment. A program launches hundreds of kernels by
 * addresses in a few libraries. If /proc/PID/maps were read for each, one process with thousands of
 * mappings could take all of the time of the loop that asks.
 *
 * The mappings of one process are read at most every 100 ms, or after fifty times as long as
 * reading took if that is less. Those of all take a tenth of the time, after half a second at once.
 */
#ifndef CUSCOPE_CAPTURE_CODE_MAPS_H
#define CUSCOPE_CAPTURE_CODE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/maps.h"

/* Of one process, beyond which the rest of its mappings is not known. */
#define CODE_MAPS_MOST (2u << 20)

struct budget;

/* The time that reading may take, of all processes. */
struct code_maps_share {
	uint64_t credit_ns, since_ns; /* 0: never used */
};

/* Of one process; all 0 is one that was not read yet. */
struct code_maps {
	struct mapping *mappings; /* by address; paths are ours */
	size_t count, bytes;
	uint64_t read_ns, again_ns; /* when it was read, and may be again */
};

enum code_maps_answer {
	CODE_MAPS_FOUND,
	CODE_MAPS_NONE,    /* no file is mapped there, or it is beyond what is kept */
	CODE_MAPS_TOO_SOON /* it may be in a mapping that is new: to be asked again */
};

/* *mapping is valid until the next call. What is kept is taken from the budget (may be NULL). */
enum code_maps_answer code_maps_find(struct code_maps *maps, struct code_maps_share *share,
                                     struct budget *budget, uint32_t tgid, uint64_t address,
                                     const struct mapping **mapping);

void code_maps_drop(struct code_maps *maps, struct budget *budget, uint32_t tgid);

#endif
