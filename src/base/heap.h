/* SPDX-License-Identifier: MIT */
/*
 * Binary heaps in arrays: the first element is one that none comes before. HEAP_OF(ours, struct
 * one, is_before) defines
 *
 *   void ours_add(struct one *heap, size_t n, struct one added): there is room for n + 1;
 *   struct one ours_take(struct one *heap, size_t n): the first of n > 0, which are one less then.
 *
 * HEAP_PLACED defines, for elements that move by themselves,
 *
 *   void ours_up(struct one *heap, size_t at, struct one one): puts it there, or before it;
 *   void ours_down(struct one *heap, size_t n, size_t at, struct one one): or behind it;
 *
 * and calls placed(struct one *one, size_t at) for each that has got another place.
 *
 * A macro, since what is compared lies on the way of every call: the comparison is to be inlined.
 */
#pragma once

#include <stddef.h>

#define HEAP_PLACED(name, type, is_before, placed)                                                 \
	static void name##_up(type *heap, size_t at, type one)                                     \
	{                                                                                          \
		for (; at && is_before(&one, &heap[(at - 1) / 2]); at = (at - 1) / 2) {            \
			heap[at] = heap[(at - 1) / 2];                                             \
			placed(&heap[at], at);                                                     \
		}                                                                                  \
		heap[at] = one;                                                                    \
		placed(&heap[at], at);                                                             \
	}                                                                                          \
                                                                                                   \
	static void name##_down(type *heap, size_t n, size_t at, type one)                         \
	{                                                                                          \
		size_t child;                                                                      \
                                                                                                   \
		while ((child = 2 * at + 1) < n) {                                                 \
			child += child + 1 < n && is_before(&heap[child + 1], &heap[child]);       \
			if (!is_before(&heap[child], &one))                                        \
				break;                                                             \
			heap[at] = heap[child];                                                    \
			placed(&heap[at], at);                                                     \
			at = child;                                                                \
		}                                                                                  \
		heap[at] = one;                                                                    \
		placed(&heap[at], at);                                                             \
	}

#define HEAP_NOT_TOLD(one, at)

#define HEAP_OF(name, type, is_before)                                                             \
	HEAP_PLACED(name, type, is_before, HEAP_NOT_TOLD)                                          \
                                                                                                   \
	static void name##_add(type *heap, size_t n, type added)                                   \
	{                                                                                          \
		name##_up(heap, n, added);                                                         \
	}                                                                                          \
                                                                                                   \
	static type name##_take(type *heap, size_t n)                                              \
	{                                                                                          \
		type first = heap[0];                                                              \
                                                                                                   \
		name##_down(heap, n - 1, 0, heap[n - 1]);                                          \
		return first;                                                                      \
	}
