// SPDX-License-Identifier: MIT
#include "agent/lib/clock.h"

#include <stdbool.h>
#include <time.h>

#define SANDWICHES 100

static int64_t ahead;  /* CUPTI's clock minus ours */
static int64_t offset; /* that of the machine minus the process's */
static bool compared;  /* ahead is not the first guess */

static uint64_t clock_read(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec +
	       (uint64_t)__atomic_load_n(&offset, __ATOMIC_RELAXED);
}

uint64_t clock_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

uint64_t clock_coarse(void)
{
	return clock_read(CLOCK_MONOTONIC_COARSE);
}

int64_t clock_set_offset(int64_t offset_ns)
{
	return offset_ns - __atomic_exchange_n(&offset, offset_ns, __ATOMIC_RELAXED);
}

void clock_pause_ms(unsigned ms)
{
	const struct timespec time = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&time, NULL);
}

void clock_shared(void)
{
	__atomic_store_n(&ahead, 0, __ATOMIC_RELAXED);
	compared = false;
}

uint64_t clock_compare(uint32_t (*read)(uint64_t *ns))
{
	uint64_t narrowest = UINT64_MAX, drift = 0;
	int64_t found = 0;

	for (int i = 0; i < SANDWICHES; i++) {
		uint64_t theirs, before = clock_now(), after;

		if (read(&theirs))
			continue;
		after = clock_now();
		if (after - before < narrowest) {
			narrowest = after - before;
			found = (int64_t)(theirs - (before + narrowest / 2));
		}
	}
	if (narrowest == UINT64_MAX)
		return UINT64_MAX;
	if (compared) {
		int64_t last = __atomic_load_n(&ahead, __ATOMIC_RELAXED);

		drift = (uint64_t)(found > last ? found - last : last - found);
	}
	__atomic_store_n(&ahead, found, __ATOMIC_RELAXED);
	compared = true;
	return narrowest / 2 + 1 + drift;
}

uint64_t clock_converted(uint64_t cupti_ns)
{
	return cupti_ns ? cupti_ns - (uint64_t)__atomic_load_n(&ahead, __ATOMIC_RELAXED) : 0;
}
