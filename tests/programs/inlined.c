// SPDX-License-Identifier: MIT
/* Spends its time in functions that are inlined, at lines that tests know, until its input ends. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>

static inline __attribute__((always_inline)) uint64_t innermost(uint64_t x)
{
	for (int i = 0; i < 20000; i++) {
		x ^= x >> 33; /* LINE innermost */
		x *= 0xff51afd7ed558ccdull;
	}
	return x;
}

static inline __attribute__((always_inline)) uint64_t between(uint64_t x)
{
	return innermost(x) + 1; /* LINE between */
}

__attribute__((noinline)) static uint64_t outermost(uint64_t x)
{
	return between(x) ^ 1; /* LINE outermost */
}

int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	uint64_t x = 1;

	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0)
		for (int i = 0; i < 1000; i++)
			x = outermost(x); /* LINE main */
	return x == 0;
}
