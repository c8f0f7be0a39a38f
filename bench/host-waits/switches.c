// SPDX-License-Identifier: MIT
/*
 * switches N: two processes on one CPU hand a byte to and fro through pipes, N times; prints the
 * nanoseconds of a round trip, in which each of them is blocked once.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int pass(int from, int to)
{
	char byte = 0;

	return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 100000;
	int there[2], back[2];
	uint64_t begin_ns;
	cpu_set_t last;
	pid_t child;

	CPU_ZERO(&last);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	if (sched_setaffinity(0, sizeof(last), &last) || pipe(there) || pipe(back))
		return 1;
	child = fork();
	if (!child) {
		close(there[1]);
		while (pass(there[0], back[1]))
			;
		return 0;
	}
	close(there[0]);
	begin_ns = now_ns();
	if (write(there[1], "", 1) != 1)
		return 1;
	for (long i = 1; i < n; i++) {
		if (!pass(back[0], there[1]))
			return 1;
	}
	printf("%llu\n", (unsigned long long)((now_ns() - begin_ns) / (uint64_t)n));
	close(there[1]);
	return waitpid(child, NULL, 0) != child;
}
