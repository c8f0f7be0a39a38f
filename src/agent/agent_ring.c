// SPDX-License-Identifier: MIT
#include "agent/agent_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/words.h"
#include "base/xalloc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u /* Linux 6.3 */
#endif

#define RING_LEAST ((size_t)64 << 10)
#define RING_MOST  ((size_t)1 << 30)
#define TELL_BYTES 8192
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct agent_ring {
	struct agent_shared *shared;
	char *memory; /* twice in a row */
	size_t bytes;
	uint64_t tail; /* the one in shared memory is only for the agent to read, */
	uint64_t told; /* and as it was then */
	union {
		struct agent_head head;
		_Alignas(8) char bytes[AGENT_RECORD_MAX];
	} copy;
};

/* ---- making ---------------------------------------------------------------------------------- */

static size_t ring_size(size_t bytes)
{
	size_t size = RING_LEAST;

	while (size < bytes && size < RING_MOST)
		size *= 2;
	return size;
}

/*
 * Sealed against a change of its size, since a reader of pages that are gone gets SIGBUS. Not
 * executable where the kernel knows how to say so; some refuse memory that does not say it.
 */
static int make_memfd(size_t bytes)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("cuscope-ring", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("cuscope-ring", flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		int code = -errno;

		close(fd);
		return code;
	}
	return fd;
}

/*
 * The other side can map the file thousands of times, and punch holes into it: a fork that copied
 * these mappings would wait for that. No child of this process reads a ring.
 */
static int map_ring(struct agent_ring *ring, int fd)
{
	int protection = PROT_READ | PROT_WRITE;
	void *memory;

	memory = mmap(NULL, AGENT_RING_AT, protection, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->shared = memory;
	madvise(ring->shared, AGENT_RING_AT, MADV_DONTFORK);
	memory = mmap(NULL, 2 * ring->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->memory = memory;
	for (int i = 0; i < 2; i++) {
		if (mmap(ring->memory + i * ring->bytes, ring->bytes, protection,
		         MAP_SHARED | MAP_FIXED, fd, AGENT_RING_AT) == MAP_FAILED)
			return -errno;
	}
	madvise(ring->memory, 2 * ring->bytes, MADV_DONTFORK);
	return 0;
}

int agent_ring_new(size_t bytes, struct agent_ring **ring_out, int *memfd, struct err *err)
{
	struct agent_ring *ring = xcalloc(1, sizeof(*ring));
	int rc = 0, fd;

	*ring_out = NULL;
	ring->bytes = ring_size(bytes);
	fd = make_memfd(AGENT_RING_AT + ring->bytes);
	if (fd < 0)
		rc = fd;
	else
		rc = map_ring(ring, fd);
	if (rc) {
		agent_ring_free(ring);
		if (fd >= 0)
			close(fd);
		return err_set(err, rc, "cannot make %zu KiB of memory to share with it: %s",
		               bytes >> 10, strerror(-rc));
	}
	*ring_out = ring;
	*memfd = fd;
	return 0;
}

void agent_ring_free(struct agent_ring *ring)
{
	if (!ring)
		return;
	if (ring->shared)
		munmap(ring->shared, AGENT_RING_AT);
	if (ring->memory) {
		/* children of fork may have the counts mapped for long, and with them the file */
		madvise(ring->memory, ring->bytes, MADV_REMOVE);
		munmap(ring->memory, 2 * ring->bytes);
	}
	free(ring);
}

/* ---- records --------------------------------------------------------------------------------- */

/* By type: the bytes that must be there, and where a text begins that must end in the record. */
static const struct agent_ring_layout {
	uint16_t least, text;
} layouts[] = {
	[AGENT_PAD] = { sizeof(struct agent_head), 0 },
	[AGENT_NAME] = { sizeof(struct agent_name), offsetof(struct agent_name, text) },
	[AGENT_SHAPE] = { sizeof(struct agent_shape), 0 },
	[AGENT_LANE] = { sizeof(struct agent_lane), 0 },
	[AGENT_CALL] = { sizeof(struct agent_call), 0 },
	[AGENT_KERNEL] = { sizeof(struct agent_kernel), 0 },
	[AGENT_COPY] = { sizeof(struct agent_copy), 0 },
	[AGENT_SET] = { sizeof(struct agent_copy), 0 },
	[AGENT_GRAPH] = { sizeof(struct agent_graph), 0 },
	[AGENT_SYNC] = { sizeof(struct agent_wait), 0 },
	[AGENT_OVERHEAD] = { sizeof(struct agent_wait), 0 },
	[AGENT_NVTX] = { sizeof(struct agent_nvtx), offsetof(struct agent_nvtx, text) },
	[AGENT_PROBED] = { sizeof(struct agent_probed), 0 },
	[AGENT_PROBE_BEGUN] = { sizeof(struct agent_probed), 0 },
	[AGENT_PROBE_NAME] = { sizeof(struct agent_probe_name),
	                       offsetof(struct agent_probe_name, text) },
	[AGENT_NODE] = { sizeof(struct agent_node), 0 },
	[AGENT_STALL] = { sizeof(struct agent_stall), 0 },
	[AGENT_STALL_WINDOW] = { sizeof(struct agent_stall_window), 0 },
	[AGENT_STALLS_TOLD] = { sizeof(struct agent_stalls_told), 0 },
};

#define TYPES (ARRAY_SIZE(layouts))

static size_t least_bytes(const struct agent_head *record)
{
	if (record->type == AGENT_KERNEL && record->flags & AGENT_KERNEL_LONG)
		return sizeof(struct agent_kernel_long);
	return layouts[record->type].least;
}

static bool words_fit(const struct agent_call *call)
{
	size_t words = (call->head.bytes - sizeof(*call)) / sizeof(*call->word);

	return call->arguments <= words && call->blob <= words - call->arguments;
}

/* A record that was copied, whose `bytes` is right as far as the ring is concerned. */
static int check(const struct agent_head *record, struct err *err)
{
	size_t text;

	if (!record->type || record->type >= TYPES)
		return err_set(err, EBADMSG, "a record of type %u, which there is not",
		               record->type);
	if (record->bytes < least_bytes(record))
		return err_set(err, EBADMSG, "a record of type %u and only %u bytes", record->type,
		               record->bytes);
	text = layouts[record->type].text;
	if (text && !memchr((const char *)record + text, 0, record->bytes - text))
		return err_set(err, EBADMSG, "a text without an end");
	if (record->type == AGENT_CALL && !words_fit((const struct agent_call *)record))
		return err_set(err, EBADMSG, "a call with more arguments than its record holds");
	return 0;
}

/*
 * Copies the record at the tail; 0 bytes: it is not written yet. After this nothing looks at the
 * shared memory any more, and the length is the one that was checked.
 */
static int take(struct agent_ring *ring, uint64_t room, struct err *err)
{
	const char *at = ring->memory + (ring->tail & (ring->bytes - 1));
	struct agent_head *record = &ring->copy.head;
	uint32_t bytes = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);

	if (!bytes)
		return 0;
	if (bytes % 8 || bytes > AGENT_RECORD_MAX || bytes > room)
		return err_set(err, EBADMSG, "a record of %u bytes, where %lu were reserved", bytes,
		               room);
	words_copy(ring->copy.bytes, at, bytes);
	__asm__ volatile("" ::: "memory"); /* the copy is one: it is not read again from there */
	record->bytes = bytes;
	return check(record, err) ? -EBADMSG : (int)bytes;
}

/*
 * Zeroes what was read, so that a reader finds no old record, and gives the room back. All threads
 * of the process look at the tail, so it is not moved for each record.
 */
static void tell_tail(struct agent_ring *ring)
{
	words_clear(ring->memory + (ring->told & (ring->bytes - 1)), ring->tail - ring->told);
	__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
	ring->told = ring->tail;
}

static void give_back(struct agent_ring *ring, size_t bytes)
{
	ring->tail += bytes;
	if (ring->tail - ring->told >= TELL_BYTES)
		tell_tail(ring);
}

int64_t agent_ring_read(struct agent_ring *ring, agent_record_fn record, void *data,
                        struct err *err)
{
	uint64_t begin = ring->tail;
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);

	/* of the two numbers the tail is the one that was not made elsewhere */
	head = ring->tail + ((head - ring->tail) & AGENT_HEAD_MASK);
	if (head - ring->tail > ring->bytes || head % 8)
		return err_set(err, EBADMSG,
		               "the ring's head at %lu, where between %lu and %lu is possible",
		               head, ring->tail, ring->tail + ring->bytes);
	while (ring->tail != head) {
		int bytes = take(ring, head - ring->tail, err);

		if (bytes <= 0)
			tell_tail(ring);
		if (bytes < 0)
			return bytes;
		if (!bytes)
			break;
		give_back(ring, (size_t)bytes);
		if (ring->copy.head.type != AGENT_PAD)
			record(data, &ring->copy.head);
	}
	tell_tail(ring);
	return (int64_t)(ring->tail - begin);
}

bool agent_ring_waits(const struct agent_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_RELAXED);

	return ((head - ring->tail) & AGENT_HEAD_MASK) != 0;
}

/* ---- what it says of itself ------------------------------------------------------------------ */

uint32_t agent_ring_state(const struct agent_ring *ring)
{
	return __atomic_load_n(&ring->shared->state, __ATOMIC_ACQUIRE);
}

void agent_ring_probes(const struct agent_ring *ring, struct agent_ring_probes *probes)
{
	const struct agent_shared *shared = ring->shared;

	probes->slots = __atomic_load_n(&shared->probe_slots, __ATOMIC_ACQUIRE);
	probes->used = __atomic_load_n(&shared->probe_used, __ATOMIC_RELAXED);
	probes->thunk_bytes = __atomic_load_n(&shared->probe_thunk_bytes, __ATOMIC_RELAXED);
	probes->thunks = __atomic_load_n(&shared->probe_thunks, __ATOMIC_RELAXED);
	probes->answer.number = __atomic_load_n(&shared->answer.number, __ATOMIC_ACQUIRE);
	probes->answer.code = __atomic_load_n(&shared->answer.code, __ATOMIC_RELAXED);
	probes->answer.area = __atomic_load_n(&shared->answer.area, __ATOMIC_RELAXED);
}

uint32_t agent_ring_areas(const struct agent_ring *ring, struct agent_area areas[AGENT_AREAS_MOST])
{
	uint32_t n = __atomic_load_n(&ring->shared->probe_areas, __ATOMIC_RELAXED);

	n = n < AGENT_AREAS_MOST ? n : AGENT_AREAS_MOST;
	memcpy(areas, ring->shared->probe_area, n * sizeof(*areas));
	__asm__ volatile("" ::: "memory"); /* the copy is one */
	return n;
}

#define COUNT_MOST (1ull << 56) /* of a share: two years of a call a nanosecond */

uint64_t agent_ring_counted(const struct agent_ring *ring, uint32_t slot)
{
	const uint64_t *counts = (const uint64_t *)((const char *)ring->shared + AGENT_COUNTS_AT);
	uint32_t n = __atomic_load_n(&ring->shared->probe_shares, __ATOMIC_RELAXED);
	uint64_t sum = 0;

	n = n < AGENT_COUNT_CHILDREN ? n : AGENT_COUNT_CHILDREN;
	for (uint32_t i = 0; i < n && slot < AGENT_SLOTS_MOST; i++) {
		uint64_t count =
			__atomic_load_n(&counts[i * AGENT_SLOTS_MOST + slot], __ATOMIC_RELAXED);

		if (count >= COUNT_MOST)
			return UINT64_MAX;
		sum += count;
	}
	return sum;
}

/* Whole pages, also where these have 64 KiB: the last two shares. */
#define SHARE_BYTES    (AGENT_SLOTS_MOST * sizeof(uint64_t))
#define CHILDREN_AT    (AGENT_COUNTS_AT + (AGENT_COUNT_CHILDREN - 1) * SHARE_BYTES)
#define CHILDREN_BYTES (2 * SHARE_BYTES)

_Static_assert(CHILDREN_AT % 65536 == 0 && CHILDREN_BYTES % 65536 == 0, "pages");

/* Of shared memory mremap makes a second mapping. */
const uint64_t *agent_ring_children(const struct agent_ring *ring)
{
	char *at = (char *)ring->shared + CHILDREN_AT;
	char *memory = mremap(at, 0, CHILDREN_BYTES, MREMAP_MAYMOVE);

	return memory == MAP_FAILED ? NULL : (const uint64_t *)(memory + SHARE_BYTES);
}

void agent_ring_children_free(const uint64_t *children)
{
	if (children)
		munmap((char *)children - SHARE_BYTES, CHILDREN_BYTES);
}

void agent_ring_set_clock(struct agent_ring *ring, int64_t offset_ns)
{
	ring->shared->clock_offset_ns = offset_ns;
}

void agent_ring_set_walks(struct agent_ring *ring, const struct wire_due *due)
{
	ring->shared->walk_ns = due->call_ns;
	ring->shared->walk_one_in = due->one_in;
}

void agent_ring_set_names(struct agent_ring *ring, uint64_t offset)
{
	__atomic_store_n(&ring->shared->name_offset, offset, __ATOMIC_RELAXED);
}

void agent_ring_shared(const struct agent_ring *ring, struct agent_shared *shared)
{
	memcpy(shared, ring->shared, sizeof(*shared));
	__asm__ volatile("" ::: "memory");
	shared->text[sizeof(shared->text) - 1] = '\0';
	shared->cupti_path[sizeof(shared->cupti_path) - 1] = '\0';
	shared->head = shared->tail = 0;
}
