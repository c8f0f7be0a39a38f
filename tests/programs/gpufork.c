// SPDX-License-Identifier: MIT
/*
 * gpufork [CHILDREN]: uses CUDA, and forks children that live on beside it: they find that they
 * cannot use it, and one of them execs this program again, which can ("again").
 */
#include <string.h>
#include <sys/wait.h>

#include "sample.h"

static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };

static void use_cuda(const struct kernels *k, int n)
{
	for (int i = 0; i < n; i++)
		sample_run(k->tick, TICK_NAME, shape, NULL);
	DRIVER(cuCtxSynchronize);
}

static void child(const char *program, int number)
{
	CUdeviceptr memory;

	tally_forget();
	DRIVER_FAILS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2, &memory, 100);
	if (number == 0) {
		sample_end();
		execl(program, program, "again", (char *)NULL);
		sample_fail("cannot exec %s", program);
	}
	_exit(sample_end());
}

int main(int argc, char **argv)
{
	bool again = argc > 1 && !strcmp(argv[1], "again");
	long children = again ? 0 : sample_number(argc, argv, 1, 3);
	struct kernels kernels;
	pid_t pid[64];

	if (children > 64)
		sample_fail("64 children at most");
	sample_context();
	sample_kernels(&kernels);
	use_cuda(&kernels, 10);
	for (int i = 0; i < children; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			child(argv[0], i);
		use_cuda(&kernels, 10);
	}
	for (int i = 0; i < children; i++) {
		int status;
		if (waitpid(pid[i], &status, 0) != pid[i] || status)
			sample_fail("a child ended with %x", status);
	}
	use_cuda(&kernels, 10);
	return sample_end();
}
