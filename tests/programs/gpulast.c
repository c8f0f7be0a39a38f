// SPDX-License-Identifier: MIT
/*
 * gpulast [LAUNCHES [exit | thread]]: ends right after its last launch, by returning from main or, with
 * "exit", by _exit. With "thread" another thread calls exit after that, and the first one launches on.
 * What the device still ran is not known.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

static void *end_all(void *unused)
{
	exit(0);
}

int main(int argc, char **argv)
{
	long launches = sample_number(argc, argv, 1, 1000);
	struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;

	sample_context();
	sample_kernels(&kernels);
	for (long i = 0; i < launches; i++)
		sample_launch(kernels.tick, TICK_NAME, shape, NULL);
	if (argc > 2 && !strcmp(argv[2], "thread")) {
		pthread_t thread;

		pthread_create(&thread, NULL, end_all, NULL);
		for (;;)
			sample_launch(kernels.tick, TICK_NAME, shape, NULL);
	}
	if (argc > 2 && !strcmp(argv[2], "exit"))
		_exit(sample_end());
	return sample_end();
}
