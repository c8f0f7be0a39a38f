// SPDX-License-Identifier: MIT
/*
 * gpuloop [SECONDS [BATCH [THREADS]]]: launches kernels until its time is over or its input ends,
 * BATCH of them and then a wait, on each of THREADS threads. Prints "ready" after the first batch,
 * and a line for each half second: launches, and nanoseconds of processors that one took in the
 * launching threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "sample.h"

#define STEPS_MAX   4096
#define THREADS_MAX 256

static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
static struct kernels kernels;
static CUcontext context;
static long batch;
static atomic_bool over;
static atomic_ulong launches;
static atomic_ullong launching_ns;

/* Of this thread alone: what others do on the machine is left out. */
static uint64_t busy_ns(void)
{
	struct timespec busy;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy);
	return (uint64_t)busy.tv_sec * 1000000000 + (uint64_t)busy.tv_nsec;
}

static void *work(void *data)
{
	CUstream stream;

	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	do {
		uint64_t begin = busy_ns();
		for (long i = 0; i < batch; i++)
			sample_launch(kernels.tick, TICK_NAME, shape, stream);
		atomic_fetch_add(&launching_ns, busy_ns() - begin);
		atomic_fetch_add(&launches, (unsigned long)batch);
		count_ran_kernels(batch, TICK_NAME, shape);
		DRIVER(cuStreamSynchronize, stream);
	} while (!atomic_load(&over));
	return data;
}

static void report(unsigned long *n, unsigned long long *ns)
{
	unsigned long n_now = atomic_load(&launches);
	unsigned long long ns_now = atomic_load(&launching_ns);

	if (n_now > *n)
		printf("%lu %llu\n", n_now - *n, (ns_now - *ns) / (n_now - *n));
	fflush(stdout);
	*n = n_now;
	*ns = ns_now;
}

int main(int argc, char **argv)
{
	double end = sample_seconds() + (double)sample_number(argc, argv, 1, 60);
	long threads = sample_number(argc, argv, 3, 1);
	unsigned long n = 0;
	unsigned long long ns = 0;
	pthread_t thread[THREADS_MAX];

	batch = sample_number(argc, argv, 2, 100);
	if (threads < 1 || threads > THREADS_MAX)
		sample_fail("1 to %d threads", THREADS_MAX);
	context = sample_context();
	sample_kernels(&kernels);
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	while (atomic_load(&launches) == 0)
		sample_input_ended(1);
	sample_ready();
	do
		report(&n, &ns);
	while (sample_seconds() < end && !sample_input_ended(500));
	atomic_store(&over, true);
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return sample_end();
}
