// SPDX-License-Identifier: MIT
#include "agent/lib/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/lib/probe_threads.h"

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
	code = map_part(memory, AGENT_COUNTS_AT, memfd, 0);
	for (int i = 0; i < 2 && !code; i++)
		code = map_part(memory + AGENT_RING_AT + i * bytes, bytes, memfd, AGENT_RING_AT);
	if (code) {
		munmap(memory, all);
		return code;
	}
	madvise(memory, all, MADV_DONTFORK);
	ring->shared = (struct agent_shared *)memory;
	ring->records = memory + AGENT_RING_AT;
	ring->bytes = bytes;
	ring->counts = counts_open(memfd);
	ring->shared->magic = AGENT_MAGIC;
	ring->shared->abi = AGENT_ABI;
	ring->shared->ring_bytes = bytes;
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (ring->counts)
		counts_close();
	if (ring->shared)
		munmap(ring->shared, AGENT_RING_AT + 2 * ring->bytes);
	memset(ring, 0, sizeof(*ring));
}

static uint64_t *confirmed(struct ring_claim *claim, uint64_t end)
{
	return &claim->confirmed[end / 8 % RING_CONFIRMED];
}

void ring_claim_reset(struct ring_claim *claim)
{
	claim->end = 0;
	memset(claim->confirmed, 0, sizeof(claim->confirmed));
}

/* To the one who moved the head last, if that is another: so it was. */
static void confirm(struct ring *ring, uint64_t head, const struct ring_claim *claim)
{
	uint64_t number = head >> AGENT_HEAD_BITS;
	struct ring_claim *other;

	if (!number || (claim && claim->number == number) || !ring->claim)
		return;
	other = ring->claim(number);
	if (other)
		__atomic_store_n(confirmed(other, head & AGENT_HEAD_MASK), head & AGENT_HEAD_MASK,
		                 __ATOMIC_RELAXED);
}

/* Bytes from one place of the ring to another; negative, where it lies behind. */
static int64_t distance(uint64_t to, uint64_t from)
{
	return (int64_t)((to - from) << (64 - AGENT_HEAD_BITS)) >> (64 - AGENT_HEAD_BITS);
}

/* Moves the head by `bytes`; UINT64_MAX: there is no room. */
static uint64_t reserve(struct ring *ring, uint32_t bytes, struct ring_claim *claim)
{
	struct agent_shared *shared = ring->shared;
	uint64_t head = __atomic_load_n(&shared->head, __ATOMIC_RELAXED);
	uint64_t number = claim ? claim->number << AGENT_HEAD_BITS : 0, end;

	do {
		/* Acquires the zeroes that the reader left behind. A head that is long past looks
		 * negative, and is not exchanged. */
		uint64_t tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);

		end = (head + bytes) & AGENT_HEAD_MASK;
		if (distance(end, tail) > (int64_t)ring->bytes)
			return UINT64_MAX;
		if (claim) {
			claim->bytes = bytes;
			__atomic_store_n(&claim->end, end, __ATOMIC_RELAXED);
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		}
		confirm(ring, head, claim);
	} while (!__atomic_compare_exchange_n(&shared->head, &head, end | number, true,
	                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return end - bytes;
}

static char *room_at(struct ring *ring, uint64_t at)
{
	return ring->records + (at & (ring->bytes - 1));
}

char *ring_room(struct ring *ring, uint32_t bytes, struct ring_claim *claim)
{
	uint64_t at = reserve(ring, bytes, claim);

	if (at != UINT64_MAX)
		return room_at(ring, at);
	if (claim)
		claim->end = 0;
	return NULL;
}

void ring_written(char *room, uint32_t bytes, struct ring_claim *claim)
{
	__atomic_store_n((uint32_t *)room, bytes, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (claim)
		__atomic_store_n(&claim->end, 0, __ATOMIC_RELAXED);
}

/* The first word is 0 before it is written, and again when it was read: for a moment before the
 * tail tells that. */
static bool is_unwritten(struct ring *ring, uint64_t at)
{
	for (int i = 0; i < 1000; i++) {
		if (distance(__atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE), at) > 0 ||
		    __atomic_load_n((uint32_t *)room_at(ring, at), __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

bool ring_settle(struct ring *ring, struct ring_claim *claim)
{
	struct agent_head pad = { .type = AGENT_PAD };
	uint64_t end = claim->end, head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
	char *room = room_at(ring, end - claim->bytes);

	if (!end)
		return false;
	claim->end = 0;
	if (head != (end | claim->number << AGENT_HEAD_BITS) &&
	    __atomic_load_n(confirmed(claim, end), __ATOMIC_RELAXED) != end)
		return false;
	if (!is_unwritten(ring, end - claim->bytes))
		return false;
	memcpy(room + sizeof(pad.bytes), (char *)&pad + sizeof(pad.bytes),
	       sizeof(pad) - sizeof(pad.bytes));
	ring_written(room, claim->bytes, NULL);
	return true;
}

#ifdef __SANITIZE_THREAD__
/* Producers and reader have the memory at different addresses, which TSan takes for two. */
__attribute__((no_sanitize("thread"))) void ring_fill(char *room, const struct agent_head *record)
{
	for (uint32_t i = sizeof(record->bytes); i < record->bytes; i++)
		((volatile char *)room)[i] = ((const char *)record)[i];
}
#else
void ring_fill(char *room, const struct agent_head *record)
{
	const size_t first = sizeof(record->bytes);

	memcpy(room + first, (const char *)record + first, record->bytes - first);
}
#endif

bool ring_try(struct ring *ring, const struct agent_head *record)
{
	uint32_t bytes = record->bytes;
	char *to = ring_room(ring, bytes, NULL);

	if (!to)
		return false;
	ring_fill(to, record);
	ring_written(to, bytes, NULL);
	return true;
}

bool ring_put(struct ring *ring, const struct agent_head *record)
{
	if (ring_try(ring, record))
		return true;
	ring_count(&ring->shared->lost_ring, 1);
	return false;
}
