/* SPDX-License-Identifier: MIT */
/*
 * The processor's own clock. cuscope asks for it where the kernel counts by it too: then it is the
 * same on all processors and never stands still. How long a tick is the agent need not know.
 */
#pragma once

#include <stdint.h>

#include "agent/lib/clock.h"
#include "agent/wire.h"

/* Not ordered with the instructions around it, which would cost as much again. */
static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#else
#error "no clock for this machine"
#endif
}

/* By enum agent_clock. */
static inline uint64_t ticks_or_ns(uint32_t clock)
{
	return clock == AGENT_CLOCK_TICKS ? ticks_now() : clock_now();
}
