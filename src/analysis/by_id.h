/* SPDX-License-Identifier: MIT */
/* Arrays indexed by the dense ids of processes, functions and kernels: no hashing for an event. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/xalloc.h"

/*
 * Makes room for element `id` in an array of *n elements of `bytes` each, and returns the array,
 * which may have moved. What is new is zero.
 */
static inline void *by_id_room(void *array, size_t *n, size_t bytes, uint32_t id)
{
	size_t want = 2 * (size_t)id + 16;

	if (__builtin_expect(id < *n, 1))
		return array;
	array = xrealloc(array, want * bytes);
	memset((char *)array + *n * bytes, 0, (want - *n) * bytes);
	*n = want;
	return array;
}

/* Element `id` of an array that has `n` of them, with room made for it: a pointer to it. */
#define BY_ID(array, n, id)                                                                        \
	({                                                                                         \
		uint32_t by_id_at = (id);                                                          \
                                                                                                   \
		(array) = by_id_room(array, &(n), sizeof(*(array)), by_id_at);                     \
		&(array)[by_id_at];                                                                \
	})
