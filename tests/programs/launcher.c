// SPDX-License-Identifier: MIT
/*
 * launcher CALLS: loads the runtime, as the launcher of a training does, and calls nothing of it.
 * Starts itself as a worker, which uses CUDA and waits (SAMPLE_WAIT) in the middle. When that has
 * ended, the launcher makes so many calls itself.
 */
#include <string.h>
#include <sys/wait.h>

#include "sample.h"

static void use_runtime(long times)
{
	while (times-- > 0) {
		void *memory;

		RUNTIME(cudaMalloc, &memory, 100);
		count_alloc("device", 100);
		RUNTIME(cudaFree, memory);
		count_free("device", 100);
	}
}

static int work(void)
{
	use_runtime(1);
	sample_wait();
	use_runtime(10);
	return sample_end();
}

int main(int argc, char **argv)
{
	pid_t child;
	int status;

	runtime = sample_open("libcudart.so.12");
	if (argc > 1 && !strcmp(argv[1], "worker"))
		return work();
	child = fork();
	if (child == 0) {
		execl(argv[0], argv[0], "worker", NULL);
		_exit(98);
	}
	if (waitpid(child, &status, 0) != child || status)
		sample_fail("the worker ended with %x", status);
	use_runtime(sample_number(argc, argv, 1, 3));
	return sample_end();
}
