// SPDX-License-Identifier: MIT
/*
 * Threads that call a getter at a rate, on the simulated driver: threads N CALLS_A_SECOND SECONDS
 * WAIT. The rate is of all of them. Waits first, so that its functions are diverted by then. Prints
 * when it began and ended (CLOCK_MONOTONIC), and the calls, as JSON.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCH   32
#define THREADS 64

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxGetDevice(int *device);

struct thread {
	pthread_t thread;
	uint64_t calls;
};

static double rate, seconds;
static void *context;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One that is late makes up for it. */
static void *keep_rate(void *data)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	struct thread *thread = data;
	uint64_t begin = now_ns(), now = begin;
	int device;

	cuCtxSetCurrent(context);
	while ((double)(now - begin) < seconds * 1e9) {
		uint64_t due = (uint64_t)((double)(now - begin) * rate / 1e9);

		while (thread->calls < due) {
			for (int i = 0; i < BATCH; i++)
				cuCtxGetDevice(&device);
			thread->calls += BATCH;
		}
		nanosleep(&pause, NULL);
		now = now_ns();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct thread threads[THREADS];
	int n = argc == 5 ? atoi(argv[1]) : 0;
	uint64_t calls = 0, begin;

	if (n < 1 || n > THREADS || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0))
		return 2;
	rate = atof(argv[2]) / n;
	seconds = atof(argv[3]);
	usleep((useconds_t)(atof(argv[4]) * 1e6));
	begin = now_ns();
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i].thread, NULL, keep_rate, &threads[i]);
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i].thread, NULL);
		calls += threads[i].calls;
	}
	printf("{\"begin_ns\": %llu, \"end_ns\": %llu, \"calls\": %llu}\n",
	       (unsigned long long)begin, (unsigned long long)now_ns(), (unsigned long long)calls);
	fflush(stdout);
	sleep(1); /* what waits is read meanwhile */
	return 0;
}
