/* SPDX-License-Identifier: MIT */
/*
 * How one machine's monotonic clock goes by another's: both begin at their machine's start, and
 * run at rates that differ by some millionths.
 */
#pragma once

#include "trace/event.h"

struct clock_map { /* all zero: one clock */
	int64_t offset_ns;
	double drift; /* what is added for each nanosecond from `at_ns` on, of the own clock */
	uint64_t at_ns;
};

/* A time of the own clock by the other, and the other way round. Times that are not known (0) stay
 * so; before the other clock began it is 1. */
uint64_t clock_map_ns(const struct clock_map *map, uint64_t own_ns);
uint64_t clock_map_own_ns(const struct clock_map *map, uint64_t other_ns);

/* An event by the other clock, and what it points at for that. */
struct mapped_event {
	struct event event;
	union {
		struct call call;
		struct activity activity;
		struct range range;
		struct stall stall;
	};
};

/* The event itself where the clock is one; what is made of it lives as long as *into. */
const struct event *clock_map_event(const struct clock_map *map, const struct event *event,
                                    struct mapped_event *into);
