// SPDX-License-Identifier: MIT
/*
 * waitload [SECONDS] [ROUNDS]: prints "ready PID", waits for SIGUSR1 or so many seconds, and only
 * then loads the driver and calls it: for a tracer that attaches before. After the first call it
 * waits half a second, so that hooks that come late find the rest: numbers.after counts its calls.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"

int main(int argc, char **argv)
{
	struct timespec wait = { .tv_sec = argc > 1 ? atoi(argv[1]) : 5 };
	int rounds = argc > 2 ? atoi(argv[2]) : 10;
	sigset_t wanted;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigtimedwait(&wanted, NULL, &wait);
	MUST(cuInit, 0);
	nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
	struct gpu gpu;
	gpu_open(&gpu);
	gpu_work(&gpu, rounds);
	gpu_close(&gpu);
	/* gpu_open makes 7 calls, gpu_work 5 a round and 1, gpu_close 2. */
	count(NUMBERS, "after", 7 + 5 * (uint64_t)rounds + 1 + 2);
	printf("done\n");
	sample_finish();
	return 0;
}
