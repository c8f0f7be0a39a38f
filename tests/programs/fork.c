// SPDX-License-Identifier: MIT
/*
 * fork before: forks before CUDA is initialised; parent and child both use it, and the child forks
 * once more. fork after: the parent uses it first, and the child finds that it cannot.
 * fork opened FILE: the parent loads the library and has a GPU's device open, but not by CUDA.
 * Only the child uses that, once there is the file that SAMPLE_WAIT names.
 * Nothing execs. The library is loaded before the first fork.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "sample.h"

static void use_cuda(size_t bytes)
{
	struct shape shape = { { 1, 2, 3 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;
	CUdeviceptr memory;

	sample_context();
	sample_kernels(&kernels);
	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	sample_launch(kernels.tick, TICK_NAME, shape, NULL);
	DRIVER(cuCtxSynchronize);
}

static void wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		sample_fail("the child ended with %x", status);
}

static int before(void)
{
	pid_t child = fork();

	if (child == 0) {
		pid_t grandchild = fork();

		if (grandchild == 0) {
			use_cuda(300);
			_exit(sample_end());
		}
		use_cuda(200);
		wait_for(grandchild);
		_exit(sample_end());
	}
	use_cuda(100);
	wait_for(child);
	return sample_end();
}

static int after(void)
{
	CUdeviceptr memory;
	pid_t child;

	use_cuda(100);
	child = fork();
	if (child == 0) {
		tally_forget();
		DRIVER_FAILS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2, &memory, 5000);
		DRIVER_FAILS(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize);
		_exit(sample_end());
	}
	wait_for(child);
	return sample_end();
}

static int opened(const char *device)
{
	const char *go = getenv("SAMPLE_WAIT");
	pid_t child;

	if (!go || open(device, O_PATH) < 0)
		sample_fail("it needs %s, and SAMPLE_WAIT", device);
	puts("ready");
	fflush(stdout);
	while (access(go, F_OK))
		usleep(10000);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 20; i++)
			use_cuda(100);
		_exit(sample_end());
	}
	wait_for(child);
	return sample_end();
}

int main(int argc, char **argv)
{
	driver = sample_open("libcuda.so.1");
	if (argc > 2 && !strcmp(argv[1], "opened"))
		return opened(argv[2]);
	return argc > 1 && !strcmp(argv[1], "after") ? after() : before();
}
