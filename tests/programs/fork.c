// SPDX-License-Identifier: MIT
/*
 * fork: a child that was forked before CUDA was used initialises for itself and works (5 rounds);
 * the parent works (9 rounds) and then forks a second child, whose calls fail, since CUDA does not
 * survive a fork. Each of the three processes writes its counts.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

static void work(int rounds)
{
	struct gpu gpu;
	gpu_open(&gpu);
	gpu_work(&gpu, rounds);
	gpu_close(&gpu);
}

static int child_before(void)
{
	work(5);
	sample_finish();
	return 0;
}

static int child_after(void)
{
	CUdeviceptr address;
	sample_forget();
	CALL(cuInit, 0);
	for (int i = 0; i < 3; i++)
		CALL(cuMemAlloc_v2, &address, 4096);
	sample_finish();
	return 0;
}

static void run(int (*child)(void))
{
	int status;
	pid_t pid = fork();
	if (pid < 0)
		sample_die("cannot fork");
	if (pid == 0)
		_exit(child());
	if (waitpid(pid, &status, 0) != pid || status != 0)
		sample_die("a child failed");
}

int main(void)
{
	run(child_before);
	struct gpu gpu;
	gpu_open(&gpu);
	gpu_work(&gpu, 9);
	run(child_after);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
