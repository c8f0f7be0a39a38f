// SPDX-License-Identifier: MIT
/*
 * loop SECONDS [RATE]: makes RATE rounds of calls a second, prints "ready" after the first one and
 * ends early when its input does.
 */
#include "sample.h"

int main(int argc, char **argv)
{
	double end = sample_seconds() + (double)sample_number(argc, argv, 1, 5);
	long rate = sample_number(argc, argv, 2, 100);
	struct shape shape = { { 2, 1, 1 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;
	CUdeviceptr memory;
	bool ready = false;

	sample_context();
	sample_kernels(&kernels);
	do {
		DRIVER(cuMemAlloc_v2, &memory, 256);
		count_alloc("device", 256);
		sample_launch(kernels.tick, TICK_NAME, shape, NULL);
		DRIVER(cuMemFree_v2, memory);
		count_free("device", 256);
		if (!ready) {
			sample_ready();
			ready = true;
		}
	} while (sample_seconds() < end && !sample_input_ended((int)(1000 / rate)));
	return sample_end();
}
