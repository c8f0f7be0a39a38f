/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow by one element at a time:
 *
 *   *VEC_ADD(list->all, list->n) = one;
 *
 * What an array has room for follows from how many elements it has, so nobody keeps it: eight, or
 * twice the last power of two. So an array is filled from the beginning, by this function alone.
 */
#pragma once

#include <stddef.h>

#include "base/xalloc.h"

#define VEC_LEAST 8u

/* An array of `n` elements of so many bytes, with room for one more. */
static inline void *vec_room(void *array, size_t n, size_t bytes)
{
	if (n ? n < VEC_LEAST || n & (n - 1) : array != NULL)
		return array;
	return xrealloc(array, (n ? 2 * n : VEC_LEAST) * bytes);
}

/* The next element of an array that has `n`, one more then: a pointer to it. What is put there is
 * not to be read from the array in the same statement. */
#define VEC_ADD(array, n)                                                                          \
	({                                                                                         \
		(array) = vec_room(array, n, sizeof(*(array)));                                    \
		&(array)[(n)++];                                                                   \
	})
