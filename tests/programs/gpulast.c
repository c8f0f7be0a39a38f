// SPDX-License-Identifier: MIT
/*
 * gpulast [LAUNCHES [exit | thread]]: ends right after its last launch, by returning from main or, with
 * "exit", by _exit. With "thread" another thread calls exit after that, and the first one launches on:
 * the exit waits for some launches more behind all that came to be called at it since CUDA began.
 * What the device still ran is not known.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"

enum { LAUNCHES_AT_EXIT = 100 };

static atomic_long launched_on;

static void wait_for_launches(void)
{
	long from = atomic_load(&launched_on);

	while (atomic_load(&launched_on) < from + LAUNCHES_AT_EXIT)
		usleep(100);
}

static void *end_all(void *unused)
{
	exit(0);
}

int main(int argc, char **argv)
{
	long launches = sample_number(argc, argv, 1, 1000);
	struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;
	bool by_thread = argc > 2 && !strcmp(argv[2], "thread");

	if (by_thread)
		atexit(wait_for_launches); /* before CUDA begins: the last of all */
	sample_context();
	sample_kernels(&kernels);
	for (long i = 0; i < launches; i++)
		sample_launch(kernels.tick, TICK_NAME, shape, NULL);
	if (by_thread) {
		pthread_t thread;

		pthread_create(&thread, NULL, end_all, NULL);
		for (;;) {
			sample_launch(kernels.tick, TICK_NAME, shape, NULL);
			atomic_fetch_add(&launched_on, 1);
		}
	}
	if (argc > 2 && !strcmp(argv[2], "exit"))
		_exit(sample_end());
	return sample_end();
}
