// SPDX-License-Identifier: MIT
#include "agent/lib/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_LEAST ((uint64_t)64 << 10)
#define RING_MOST  ((uint64_t)1 << 32)

static int map_part(char *at, size_t bytes, int memfd, off_t from)
{
	/* Populated: that pages are there is not for launches to wait for. */
	void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_FIXED | MAP_POPULATE, memfd, from);

	return memory == MAP_FAILED ? -errno : 0;
}

int ring_map(struct ring *ring, int memfd)
{
	off_t end = lseek(memfd, 0, SEEK_END);
	uint64_t bytes = end > AGENT_RING_AT ? (uint64_t)end - AGENT_RING_AT : 0;
	size_t all = AGENT_RING_AT + 2 * bytes;
	char *memory;
	int code;

	if (bytes < RING_LEAST || bytes > RING_MOST || bytes & (bytes - 1))
		return -EINVAL;
	memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	code = map_part(memory, AGENT_RING_AT + bytes, memfd, 0);
	if (!code)
		code = map_part(memory + AGENT_RING_AT + bytes, bytes, memfd, AGENT_RING_AT);
	if (code) {
		munmap(memory, all);
		return code;
	}
	madvise(memory, all, MADV_DONTFORK);
	ring->shared = (struct agent_shared *)memory;
	ring->records = memory + AGENT_RING_AT;
	ring->bytes = bytes;
	ring->shared->magic = AGENT_MAGIC;
	ring->shared->abi = AGENT_ABI;
	ring->shared->ring_bytes = bytes;
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (ring->shared)
		munmap(ring->shared, AGENT_RING_AT + 2 * ring->bytes);
	memset(ring, 0, sizeof(*ring));
}

/* Moves the head by `bytes`; UINT64_MAX: there is no room. */
static uint64_t reserve(struct ring *ring, uint32_t bytes)
{
	struct agent_shared *shared = ring->shared;
	uint64_t head = __atomic_load_n(&shared->head, __ATOMIC_RELAXED);

	do {
		/* Acquires the zeroes that the reader left behind. A head that is long past looks
		 * negative, and is not exchanged. */
		uint64_t tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);

		if ((int64_t)(head + bytes - tail) > (int64_t)ring->bytes)
			return UINT64_MAX;
	} while (!__atomic_compare_exchange_n(&shared->head, &head, head + bytes, true,
	                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return head;
}

bool ring_try(struct ring *ring, const struct agent_head *record)
{
	uint32_t bytes = record->bytes;
	uint64_t at = reserve(ring, bytes);
	char *to;

	if (at == UINT64_MAX)
		return false;
	to = ring->records + (at & (ring->bytes - 1));
	memcpy(to + sizeof(bytes), (const char *)record + sizeof(bytes), bytes - sizeof(bytes));
	__atomic_store_n((uint32_t *)to, bytes, __ATOMIC_RELEASE);
	return true;
}

bool ring_put(struct ring *ring, const struct agent_head *record)
{
	if (ring_try(ring, record))
		return true;
	ring_count(&ring->shared->lost_ring, 1);
	return false;
}
