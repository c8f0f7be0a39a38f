// SPDX-License-Identifier: MIT
#include "agent/lib/buffers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

/* A kernel's record has 216 bytes at most: 1200 to a large buffer, 150 to a small one. */
#define LARGE       32
#define LARGE_BYTES ((size_t)256 << 10)
#define SMALL       256
#define SMALL_BYTES ((size_t)32 << 10)
#define BUFFERS     (LARGE + SMALL)
#define LARGE_ALL   (LARGE * LARGE_BYTES)
#define ALL_BYTES   (LARGE_ALL + SMALL * SMALL_BYTES)

/* Those of one size, by number; the large ones have the first. */
struct pool {
	uint16_t free_ones[SMALL];
	size_t n_free;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *memory; /* NULL: not open */
static struct pool large, small;
static bool is_free[BUFFERS];

static void fill(struct pool *pool, size_t first, size_t n)
{
	for (pool->n_free = 0; pool->n_free < n; pool->n_free++) {
		pool->free_ones[pool->n_free] = (uint16_t)(first + n - 1 - pool->n_free);
		is_free[pool->free_ones[pool->n_free]] = true;
	}
}

int buffers_open(void)
{
	void *mapped;

	if (memory)
		return 0;
	mapped = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	madvise(mapped, ALL_BYTES, MADV_DONTFORK);
	pthread_mutex_lock(&lock);
	memory = mapped;
	fill(&large, 0, LARGE);
	fill(&small, LARGE, SMALL);
	pthread_mutex_unlock(&lock);
	return 0;
}

void buffers_close(void)
{
	pthread_mutex_lock(&lock);
	if (memory)
		munmap(memory, ALL_BYTES);
	memory = NULL;
	large.n_free = small.n_free = 0;
	pthread_mutex_unlock(&lock);
}

uint8_t *buffers_take(size_t *bytes)
{
	struct pool *pool = &large;
	uint8_t *buffer = NULL;

	*bytes = 0;
	pthread_mutex_lock(&lock);
	if (!pool->n_free)
		pool = &small;
	if (pool->n_free) {
		size_t which = pool->free_ones[--pool->n_free];

		is_free[which] = false;
		*bytes = which < LARGE ? LARGE_BYTES : SMALL_BYTES;
		buffer = memory + (which < LARGE ? which * LARGE_BYTES
		                                 : LARGE_ALL + (which - LARGE) * SMALL_BYTES);
	}
	pthread_mutex_unlock(&lock);
	return buffer;
}

void buffers_return(uint8_t *buffer)
{
	pthread_mutex_lock(&lock);
	if (memory && buffer >= memory) {
		size_t at = (size_t)(buffer - memory);
		size_t which =
			at < LARGE_ALL ? at / LARGE_BYTES : LARGE + (at - LARGE_ALL) / SMALL_BYTES;
		struct pool *pool = which < LARGE ? &large : &small;

		if (which < BUFFERS && !is_free[which]) {
			is_free[which] = true;
			pool->free_ones[pool->n_free++] = (uint16_t)which;
		}
	}
	pthread_mutex_unlock(&lock);
}

void buffers_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memory = NULL;
	large.n_free = small.n_free = 0;
}
