// SPDX-License-Identifier: MIT
#include "agent/lib/buffers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

/* A kernel's record has 216 bytes at most: 1200 to a buffer, 38000 in all. */
#define BUFFERS      32
#define BUFFER_BYTES ((size_t)256 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *memory; /* NULL: not open */
static uint8_t free_ones[BUFFERS];
static bool is_free[BUFFERS];
static size_t n_free;

int buffers_open(void)
{
	void *mapped;

	if (memory)
		return 0;
	mapped = mmap(NULL, BUFFERS * BUFFER_BYTES, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	madvise(mapped, BUFFERS * BUFFER_BYTES, MADV_DONTFORK);
	pthread_mutex_lock(&lock);
	memory = mapped;
	for (n_free = 0; n_free < BUFFERS; n_free++) {
		free_ones[n_free] = (uint8_t)(BUFFERS - 1 - n_free);
		is_free[n_free] = true;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

void buffers_close(void)
{
	pthread_mutex_lock(&lock);
	if (memory)
		munmap(memory, BUFFERS * BUFFER_BYTES);
	memory = NULL;
	n_free = 0;
	pthread_mutex_unlock(&lock);
}

uint8_t *buffers_take(size_t *bytes)
{
	uint8_t *buffer = NULL;

	pthread_mutex_lock(&lock);
	if (n_free) {
		size_t which = free_ones[--n_free];

		is_free[which] = false;
		buffer = memory + which * BUFFER_BYTES;
	}
	pthread_mutex_unlock(&lock);
	*bytes = buffer ? BUFFER_BYTES : 0;
	return buffer;
}

void buffers_return(uint8_t *buffer)
{
	pthread_mutex_lock(&lock);
	if (memory && buffer >= memory) {
		size_t which = (size_t)(buffer - memory) / BUFFER_BYTES;

		if (which < BUFFERS && !is_free[which]) {
			is_free[which] = true;
			free_ones[n_free++] = (uint8_t)which;
		}
	}
	pthread_mutex_unlock(&lock);
}

void buffers_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memory = NULL;
	n_free = 0;
}
