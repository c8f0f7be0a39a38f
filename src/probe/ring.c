// SPDX-License-Identifier: MIT
#include "probe/ring.h"

#include <linux/bpf.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/xalloc.h"

/*
 * The mapping, as kernel/bpf/ringbuf.c lays it out: a page with the consumer's position (writable),
 * a page with the producer's, then the data, mapped twice so that no record wraps. A record begins
 * with its length and two flags: busy (not yet submitted) and discard.
 */
struct ring {
	int fd;
	size_t page, bytes;
	_Atomic(unsigned long) *consumer;
	_Atomic(unsigned long) *producer;
	const char *data;
	unsigned long at; /* our copy of the consumer's position */
	size_t step;      /* to the record after the one that was peeked at */
};

struct ring *ring_open(int fd, size_t bytes)
{
	struct ring *ring = xcalloc(1, sizeof(*ring));
	size_t page = getpagesize();
	char *memory;

	ring->fd = fd;
	ring->page = page;
	ring->bytes = bytes;
	memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		free(ring);
		return NULL;
	}
	ring->consumer = (_Atomic(unsigned long) *)memory;
	memory = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, fd, page);
	if (memory == MAP_FAILED) {
		munmap((void *)ring->consumer, page);
		free(ring);
		return NULL;
	}
	ring->producer = (_Atomic(unsigned long) *)memory;
	ring->data = memory + page;
	ring->at = atomic_load(ring->consumer);
	return ring;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	munmap((void *)ring->consumer, ring->page);
	munmap((void *)ring->producer, ring->page + 2 * ring->bytes);
	close(ring->fd);
	free(ring);
}

int ring_fd(const struct ring *ring)
{
	return ring->fd;
}

const struct wire_head *ring_peek(struct ring *ring, size_t *bytes)
{
	while (ring->at < atomic_load_explicit(ring->producer, memory_order_acquire)) {
		const char *record = ring->data + (ring->at & (ring->bytes - 1));
		uint32_t head =
			atomic_load_explicit((_Atomic(uint32_t) *)record, memory_order_acquire);
		uint32_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		ring->step = (len + BPF_RINGBUF_HDR_SZ + 7) & ~7u;
		*bytes = len;
		if (!(head & BPF_RINGBUF_DISCARD_BIT))
			return (const struct wire_head *)(record + BPF_RINGBUF_HDR_SZ);
		ring_advance(ring);
	}
	return NULL;
}

void ring_advance(struct ring *ring)
{
	ring->at += ring->step;
	atomic_store_explicit(ring->consumer, ring->at, memory_order_release);
}
