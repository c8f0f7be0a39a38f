// SPDX-License-Identifier: MIT
/*
 * gpustreams [ROUNDS]: three streams that wait for one another by events, and the default stream.
 * Each round is a chain: a kernel of the first stream, then one of the second and two of the third
 * side by side, then one of the first, and one of the default stream after all of them.
 */
#include "sample.h"

#define STREAMS 3

static const struct shape small = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
static const struct shape large = { { 64, 2, 1 }, { 128, 1, 1 }, 256 };

static CUstream stream[STREAMS];
static CUevent first_done, others_done[STREAMS];

static void one_round(const struct kernels *k)
{
	sample_run(k->tick, TICK_NAME, small, stream[0]);
	DRIVER(cuEventRecord, first_done, stream[0]);
	for (int i = 1; i < STREAMS; i++) {
		DRIVER(cuStreamWaitEvent, stream[i], first_done, 0);
		count("waits", 1, "stream for event");
		for (int n = 0; n < i; n++)
			sample_run(k->block, BLOCK_NAME, large, stream[i]);
		DRIVER(cuEventRecord, others_done[i], stream[i]);
	}
	for (int i = 1; i < STREAMS; i++) {
		DRIVER(cuStreamWaitEvent, stream[0], others_done[i], 0);
		count("waits", 1, "stream for event");
	}
	sample_run(k->tick, TICK_NAME, small, stream[0]);
	sample_run(k->plain, PLAIN, small, NULL);
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 20);
	struct kernels kernels;

	sample_context();
	sample_kernels(&kernels);
	for (int i = 0; i < STREAMS; i++) {
		DRIVER(cuStreamCreate, &stream[i], 0);
		DRIVER(cuEventCreate, &others_done[i], CU_EVENT_DISABLE_TIMING);
	}
	DRIVER(cuEventCreate, &first_done, 0);
	for (long i = 0; i < rounds; i++)
		one_round(&kernels);
	DRIVER(cuStreamSynchronize, stream[0]);
	count("waits", 1, "host for stream");
	DRIVER(cuEventSynchronize, first_done);
	count("waits", 1, "host for event");
	DRIVER(cuCtxSynchronize);
	count("waits", 1, "host for context");
	return sample_end();
}
