/* SPDX-License-Identifier: MIT */
/*
 * ARRAY_SIZE is how many elements an array has. Of a pointer it would be a lie, which gcc's
 * -Wsizeof-pointer-div tells.
 *
 * ARRAY_BEFORE searches an array that is sorted: how many of the elements 0 to n - 1 come before
 * the first of which `is_before`, an expression with the element's number `i`, is false:
 *
 *   ARRAY_BEFORE(list->n, i, list->all[i].begin_ns < time_ns)
 */
#pragma once

#include <stddef.h>

#ifndef ARRAY_SIZE /* libiberty.h has the same */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

#define ARRAY_BEFORE(n, i, is_before)                                                              \
	({                                                                                         \
		size_t array_low = 0, array_high = (n);                                            \
                                                                                                   \
		while (array_low < array_high) {                                                   \
			size_t i = array_low + (array_high - array_low) / 2;                       \
                                                                                                   \
			if (is_before)                                                             \
				array_low = i + 1;                                                 \
			else                                                                       \
				array_high = i;                                                    \
		}                                                                                  \
		array_low;                                                                         \
	})
