// SPDX-License-Identifier: MIT
#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* About what a current data-centre GPU does. */
#define KERNEL_BASE_NS    4000
#define THREADS_PER_NS    100
#define COPY_BASE_NS      1500
#define PCIE_BYTES_PER_NS 24
#define DRAM_BYTES_PER_NS 1500

#define SLEEP_LEAST_NS 100000 /* with SIMCUDA_AT_WAITS */

static double scale = 1.0;
static double kernel_us = -1.0;
static bool at_waits;

static double setting(const char *name, double otherwise)
{
	const char *text = getenv(name);
	if (!text || !*text)
		return otherwise;
	double value = strtod(text, NULL);
	return value >= 0 ? value : otherwise;
}

void clock_read_settings(void)
{
	scale = setting("SIMCUDA_TIME_SCALE", 1.0);
	kernel_us = setting("SIMCUDA_KERNEL_US", -1.0);
	at_waits = setting("SIMCUDA_AT_WAITS", 0) > 0;
}

bool clock_is_instant(void)
{
	return scale == 0;
}

bool clock_at_waits(void)
{
	return at_waits;
}

uint64_t clock_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_sleep_until(uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000u),
		                  .tv_nsec = (long)(ns % 1000000000u) };
	while ((!at_waits || ns > clock_now_ns() + SLEEP_LEAST_NS) &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	while (clock_now_ns() < ns)
		;
}

uint64_t clock_kernel_ns(uint64_t threads)
{
	if (kernel_us >= 0)
		return (uint64_t)(scale * kernel_us * 1000);
	return (uint64_t)(scale * (KERNEL_BASE_NS + (double)threads / THREADS_PER_NS));
}

uint64_t clock_copy_ns(size_t bytes, bool over_pcie)
{
	double rate = over_pcie ? PCIE_BYTES_PER_NS : DRAM_BYTES_PER_NS;
	return (uint64_t)(scale * (COPY_BASE_NS + (double)bytes / rate));
}
