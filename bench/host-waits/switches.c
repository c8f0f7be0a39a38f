// SPDX-License-Identifier: MIT
/*
 * switches N: two processes on one CPU hand a byte to and fro through pipes, N times; prints the
 * nanoseconds of a round trip, in which each of them is blocked once.
 *
 * switches --chunks NS: the same, and each computes so long in between; see chunks.h.
 */
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chunks.h"

static int there[2], back[2];
static uint64_t turns;

static int pass(int from, int to)
{
	char byte = 0;

	if (read(from, &byte, 1) != 1)
		return 0;
	chunks_compute(turns);
	return write(to, &byte, 1) == 1;
}

static int trip(void *data)
{
	(void)data;
	return !pass(back[0], there[1]);
}

int main(int argc, char **argv)
{
	int chunks = argc > 2 && !strcmp(argv[1], "--chunks");
	long n = !chunks && argc > 1 ? atol(argv[1]) : 100000;
	uint64_t begin_ns;
	cpu_set_t last;
	pid_t child;

	CPU_ZERO(&last);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	if (sched_setaffinity(0, sizeof(last), &last) || pipe(there) || pipe(back))
		return 1;
	turns = chunks ? chunks_turns(strtoull(argv[2], NULL, 10)) : 0;
	child = fork();
	if (!child) {
		signal(SIGTERM, SIG_IGN);
		close(there[1]);
		while (pass(there[0], back[1]))
			;
		return 0;
	}
	close(there[0]);
	close(back[1]);
	begin_ns = now_ns();
	if (write(there[1], "", 1) != 1)
		return 1;
	if (chunks) {
		chunks_run(trip, NULL);
	} else {
		for (long i = 1; i < n; i++)
			if (trip(NULL))
				return 1;
		printf("%llu\n", (unsigned long long)((now_ns() - begin_ns) / (uint64_t)n));
	}
	close(there[1]);
	return waitpid(child, NULL, 0) != child;
}
