// SPDX-License-Identifier: MIT
/*
 * Calls a function of libcalled.so when it is asked to, and says what a call took. Standard input:
 *
 *   hooked     waits until the function's code is not what it was; unhooked: until it is again
 *   run CALLS  ns of CPU time a call
 *
 * Each is answered with a line: the ns, or 1; 0 where nothing changed within 20 s.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "called.h"

#define CODE_BYTES 16

static const struct request request = { 7, 3 };
static unsigned char before[CODE_BYTES];

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run(long calls)
{
	volatile uint64_t sum = 0;
	double begin = now_ns();

	for (long i = 0; i < calls; i++)
		sum += called((uint64_t)i, &request, "a name");
	return (now_ns() - begin) / (double)calls;
}

static double wait_until(bool hooked)
{
	for (int i = 0; i < 4000; i++) {
		/* a handler of a probe may write at any time */
		if ((memcmp(before, (const void *)called, CODE_BYTES) != 0) == hooked)
			return 1;
		usleep(5000);
	}
	return 0;
}

int main(void)
{
	char line[64];

	memcpy(before, (const void *)called, CODE_BYTES);
	run(1000);
	while (fgets(line, sizeof(line), stdin)) {
		double answer = !strncmp(line, "run ", 4)     ? run(atol(line + 4))
		                : !strncmp(line, "hooked", 6) ? wait_until(true)
		                                              : wait_until(false);

		printf("%.1f\n", answer);
		fflush(stdout);
	}
	return 0;
}
