/* SPDX-License-Identifier: MIT */
/*
 * AT_END(buf_free) struct buf text = { 0 };
 *
 * What a variable of a function holds is given back where its block ends, by a return as well: the
 * function is called with the variable's address. Of several variables the last one goes first. Not
 * for what outlives the block.
 */
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_END(function) __attribute__((cleanup(function)))

/* Of a pointer to what malloc() gave, which may be NULL. */
static inline void at_end_free(void *pointer)
{
	void *memory;

	memcpy(&memory, pointer, sizeof(memory));
	free(memory);
}

/* Below 0: there is none. */
static inline void at_end_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Of one that was read; NULL: there is none. */
static inline void at_end_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline pthread_mutex_t *at_end_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void at_end_unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* LOCKED(&queue->lock); holds it from there to the block's end. */
#define LOCKED(mutex)                                                                              \
	AT_END(at_end_unlock)                                                                      \
	__attribute__((unused)) pthread_mutex_t *locked_here = at_end_lock(mutex)
