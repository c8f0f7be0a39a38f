// SPDX-License-Identifier: MIT
#include "agent/tick_clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "base/xalloc.h"

/* 80 s of a look every 20 ms; of what lies further back every second one goes, again and again. */
#define READINGS   4096
#define SANDWICHES 5
#define SOURCE     "/sys/devices/system/clocksource/clocksource0/current_clocksource"

struct reading {
	uint64_t ticks, ns, error_ns;
};

struct tick_clock {
	size_t n;
	size_t last; /* looked up: the next is as a rule in the same place */
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

static uint64_t ns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool tick_clock_is_usable(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	char text[16] = "";
	int fd;

	/* "invariant TSC" */
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
		return false;
	fd = open(SOURCE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return !strcmp(text, "tsc\n");
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
	clock->last = 0;
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
		uint64_t before = ns_now(), ticks = tick_clock_ticks(), width = ns_now() - before;

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
	if (clock->last + 1 < clock->n && lies_behind(clock, clock->last, ticks))
		return clock->last;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (clock->reading[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool tick_clock_ns(struct tick_clock *clock, uint64_t ticks, uint64_t *ns)
{
	const struct reading *a, *b;

	if (clock->n < 2 || ticks < clock->reading[0].ticks ||
	    ticks > clock->reading[clock->n - 1].ticks)
		return false;
	clock->last = find(clock, ticks);
	a = &clock->reading[clock->last];
	b = a + 1;
	*ns = a->ns + (uint64_t)((unsigned __int128)(ticks - a->ticks) * (b->ns - a->ns) /
	                         (b->ticks - a->ticks));
	return true;
}
