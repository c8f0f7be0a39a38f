/* SPDX-License-Identifier: MIT */
/* Clocks as a number: of nanoseconds, of CLOCK_MONOTONIC where none is named, which nobody sets. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_of_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_of_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}
