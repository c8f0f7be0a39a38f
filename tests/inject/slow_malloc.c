// SPDX-License-Identifier: MIT
/*
 * For LD_PRELOAD: an allocator with one lock, in which whoever asks for SLOW_BYTES sleeps for
 * SLOW_MALLOC_MS. A thread that is made to allocate meanwhile waits for itself.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slow_malloc.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *malloc(size_t bytes)
{
	const char *ms = bytes == SLOW_BYTES ? getenv("SLOW_MALLOC_MS") : NULL;
	long time = ms ? atol(ms) : 0;
	void *memory;

	pthread_mutex_lock(&lock);
	if (time)
		nanosleep(&(struct timespec){ time / 1000, time % 1000 * 1000000 }, NULL);
	memory = __libc_malloc(bytes);
	pthread_mutex_unlock(&lock);
	return memory;
}

/* The lock without the allocator: no stack shows it. */
void hold_allocator(long ms);
void hold_allocator(long ms)
{
	pthread_mutex_lock(&lock);
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
	pthread_mutex_unlock(&lock);
}

void *calloc(size_t n, size_t bytes)
{
	void *memory;

	pthread_mutex_lock(&lock);
	memory = __libc_calloc(n, bytes);
	pthread_mutex_unlock(&lock);
	return memory;
}

void *realloc(void *memory, size_t bytes)
{
	pthread_mutex_lock(&lock);
	memory = __libc_realloc(memory, bytes);
	pthread_mutex_unlock(&lock);
	return memory;
}

void free(void *memory)
{
	pthread_mutex_lock(&lock);
	__libc_free(memory);
	pthread_mutex_unlock(&lock);
}
