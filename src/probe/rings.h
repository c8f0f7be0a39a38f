/* SPDX-License-Identifier: MIT */
/*
 * The rings of a session, read side by side by one thread. That thread stands still at times: names
 * of a large library are read, an output takes nothing. Rings of 8 MiB were seen to
 * be full by then. So a thread of the set looks at the rings and copies what fills them into
 * memory (`ring_keep`), where the reader finds it as if it still lay in the ring.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

/*
 * Reading one BPF ring buffer record by record. libbpf's reader empties one ring after the other;
 * several rings that are to be merged by time must be looked into side by side.
 */

struct ring;

/* `fd` is a BPF_MAP_TYPE_RINGBUF of `bytes`; the ring closes it. NULL and errno on failure. */
struct ring *ring_open(int fd, size_t bytes);
void ring_free(struct ring *ring);

int ring_fd(const struct ring *ring); /* epoll: readable after a wake-up */

size_t ring_bytes(const struct ring *ring); /* its size */
size_t ring_used(const struct ring *ring);  /* of it, by what was not read or kept yet */

/*
 * Copies up to `most` bytes of complete records out of the ring, which has room for others then;
 * ring_peek finds the copies first. Returns the bytes that the ring got back.
 */
size_t ring_keep(struct ring *ring, size_t most);
size_t ring_kept(const struct ring *ring); /* bytes of memory that copies take */

/* The oldest record, valid until ring_advance; NULL when none is complete. */
const struct wire_head *ring_peek(struct ring *ring, size_t *bytes);

/* Gives the space of the record that ring_peek returned back to the kernel. */
void ring_advance(struct ring *ring);

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
