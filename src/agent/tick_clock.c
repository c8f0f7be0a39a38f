// SPDX-License-Identifier: MIT
#include "agent/tick_clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"

/* 80 s of a look every 20 ms; of what lies further back every second one goes, again and again. */
#define READINGS   4096
#define SANDWICHES 5
#define SOURCE     "/sys/devices/system/clocksource/clocksource0/current_clocksource"

struct reading {
	uint64_t ticks, ns, error_ns;
};

struct tick_clock {
	struct tick_clock_line line; /* first: see tick_clock_ns */
	size_t n;
	struct reading reading[READINGS];
};

/* ---- the clocks ---------------------------------------------------------------------------- */

uint64_t tick_clock_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#else
	return 0;
#endif
}

bool tick_clock_is_usable(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	char text[16];

	/* "invariant TSC" */
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
		return false;
	return file_line(SOURCE, text, sizeof(text)) && !strcmp(text, "tsc");
#elif defined(__aarch64__)
	return true; /* the architecture says so */
#else
	return false;
#endif
}

/* ---- readings ------------------------------------------------------------------------------ */

struct tick_clock *tick_clock_new(void)
{
	struct tick_clock *clock = xcalloc(1, sizeof(*clock));

	tick_clock_look(clock);
	return clock;
}

void tick_clock_free(struct tick_clock *clock)
{
	free(clock);
}

/* The first stays, since nothing may lie before it. */
static void thin_out(struct tick_clock *clock)
{
	size_t kept = 1;

	for (size_t i = 2; i < clock->n; i++) {
		if (i >= READINGS / 2 || i % 2 == 0)
			clock->reading[kept++] = clock->reading[i];
	}
	clock->n = kept;
	clock->line = (struct tick_clock_line){ 0 };
}

void tick_clock_add(struct tick_clock *clock, uint64_t ticks, uint64_t ns, uint64_t error_ns)
{
	const struct reading *last = clock->n ? &clock->reading[clock->n - 1] : NULL;

	if (last && (ticks <= last->ticks || ns <= last->ns))
		return;
	if (clock->n == READINGS)
		thin_out(clock);
	clock->reading[clock->n++] = (struct reading){ ticks, ns, error_ns };
}

/* The ticks between two readings of the other clock that are as close as can be. */
void tick_clock_look(struct tick_clock *clock)
{
	struct reading best = { .error_ns = UINT64_MAX };

	for (int i = 0; i < SANDWICHES; i++) {
		uint64_t before = clock_now_ns(), ticks = tick_clock_ticks(),
			 width = clock_now_ns() - before;

		if (width / 2 + 1 < best.error_ns)
			best = (struct reading){ ticks, before + width / 2, width / 2 + 1 };
	}
	tick_clock_add(clock, best.ticks, best.ns, best.error_ns);
}

uint64_t tick_clock_error_ns(const struct tick_clock *clock)
{
	uint64_t most = 0;

	for (size_t i = 0; i < clock->n; i++)
		most = clock->reading[i].error_ns > most ? clock->reading[i].error_ns : most;
	return most;
}

/* ---- times --------------------------------------------------------------------------------- */

static bool lies_behind(const struct tick_clock *clock, size_t i, uint64_t ticks)
{
	return clock->reading[i].ticks <= ticks && ticks <= clock->reading[i + 1].ticks;
}

/* The reading before it; there is one after it, too. */
static size_t find(const struct tick_clock *clock, uint64_t ticks)
{
	size_t low = 0, high = clock->n - 1;

	if (lies_behind(clock, clock->n - 2, ticks))
		return clock->n - 2;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (clock->reading[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Rounded up, so that the end of the line is met. UINT64_MAX: a tick is 256 ns or longer. */
static uint64_t scale_of(const struct reading *a, const struct reading *b)
{
	uint64_t ticks = b->ticks - a->ticks;
	unsigned __int128 scale =
		(((unsigned __int128)(b->ns - a->ns) << TICK_CLOCK_SCALE) + ticks - 1) / ticks;

	return scale < UINT64_MAX ? (uint64_t)scale : UINT64_MAX;
}

/* A division of each time is what would take longest here. */
bool tick_clock_find(struct tick_clock *clock, uint64_t ticks, uint64_t *ns)
{
	const struct reading *a, *b;
	uint64_t scale;

	if (clock->n < 2 || ticks < clock->reading[0].ticks ||
	    ticks > clock->reading[clock->n - 1].ticks)
		return false;
	a = &clock->reading[find(clock, ticks)];
	b = a + 1;
	scale = scale_of(a, b);
	if (scale < UINT64_MAX)
		clock->line = (struct tick_clock_line){ a->ticks, b->ticks - a->ticks, a->ns, b->ns,
			                                scale };
	*ns = a->ns + (uint64_t)((unsigned __int128)(ticks - a->ticks) * scale >> TICK_CLOCK_SCALE);
	if (scale == UINT64_MAX || *ns > b->ns)
		*ns = a->ns + (uint64_t)((unsigned __int128)(ticks - a->ticks) * (b->ns - a->ns) /
		                         (b->ticks - a->ticks));
	return true;
}
