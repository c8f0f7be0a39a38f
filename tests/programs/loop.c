// SPDX-License-Identifier: MIT
/*
 * loop SECONDS RATE: prints "ready PID" when CUDA is initialised, then makes RATE rounds of calls a
 * second (each: launch, copy in, copy out) until the time is over or SIGTERM or SIGINT comes: a
 * process to attach to.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = 1;
}

static void sleep_until(struct timespec *next, long ns)
{
	next->tv_nsec += ns;
	while (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	double rate = argc > 2 ? atof(argv[2]) : 100;
	struct sigaction action = { .sa_handler = stop };
	struct timespec next;
	struct gpu gpu;
	char text[256];
	if (rate < 1)
		sample_die("usage: loop SECONDS RATE, at least once a second");
	memset(text, 1, sizeof(text));
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	gpu_open(&gpu);
	CUdeviceptr address = gpu_alloc(sizeof(text));
	printf("ready %d\n", getpid());
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (double left = seconds * rate; left >= 1 && !stopped; left--) {
		gpu_launch(&gpu, 4, NULL);
		gpu_to_device(address, text, sizeof(text));
		gpu_from_device(text, address, sizeof(text));
		count(NUMBERS, "rounds", 1);
		sleep_until(&next, (long)(1e9 / rate));
	}
	gpu_free(address);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
