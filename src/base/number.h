/* SPDX-License-Identifier: MIT */
/*
 * Real numbers as whole ones, and sums. A conversion that does not fit is undefined in C, and a sum
 * that does not begins anew. What a damaged or a hostile file says can be any number, such as a
 * rate of 2^64 bytes in one nanosecond.
 */
#pragma once

#include <stdint.h>

/* Without its fraction; what is below 0 or no number is 0, what is too large the largest. */
static inline uint64_t number_u64(double value)
{
	return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
}

static inline uint64_t number_rounded(double value)
{
	return number_u64(value + 0.5);
}

/* The sum stays at the largest number. */
static inline void number_add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}
