/* SPDX-License-Identifier: MIT */
/*
 * Binary heaps in arrays: the first element is one that none comes before. HEAP_OF(ours, struct
 * one, is_before) defines
 *
 *   void ours_add(struct one *heap, size_t n, struct one added): there is room for n + 1;
 *   struct one ours_take(struct one *heap, size_t n): the first of n > 0, which are one less then.
 *
 * A macro, since what is compared lies on the way of every call: the comparison is to be inlined.
 */
#ifndef CUSCOPE_BASE_HEAP_H
#define CUSCOPE_BASE_HEAP_H

#include <stddef.h>

#define HEAP_OF(name, type, is_before)                                                             \
	static void name##_add(type *heap, size_t n, type added)                                   \
	{                                                                                          \
		size_t at = n;                                                                     \
                                                                                                   \
		for (; at && is_before(&added, &heap[(at - 1) / 2]); at = (at - 1) / 2)            \
			heap[at] = heap[(at - 1) / 2];                                             \
		heap[at] = added;                                                                  \
	}                                                                                          \
                                                                                                   \
	static type name##_take(type *heap, size_t n)                                              \
	{                                                                                          \
		type first = heap[0], last = heap[--n];                                            \
		size_t at = 0, child;                                                              \
                                                                                                   \
		while ((child = 2 * at + 1) < n) {                                                 \
			child += child + 1 < n && is_before(&heap[child + 1], &heap[child]);       \
			if (!is_before(&heap[child], &last))                                       \
				break;                                                             \
			heap[at] = heap[child];                                                    \
			at = child;                                                                \
		}                                                                                  \
		heap[at] = last;                                                                   \
		return first;                                                                      \
	}

#endif
