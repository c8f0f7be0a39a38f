/* SPDX-License-Identifier: MIT */
/*
 * Launches of one process whose work has not been told of: a kernel that still ran when its process
 * ended, and what CUPTI held then, never are. By the numbers of calls, which grow.
 */
#ifndef CUSCOPE_CAPTURE_GPU_UNRECORDED_H
#define CUSCOPE_CAPTURE_GPU_UNRECORDED_H

#include <stddef.h>
#include <stdint.h>

#define UNRECORDED_EARLY 64

struct unrecorded {
	uint64_t *open; /* a circle: number times 2, and 1 if it was told of; in order */
	size_t first, count, capacity;
	uint64_t early[UNRECORDED_EARLY]; /* told of before their calls had come; a circle */
	size_t earlies;
	uint64_t unmatched; /* work whose call is not known: of any of these */
};

/* Beyond a quarter of a million at once the oldest is taken for told of: GPUs queue a thousand. */
void unrecorded_launched(struct unrecorded *u, uint64_t number);
void unrecorded_told(struct unrecorded *u, uint64_t number); /* 0: not known */

/* How many are left; all are forgotten. */
uint64_t unrecorded_end(struct unrecorded *u);

#endif
