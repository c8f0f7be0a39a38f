// SPDX-License-Identifier: MIT
/*
 * gpuidle [SECONDS]: a few kernels, then no call of CUDA any more until its time is over or its
 * input ends, so that there is no call at whose end a profiler could leave.
 */
#include "sample.h"

int main(int argc, char **argv)
{
	double end = sample_seconds() + (double)sample_number(argc, argv, 1, 30);
	struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;

	sample_context();
	sample_kernels(&kernels);
	for (int i = 0; i < 10; i++)
		sample_run(kernels.tick, TICK_NAME, shape, NULL);
	DRIVER(cuCtxSynchronize);
	sample_ready();
	while (sample_seconds() < end && !sample_input_ended(100))
		;
	return sample_end();
}
