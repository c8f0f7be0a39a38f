/* SPDX-License-Identifier: MIT */
/*
 * The producers' side of the ring in shared memory (see agent/wire.h). Any number of threads put
 * records at once; none waits for another or for the reader.
 */
#ifndef CUSCOPE_AGENT_LIB_RING_H
#define CUSCOPE_AGENT_LIB_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire.h"

struct ring {
	struct agent_shared *shared; /* NULL: not mapped */
	char *records;               /* twice in a row */
	uint64_t bytes;
};

/* Maps the memfd, whose size tells the ring's; fills in magic, abi and ring_bytes. Returns 0 or a
 * negative errno. Children of fork do not have the memory. */
int ring_map(struct ring *ring, int memfd);
void ring_unmap(struct ring *ring);

/* Copies a record whose bytes are set and zeroes up to a multiple of 8 follow. False: the ring is
 * full; ring_put counts that in lost_ring. */
bool ring_put(struct ring *ring, const struct agent_head *record);
bool ring_try(struct ring *ring, const struct agent_head *record);

/* A counter in shared memory. */
static inline void ring_count(uint64_t *counter, uint64_t more)
{
	__atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

/* `bytes` rounded up to what a record may have. */
static inline uint32_t ring_rounded(size_t bytes)
{
	return (uint32_t)((bytes + 7) & ~(size_t)7);
}

#endif
