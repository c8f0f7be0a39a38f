// SPDX-License-Identifier: MIT
/*
 * caller ROUNDS CALLS: launches and copies on the simulated driver, as fast as it goes, and prints
 * for each round what one call took: {"launch": NS, "copy": NS}
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../tests/programs/sample.h"

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 5), calls = sample_number(argc, argv, 2, 100000);
	__typeof__(&cuMemcpyHtoD_v2) copy;
	__typeof__(&cuLaunchKernel) launch;
	struct kernels kernels;
	CUdeviceptr memory;
	char host[64];

	sample_context();
	sample_kernels(&kernels);
	launch = (__typeof__(launch))sample_symbol(driver, "cuLaunchKernel");
	copy = (__typeof__(copy))sample_symbol(driver, "cuMemcpyHtoD_v2");
	DRIVER(cuMemAlloc_v2, &memory, sizeof(host));
	for (long round = 0; round < rounds; round++) {
		double begin = now_ns(), middle;

		for (long i = 0; i < calls; i++)
			launch(kernels.tick, 8, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
		middle = now_ns();
		for (long i = 0; i < calls; i++)
			copy(memory, host, sizeof(host));
		printf("{\"launch\": %.1f, \"copy\": %.1f}\n", (middle - begin) / (double)calls,
		       (now_ns() - middle) / (double)calls);
		fflush(stdout);
	}
	return 0;
}
