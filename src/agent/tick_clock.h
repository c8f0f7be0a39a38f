/* SPDX-License-Identifier: MIT */
/*
 * The processor's ticks in CLOCK_MONOTONIC. Agents record ticks, and only cuscope says what they
 * mean: it reads both clocks now and then, and between two readings time is the line through both.
 * So what is in order by ticks is so by ns, however the kernel corrects its clock meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tick_clock;

/* Whether ticks are the same on all processors and never stop: then the kernel counts by them. */
bool tick_clock_is_usable(void);

uint64_t tick_clock_ticks(void); /* now */

struct tick_clock *tick_clock_new(void); /* with a first reading */
void tick_clock_free(struct tick_clock *clock);

/* Reads both; to be done before records are read, at least once a second. */
void tick_clock_look(struct tick_clock *clock);

/* A reading: what look adds. One that does not lie behind the last one is left out. */
void tick_clock_add(struct tick_clock *clock, uint64_t ticks, uint64_t ns, uint64_t error_ns);

/* Between two readings: those that a time was found between last. What it begins with. */
struct tick_clock_line {
	uint64_t from, ticks; /* and how many these are; 0: none was found */
	uint64_t ns, until_ns;
	uint64_t scale; /* ns of a tick, << TICK_CLOCK_SCALE */
};

#define TICK_CLOCK_SCALE 56

bool tick_clock_find(struct tick_clock *clock, uint64_t ticks, uint64_t *ns);

/* False: before the first reading, or behind the last one. As a rule it lies where the one before
 * did, and this is asked twice for each call that is recorded inside. */
static inline bool tick_clock_ns(struct tick_clock *clock, uint64_t ticks, uint64_t *ns)
{
	const struct tick_clock_line *line = (const struct tick_clock_line *)clock;
	uint64_t at = ticks - line->from;

	*ns = line->ns + (uint64_t)((unsigned __int128)at * line->scale >> TICK_CLOCK_SCALE);
	return (at < line->ticks && *ns <= line->until_ns) || tick_clock_find(clock, ticks, ns);
}

/* For tests: how far a time may be off: the widest of the readings that are kept. */
uint64_t tick_clock_error_ns(const struct tick_clock *clock);
