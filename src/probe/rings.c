// SPDX-License-Identifier: MIT
#include "probe/rings.h"

#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
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

/*
 * A record of a call has some 72 bytes: 8 MiB are 116,000 of them. A ring that is an eighth full is
 * looked at more often, since its reader may have stopped.
 */
#define LOOK_IDLE_NS 50000000
#define LOOK_BUSY_NS 10000000
#define BUSY_PART    8 /* of a ring */
#define KEEP_PART    4
#define KEEP_BYTES   ((size_t)512 << 10) /* at once, with the lock held */

struct rings {
	struct ring *ring[WIRE_RINGS_MAX];
	size_t count, most;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the end */
	pthread_t thread;
	bool watched, ends;
};

struct rings *rings_new(void)
{
	struct rings *rings = xcalloc(1, sizeof(*rings));
	pthread_condattr_t attr;

	pthread_mutex_init(&rings->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rings->wake, &attr);
	pthread_condattr_destroy(&attr);
	return rings;
}

void rings_free(struct rings *rings)
{
	if (!rings)
		return;
	if (rings->watched) {
		rings_enter(rings);
		rings->ends = true;
		pthread_cond_signal(&rings->wake);
		rings_leave(rings);
		pthread_join(rings->thread, NULL);
	}
	pthread_cond_destroy(&rings->wake);
	pthread_mutex_destroy(&rings->lock);
	free(rings);
}

void rings_add(struct rings *rings, struct ring *ring)
{
	rings->ring[rings->count++] = ring;
}

size_t rings_count(const struct rings *rings)
{
	return rings->count;
}

struct ring *rings_at(const struct rings *rings, size_t index)
{
	return rings->ring[index];
}

void rings_enter(struct rings *rings)
{
	pthread_mutex_lock(&rings->lock);
}

void rings_leave(struct rings *rings)
{
	pthread_mutex_unlock(&rings->lock);
}

/* ---- the thread, with the lock held -------------------------------------------------------- */

/* What more may be kept at once. */
static size_t rings_room(const struct rings *rings)
{
	size_t kept = 0;

	for (size_t i = 0; i < rings->count; i++)
		kept += ring_kept(rings->ring[i]);
	if (kept >= rings->most)
		return 0;
	return rings->most - kept < KEEP_BYTES ? rings->most - kept : KEEP_BYTES;
}

/* Keeps a piece of what is in the ring where that is a quarter of it. Whether it was one. */
static bool rings_keep_piece(struct rings *rings, struct ring *ring)
{
	return ring_used(ring) > ring_bytes(ring) / KEEP_PART &&
	       ring_keep(ring, rings_room(rings)) > 0;
}

static void rings_wait(struct rings *rings, uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	while (!rings->ends && pthread_cond_timedwait(&rings->wake, &rings->lock, &until) == 0)
		;
}

static void *rings_work(void *data)
{
	struct rings *rings = data;

	rings_enter(rings);
	while (!rings->ends) {
		bool busy = false;

		for (size_t i = 0; i < rings->count && !rings->ends; i++) {
			busy |= ring_used(rings->ring[i]) > ring_bytes(rings->ring[i]) / BUSY_PART;
			while (!rings->ends && rings_keep_piece(rings, rings->ring[i])) {
				rings_leave(rings); /* the reader's turn */
				rings_enter(rings);
			}
		}
		rings_wait(rings, busy ? LOOK_BUSY_NS : LOOK_IDLE_NS);
	}
	rings_leave(rings);
	return NULL;
}

void rings_watch(struct rings *rings, size_t most)
{
	sigset_t all, before;

	rings->most = most;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rings->watched = !pthread_create(&rings->thread, NULL, rings_work, rings);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
