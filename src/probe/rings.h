/* SPDX-License-Identifier: MIT */
/*
 * The rings of a session, read side by side by one thread. That thread stands still at times: names
 * of a large library are read, an output takes nothing. Rings of 8 MiB were seen to
 * be full by then. So a thread of the set looks at the rings and copies what fills them into
 * memory (`ring_keep`), where the reader finds it as if it still lay in the ring.
 */
#ifndef CUSCOPE_PROBE_RINGS_H
#define CUSCOPE_PROBE_RINGS_H

#include <stddef.h>

#include "probe/ring.h"

/* Bytes that a session keeps of its rings, at most; fewer where the user wants smaller rings. */
#define RINGS_KEPT_MOST ((size_t)128 << 20)

struct rings;

/* A set without rings and without its thread; freed before the rings that it was given. */
struct rings *rings_new(void);
void rings_free(struct rings *rings);

/* At most WIRE_RINGS_MAX, before rings_watch. The ring stays the caller's. */
void rings_add(struct rings *rings, struct ring *ring);
size_t rings_count(const struct rings *rings);
struct ring *rings_at(const struct rings *rings, size_t index);

/*
 * Begins the thread, which keeps `most` bytes at most. Beyond, records stay in the rings, and what
 * finds no room there is lost and counted; so it is where the thread could not begin.
 */
void rings_watch(struct rings *rings, size_t most);

/* Around ring_peek and ring_advance, not around what takes long: the thread waits meanwhile. */
void rings_enter(struct rings *rings);
void rings_leave(struct rings *rings);

#endif
