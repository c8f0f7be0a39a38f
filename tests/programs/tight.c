// SPDX-License-Identifier: MIT
/*
 * tight [CALLS [THREADS]]: calls one function in a tight loop and prints the nanoseconds that one
 * call took. `tight 0`: goes on for ever (a minute at most), with a line for every 10,000 calls.
 */
#include <pthread.h>

#include "sample.h"

#define BATCH 10000

static long calls;

static double ns_per_call(long n)
{
	double begin = sample_seconds();

	for (long i = 0; i < n; i++)
		DRIVER(cuCtxSetCurrent, NULL);
	return (sample_seconds() - begin) * 1e9 / (double)n;
}

static void *loop(void *unused)
{
	printf("%.0f\n", ns_per_call(calls));
	return NULL;
}

int main(int argc, char **argv)
{
	long n = sample_number(argc, argv, 2, 1);
	double end = sample_seconds() + 60;
	pthread_t threads[16];

	calls = sample_number(argc, argv, 1, 1000000);
	sample_context();
	if (n < 1 || n > 16)
		sample_fail("1 to 16 threads");
	while (calls == 0 && sample_seconds() < end) {
		printf("%.0f\n", ns_per_call(BATCH));
		if (fflush(stdout))
			return 0;
	}
	if (n == 1) {
		loop(NULL);
		return sample_end();
	}
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, loop, NULL);
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return sample_end();
}
