// SPDX-License-Identifier: MIT
/*
 * churn PROCESSES [AT_ONCE [MILLISECONDS [ALLOCATIONS]]]: forks processes that each make a context,
 * allocate, launch once and end with their memory live, so many at once, each of which stays for a
 * while. They run the image of their parent, so a thousand a second are possible.
 */
#include <sys/wait.h>
#include <time.h>

#include "sample.h"

static void live(long milliseconds, long allocations)
{
	static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	const struct timespec stay = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
	struct kernels kernels;
	CUdeviceptr memory;

	sample_context();
	sample_kernels(&kernels);
	for (long i = 0; i < allocations; i++)
		DRIVER(cuMemAlloc_v2, &memory, 1000);
	sample_launch(kernels.tick, TICK_NAME, shape, NULL);
	if (milliseconds)
		nanosleep(&stay, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	long processes = sample_number(argc, argv, 1, 100),
	     at_once = sample_number(argc, argv, 2, 4);
	long milliseconds = sample_number(argc, argv, 3, 0), running = 0;
	long allocations = sample_number(argc, argv, 4, 1);
	int status, failed = 0;

	driver = sample_open("libcuda.so.1"); /* once, so that its children have it */
	for (long i = 0; i < processes; i++) {
		pid_t pid;

		if (running == at_once) {
			failed |= wait(&status) < 0 || status;
			running--;
		}
		pid = fork();
		if (pid < 0)
			sample_fail("cannot fork");
		if (!pid)
			live(milliseconds, allocations);
		running++;
	}
	while (running--)
		failed |= wait(&status) < 0 || status;
	return failed;
}
