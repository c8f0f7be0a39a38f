/* SPDX-License-Identifier: MIT */
/*
 * An order of rows, as qsort() wants it, said by what they are compared by. What comes first
 * counts first:
 *
 *   ORDER_BY(longest_first, struct call_row, DOWN(ns), BY_TEXT(function->name), UP(tid));
 *
 *   SORT(rows, n, longest_first);
 *
 * UP and DOWN take a member, numbers or pointers; UP_OF and DOWN_OF a function of the row; OR_ELSE
 * another order. ORDER_POINTERS_BY is of an array of pointers to rows.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/each.h"

#define ORDER_OF(x, y)     (((x) > (y)) - ((x) < (y)))
#define UP(member)         ORDER_OF(a->member, b->member)
#define DOWN(member)       ORDER_OF(b->member, a->member)
#define BY_TEXT(member)    strcmp(a->member, b->member)
#define BY_BYTES(member)   memcmp(&a->member, &b->member, sizeof(a->member))
#define UP_OF(function)    ORDER_OF(function(a), function(b))
#define DOWN_OF(function)  ORDER_OF(function(b), function(a))
#define OR_ELSE(function)  function(a, b)
#define ORDER_OR(_, order) (order) ?:

#define ORDER_MAKE(function, row, left, right, ...)                                                \
	static int function(const void *x, const void *y)                                          \
	{                                                                                          \
		const row *a = left, *b = right;                                                   \
                                                                                                   \
		return EACH(ORDER_OR, , __VA_ARGS__) 0;                                            \
	}                                                                                          \
	static int function(const void *, const void *)

#define ORDER_BY(function, row, ...) ORDER_MAKE(function, row, x, y, __VA_ARGS__)
#define ORDER_POINTERS_BY(function, row, ...)                                                      \
	ORDER_MAKE(function, row, *(const row *const *)x, *(const row *const *)y, __VA_ARGS__)

static inline void sort_rows(void *rows, size_t n, size_t bytes,
                             int (*order)(const void *, const void *))
{
	if (n) /* else there may be no array */
		qsort(rows, n, bytes, order);
}

#define SORT(rows, n, order) sort_rows(rows, n, sizeof(*(rows)), order)
