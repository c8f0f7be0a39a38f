// SPDX-License-Identifier: MIT
/*
 * threadexit [THREADS [STOP]]: threads that end by pthread_exit or by the system call itself inside
 * a CUDA call; then the same number of threads that make ordinary calls, some under the same ids:
 * pids are made to be few. Without a second argument the process then waits a moment for a line on
 * its input, so that what was left behind can be looked at.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "sample.h"

static CUcontext context;

static void exit_thread(void *unused)
{
	pthread_exit(NULL);
}

/* As a thread ends whose stack nobody unwinds. */
static void exit_task(void *unused)
{
	syscall(SYS_exit, 0);
}

static void *end_inside(void *argument)
{
	DRIVER(cuCtxSetCurrent, context);
	count("unfinished", 1, "cuSimCallback");
	CALL_IN(driver, cuSimCallback, (CUsimCallback)argument, NULL);
	sample_fail("the thread came back");
}

static void *ordinary(void *argument)
{
	size_t bytes = (size_t)argument;
	CUdeviceptr memory;

	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	DRIVER(cuMemFree_v2, memory);
	count_free("device", bytes);
	return NULL;
}

static void run(void *(*main)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, main, argument))
		sample_fail("no thread");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	long n = sample_number(argc, argv, 1, 20);

	context = sample_context();
	for (long i = 0; i < n; i++) {
		run(end_inside, (void *)(argc > 2 && i % 2 ? exit_task : exit_thread));
		run(ordinary, (void *)(size_t)(100 + i));
	}
	return sample_end();
}
