// SPDX-License-Identifier: MIT
/*
 * steps NS: steps of a training that is bound by its launches: 170 calls, so long apart, and then
 * what they asked for has long been done. See chunks.h.
 */
#include "chunks.h"
#include "programs/sample.h"

#define CALLS 170
#define BYTES 4096

static struct kernels kernels;
static CUstream stream;
static CUevent event;
static CUdeviceptr memory;
static void *host;
static uint64_t turns;

static void call(int i)
{
	static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };

	chunks_compute(turns);
	if (i % 17 == 3)
		DRIVER(cuMemsetD8Async, memory, 0, BYTES, stream);
	else if (i % 17 == 7)
		DRIVER(cuMemcpyHtoDAsync_v2, memory, host, BYTES, stream);
	else if (i % 34 == 11)
		DRIVER(cuEventRecord, event, stream);
	else
		sample_launch(kernels.tick, TICK_NAME, shape, stream);
}

static int step(void *data)
{
	(void)data;
	for (int i = 0; i < CALLS - 1; i++)
		call(i);
	DRIVER(cuStreamSynchronize, stream);
	return 0;
}

int main(int argc, char **argv)
{
	turns = chunks_turns(argc > 1 ? strtoull(argv[1], NULL, 10) : 5000);
	sample_context();
	sample_kernels(&kernels);
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	DRIVER(cuEventCreate, &event, 0);
	DRIVER(cuMemAlloc_v2, &memory, BYTES);
	DRIVER(cuMemAllocHost_v2, &host, BYTES);
	return chunks_run(step, NULL);
}
