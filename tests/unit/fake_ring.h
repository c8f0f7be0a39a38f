/* SPDX-License-Identifier: MIT */
/*
 * The kernel's side of a BPF ring buffer, in a memfd: a page with the consumer's position, a page
 * with the producer's, then the data twice. There it is one memory mapped twice, here two pieces:
 * a record that wraps is written across the border of the two, and the reader reads it there.
 */
#ifndef TESTS_UNIT_FAKE_RING_H
#define TESTS_UNIT_FAKE_RING_H

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/rings.h"
#include "unit.h"

#define FAKE_RING_BYTES 65536

struct fake_ring {
	struct ring *ring; /* what is tested */
	char *memory;
	unsigned long at; /* the producer's position */
};

static inline unsigned long *fake_ring_consumer(const struct fake_ring *fake)
{
	return (unsigned long *)fake->memory;
}

static inline void fake_ring_open(struct fake_ring *fake)
{
	size_t page = (size_t)getpagesize(), size = 2 * page + 2 * FAKE_RING_BYTES;
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	fake->at = 0;
	fake->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(fake->memory != MAP_FAILED);
	fake->ring = ring_open(fd, FAKE_RING_BYTES);
	assert_non_null(fake->ring);
}

static inline void fake_ring_close(struct fake_ring *fake)
{
	ring_free(fake->ring);
	munmap(fake->memory, 2 * (size_t)getpagesize() + 2 * FAKE_RING_BYTES);
}

/* Reserves a record. Returns its header: length and flags. */
static inline uint32_t *fake_ring_reserve(struct fake_ring *fake, const void *record, size_t bytes)
{
	size_t page = (size_t)getpagesize();
	uint32_t *head = (uint32_t *)(fake->memory + 2 * page + (fake->at & (FAKE_RING_BYTES - 1)));
	unsigned long step = (bytes + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;

	assert_true(fake->at + step - *fake_ring_consumer(fake) <= FAKE_RING_BYTES);
	memcpy((char *)head + BPF_RINGBUF_HDR_SZ, record, bytes);
	head[0] = (uint32_t)bytes | BPF_RINGBUF_BUSY_BIT;
	head[1] = 0xabad1dea; /* where the kernel keeps a page number */
	fake->at += step;
	*(unsigned long *)(fake->memory + page) = fake->at;
	return head;
}

static inline void fake_ring_submit(uint32_t *head)
{
	*head &= ~BPF_RINGBUF_BUSY_BIT;
}

static inline void fake_ring_discard(uint32_t *head)
{
	*head = (*head & ~BPF_RINGBUF_BUSY_BIT) | BPF_RINGBUF_DISCARD_BIT;
}

/* A record of `bytes` that says when it is from and, in its tid, which one it is. */
static inline uint32_t *fake_ring_begin(struct fake_ring *fake, uint64_t time_ns, uint32_t tid,
                                        size_t bytes)
{
	static char record[8192];
	struct wire_head *head = (struct wire_head *)record;

	assert_true(bytes >= sizeof(*head) && bytes <= sizeof(record));
	memset(record, (int)(tid & 0xff), sizeof(record));
	*head = (struct wire_head){ .type = WIRE_CALL, .tid = tid, .time_ns = time_ns };
	return fake_ring_reserve(fake, record, bytes);
}

static inline void fake_ring_put(struct fake_ring *fake, uint64_t time_ns, uint32_t tid)
{
	fake_ring_submit(fake_ring_begin(fake, time_ns, tid, WIRE_CALL_BYTES(4)));
}

#endif
