// SPDX-License-Identifier: MIT
/*
 * crowd N [TOGETHER]: N processes, one after the other or so many at a time, each of which uses
 * CUDA for a moment: a context, an allocation that is not freed, a set and a launch.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "sample.h"

static void live_briefly(void)
{
	static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;
	CUdeviceptr memory;

	sample_context();
	sample_kernels(&kernels);
	DRIVER(cuMemAlloc_v2, &memory, 4096);
	DRIVER(cuMemsetD8_v2, memory, 0, 4096);
	sample_launch(kernels.tick, TICK_NAME, shape, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	long n = sample_number(argc, argv, 1, 100), together = sample_number(argc, argv, 2, 1);
	long running = 0;
	int status, failed = 0;

	for (long i = 0; i < n || running; running--) {
		for (; i < n && running < together; i++, running++) {
			pid_t child = fork();

			if (!child)
				live_briefly();
			if (child < 0)
				sample_fail("fork");
		}
		if (wait(&status) > 0)
			failed |= status;
	}
	return failed ? 1 : 0;
}
