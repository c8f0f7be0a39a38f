// SPDX-License-Identifier: MIT
#include "agent/lib/probe_counts.h"

#include <stddef.h>
#include <sys/mman.h>

#define OWNED (AGENT_COUNT_CHILDREN - 1) /* by one thread; the next is for all others */

static char *memory;     /* of AGENT_COUNTS_BYTES */
static uint64_t taken;   /* a bit for each share that a thread has for itself */
static uint32_t highest; /* shares before this one were somebody's */

_Static_assert(AGENT_COUNT_SHARES <= 64, "bits of a word");

/* By mmap alone: the program's filter of system calls may be against others. */
static bool map(int flags, int memfd, off_t from)
{
	void *now = mmap(memory, AGENT_COUNTS_BYTES, PROT_READ | PROT_WRITE,
	                 flags | (memory ? MAP_FIXED : 0), memfd, from);

	if (now == MAP_FAILED)
		return false;
	if (!memory)
		memory = now;
	return true;
}

bool counts_open(int memfd)
{
	return map(MAP_SHARED, memfd, AGENT_COUNTS_AT);
}

void counts_close(void)
{
	if (memory)
		map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void raise_to(uint32_t *number, uint32_t least)
{
	uint32_t was = __atomic_load_n(number, __ATOMIC_RELAXED);

	while (was < least && !__atomic_compare_exchange_n(number, &was, least, true,
	                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static uint64_t *share_at(uint32_t share)
{
	raise_to(&highest, share + 1);
	return (uint64_t *)memory + (size_t)share * AGENT_SLOTS_MOST;
}

uint64_t *counts_take(bool *shares)
{
	uint64_t was = __atomic_load_n(&taken, __ATOMIC_RELAXED), bit;
	uint32_t share;

	*shares = false;
	do {
		share = ~was ? (uint32_t)__builtin_ctzll(~was) : OWNED;
		if (share >= OWNED) {
			*shares = true;
			return share_at(OWNED);
		}
		bit = 1ull << share;
	} while (!__atomic_compare_exchange_n(&taken, &was, was | bit, true, __ATOMIC_ACQUIRE,
	                                      __ATOMIC_RELAXED));
	return share_at(share);
}

void counts_give(uint64_t *counts)
{
	size_t share = counts ? (size_t)(counts - (uint64_t *)memory) / AGENT_SLOTS_MOST : OWNED;

	if (share < OWNED)
		__atomic_fetch_and(&taken, ~(1ull << share), __ATOMIC_RELEASE);
}

/* In memory that is shared with the parent, and so with cuscope. */
void counts_of_child(uint64_t slot)
{
	uint64_t *share = (uint64_t *)memory + (size_t)AGENT_COUNT_CHILDREN * AGENT_SLOTS_MOST;

	if (memory && slot < AGENT_SLOTS_MOST)
		__atomic_fetch_add(&share[slot], 1, __ATOMIC_RELAXED);
}

void counts_tell_shares(struct agent_shared *shared)
{
	raise_to(&shared->probe_shares, __atomic_load_n(&highest, __ATOMIC_RELAXED));
}

void counts_forget(void)
{
	taken = 0;
	highest = 0;
}
