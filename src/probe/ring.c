// SPDX-License-Identifier: MIT
#include "probe/ring.h"

#include <linux/bpf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/xalloc.h"

/*
 * The mapping, as kernel/bpf/ringbuf.c lays it out: a page with the consumer's position (writable),
 * a page with the producer's, then the data, mapped twice so that no record wraps. A record begins
 * with its length and two flags: busy (not yet submitted) and discard.
 */
#define BLOCK_BYTES ((size_t)256 << 10) /* many times the longest record */

/* Copies of records, each behind its length, padded to eight bytes. */
struct ring_block {
	struct ring_block *next;
	size_t read, written;
	char data[BLOCK_BYTES - 3 * sizeof(size_t)];
};

struct ring {
	int fd;
	size_t page, bytes;
	_Atomic(unsigned long) *consumer;
	_Atomic(unsigned long) *producer;
	const char *data;
	unsigned long at;                /* our copy of the consumer's position */
	size_t step;                     /* to the record after the one that was peeked at */
	struct ring_block *first, *last; /* what was kept; older than all in the ring */
	size_t blocks;
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

static void ring_drop_block(struct ring *ring)
{
	struct ring_block *block = ring->first;

	ring->first = block->next;
	if (!ring->first)
		ring->last = NULL;
	ring->blocks--;
	free(block);
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	while (ring->first)
		ring_drop_block(ring);
	munmap((void *)ring->consumer, ring->page);
	munmap((void *)ring->producer, ring->page + 2 * ring->bytes);
	close(ring->fd);
	free(ring);
}

int ring_fd(const struct ring *ring)
{
	return ring->fd;
}

size_t ring_bytes(const struct ring *ring)
{
	return ring->bytes;
}

size_t ring_used(const struct ring *ring)
{
	return atomic_load_explicit(ring->producer, memory_order_acquire) - ring->at;
}

size_t ring_kept(const struct ring *ring)
{
	return ring->blocks * sizeof(struct ring_block);
}

static void ring_pass(struct ring *ring, size_t step)
{
	ring->at += step;
	atomic_store_explicit(ring->consumer, ring->at, memory_order_release);
}

/* The first record of the ring that is complete and not discarded. */
static const struct wire_head *ring_first(struct ring *ring, size_t *bytes, size_t *step)
{
	while (ring->at < atomic_load_explicit(ring->producer, memory_order_acquire)) {
		const char *record = ring->data + (ring->at & (ring->bytes - 1));
		uint32_t head =
			atomic_load_explicit((_Atomic(uint32_t) *)record, memory_order_acquire);
		uint32_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		*step = (len + BPF_RINGBUF_HDR_SZ + 7) & ~7u;
		*bytes = len;
		if (!(head & BPF_RINGBUF_DISCARD_BIT))
			return (const struct wire_head *)(record + BPF_RINGBUF_HDR_SZ);
		ring_pass(ring, *step);
	}
	return NULL;
}

/* ---- what is kept -------------------------------------------------------------------------- */

/* The room that the copy of a record takes. */
static size_t ring_copy_bytes(size_t bytes)
{
	return sizeof(size_t) + ((bytes + 7) & ~(size_t)7);
}

static void ring_add_block(struct ring *ring)
{
	struct ring_block *block = xmalloc(sizeof(*block));

	block->next = NULL;
	block->read = block->written = 0;
	if (ring->last)
		ring->last->next = block;
	else
		ring->first = block;
	ring->last = block;
	ring->blocks++;
}

size_t ring_keep(struct ring *ring, size_t most)
{
	unsigned long from = ring->at;
	const struct wire_head *record;
	size_t bytes, step;

	while (ring->at - from < most && (record = ring_first(ring, &bytes, &step))) {
		struct ring_block *last = ring->last;

		if (ring_copy_bytes(bytes) > sizeof(last->data))
			break;
		if (!last || last->written + ring_copy_bytes(bytes) > sizeof(last->data))
			ring_add_block(ring);
		last = ring->last;
		memcpy(last->data + last->written, &bytes, sizeof(bytes));
		memcpy(last->data + last->written + sizeof(bytes), record, bytes);
		last->written += ring_copy_bytes(bytes);
		ring_pass(ring, step);
	}
	return ring->at - from;
}

/* ---- reading ------------------------------------------------------------------------------- */

const struct wire_head *ring_peek(struct ring *ring, size_t *bytes)
{
	const struct ring_block *block = ring->first;

	if (!block)
		return ring_first(ring, bytes, &ring->step);
	memcpy(bytes, block->data + block->read, sizeof(*bytes));
	ring->step = ring_copy_bytes(*bytes);
	return (const struct wire_head *)(block->data + block->read + sizeof(*bytes));
}

void ring_advance(struct ring *ring)
{
	if (!ring->first) {
		ring_pass(ring, ring->step);
		return;
	}
	ring->first->read += ring->step;
	if (ring->first->read == ring->first->written)
		ring_drop_block(ring);
}
