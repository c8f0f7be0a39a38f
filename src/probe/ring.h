/* SPDX-License-Identifier: MIT */
/*
 * Reading one BPF ring buffer record by record. libbpf's reader empties one ring after the other;
 * several rings that are to be merged by time must be looked into side by side.
 */
#ifndef CUSCOPE_PROBE_RING_H
#define CUSCOPE_PROBE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

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

#endif
