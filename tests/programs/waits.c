// SPDX-License-Identifier: MIT
/*
 * waits SECONDS: waits that long for its stream, in one call; begins when a byte comes in, and says
 * "ready" before.
 */
#include <time.h>

#include "sample.h"

static void rest(void *seconds)
{
	const struct timespec pause = { .tv_sec = *(long *)seconds };

	nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	long seconds = sample_number(argc, argv, 1, 5);
	CUstream stream;
	char byte;

	sample_context();
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	printf("ready\n");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		sample_fail("no input");
	DRIVER(cuStreamSynchronize, stream);
	DRIVER(cuLaunchHostFunc, stream, rest, &seconds);
	DRIVER(cuStreamSynchronize, stream);
	return sample_end();
}
