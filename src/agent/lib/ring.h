/* SPDX-License-Identifier: MIT */
/*
 * The producers' side of the ring in shared memory (see agent/wire.h). Any number of threads put
 * records at once; none waits for another or for the reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire.h"

/*
 * What a thread does with the ring, for the case that a signal handler's longjmp takes it out of
 * there, half done. Whether it had got its room is not for it alone to know, then. So the head says
 * who moved it last, and who moves it next confirms that to its predecessor beforehand.
 */
#define RING_CONFIRMED 8

struct ring_claim {
	uint64_t number; /* of the thread, from 1 on; below 1 << (64 - AGENT_HEAD_BITS) */
	uint64_t end;    /* of the room that it asks for, or has and has not written; 0: of none */
	uint32_t bytes;
	_Alignas(64) uint64_t confirmed[RING_CONFIRMED]; /* ends, by their low bits */
};

struct ring {
	struct ring_claim *(*claim)(
		uint64_t number);    /* NULL: threads without are all that there are */
	struct agent_shared *shared; /* NULL: not mapped */
	char *records;               /* twice in a row */
	uint64_t bytes;
	bool counts; /* that of calls is mapped, too: see probe_threads.h */
};

/* Maps the memfd, whose size tells the ring's; fills in magic, abi and ring_bytes. Returns 0 or a
 * negative errno. Children of fork do not have the memory. */
int ring_map(struct ring *ring, int memfd);
void ring_unmap(struct ring *ring);

/* Copies a record whose bytes are set and zeroes up to a multiple of 8 follow. False: the ring is
 * full; ring_put counts that in lost_ring. */
bool ring_put(struct ring *ring, const struct agent_head *record);
bool ring_try(struct ring *ring, const struct agent_head *record);

/*
 * The two halves of it, for who cannot do both at once: room for a record of which all but the
 * first word is to be written, NULL where there is none; and that first word. `claim` may be NULL.
 */
char *ring_room(struct ring *ring, uint32_t bytes, struct ring_claim *claim);
void ring_written(char *room, uint32_t bytes, struct ring_claim *claim);

/* All but the first word of a record, into its room. */
void ring_fill(char *room, const struct agent_head *record);

/* For another ring, whose places begin anew. */
void ring_claim_reset(struct ring_claim *claim);

/* A room that was asked for and will not be written becomes one that the reader skips. Whether it
 * was one. */
bool ring_settle(struct ring *ring, struct ring_claim *claim);

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
