// SPDX-License-Identifier: MIT
#include "agent/lib/writer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/calls.h"
#include "agent/lib/clock.h"

#define GATES         64
#define CLOSE_MOST_MS 2000

/* Threads that are writing are counted in many places, lest all launches share a cache line. */
static struct gate {
	_Alignas(64) uint32_t holders;
} gates[GATES];

static struct ring ring;
static bool kept;          /* its memory is to stay when it is closed */
static uint32_t kinds_now; /* enum agent_kind and WRITER_OPEN */
static uint32_t names, generation;
static __thread uint32_t own_tid;

uint32_t writer_tid(void)
{
	if (!own_tid)
		own_tid = (uint32_t)syscall(SYS_gettid);
	return own_tid;
}

uint32_t writer_kinds(uint32_t kinds)
{
	return __atomic_load_n(&kinds_now, __ATOMIC_RELAXED) & kinds;
}

struct ring *writer_hold(uint32_t kinds)
{
	uint32_t *holders;

	if (!writer_kinds(kinds)) /* as a rule: what NVTX costs a program that nobody measures */
		return NULL;
	holders = &gates[writer_tid() % GATES].holders;
	/* Either the one who closes sees the holder, or the holder sees that it is closed. */
	__atomic_fetch_add(holders, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&kinds_now, __ATOMIC_SEQ_CST) & kinds)
		return &ring;
	__atomic_fetch_sub(holders, 1, __ATOMIC_RELEASE);
	return NULL;
}

void writer_release(void)
{
	__atomic_fetch_sub(&gates[own_tid % GATES].holders, 1, __ATOMIC_RELEASE);
}

static bool all_gone(void)
{
	for (size_t i = 0; i < GATES; i++) {
		if (__atomic_load_n(&gates[i].holders, __ATOMIC_SEQ_CST))
			return false;
	}
	return true;
}

static void unmap(void)
{
	if (kept)
		memset(&ring, 0, sizeof(ring));
	kept = false;
	ring_unmap(&ring);
}

void writer_keep(void)
{
	kept = ring.shared != NULL;
}

int writer_open(int memfd)
{
	int code;

	if (!all_gone())
		return -EBUSY;
	unmap();
	code = ring_map(&ring, memfd);
	if (code)
		return code;
	__atomic_store_n(&names, CALLS_NAMES, __ATOMIC_RELAXED);
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&kinds_now, WRITER_OPEN, __ATOMIC_SEQ_CST);
	return 0;
}

void writer_measure(uint32_t kinds)
{
	__atomic_store_n(&kinds_now, kinds | WRITER_OPEN, __ATOMIC_SEQ_CST);
}

int writer_close(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	__atomic_store_n(&kinds_now, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; !all_gone(); i++) {
		if (i == CLOSE_MOST_MS)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	unmap();
	return 0;
}

void writer_forked(void)
{
	kinds_now = 0;
	kept = false;
	own_tid = 0;
	memset(&ring, 0, sizeof(ring)); /* the child does not have the memory */
	memset(gates, 0, sizeof(gates));
}

void writer_own_time(uint32_t kind, uint64_t begin_ns)
{
	const struct agent_wait record = {
		.head = { .bytes = sizeof(record), .type = AGENT_OVERHEAD },
		.begin_ns = begin_ns,
		.end_ns = clock_now(),
		.kind = kind,
		.tid = writer_tid(),
	};
	struct ring *to = writer_hold(WRITER_OPEN);

	if (!to)
		return;
	ring_put(to, &record.head);
	writer_release();
}

struct ring *writer_ring(void)
{
	return &ring;
}

struct agent_shared *writer_shared(void)
{
	return ring.shared;
}

uint32_t writer_name_number(void)
{
	return __atomic_add_fetch(&names, 1, __ATOMIC_RELAXED);
}

uint32_t writer_generation(void)
{
	return __atomic_load_n(&generation, __ATOMIC_RELAXED);
}
