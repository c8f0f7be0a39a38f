// SPDX-License-Identifier: MIT
/*
 * ptsz [LAUNCHES]: as a program does that was built for a default stream of each thread's own:
 * while one thread records its stream 0 into a graph, another launches on its own, which run.
 */
#include <pthread.h>

#include "sample.h"

static const struct shape shape = { { 4, 1, 1 }, { 64, 1, 1 }, 0 };
static struct kernels kernels;
static CUcontext context;
static long launches;

/* The variants have the types of what they are variants of. */
#define OWN(name, ...)                                                                             \
	({                                                                                         \
		__typeof__(&name) own_ = (__typeof__(&name))sample_symbol(driver, #name "_ptsz");  \
		count("calls", 1, #name "_ptsz");                                                  \
		sample_check(#name "_ptsz", (int)own_(__VA_ARGS__), 0, NULL);                      \
	})

static void launch(const char *section)
{
	CUdeviceptr pointer = 0;
	int n = 0;
	void *args[] = { &pointer, &n };

	OWN(cuLaunchKernel, kernels.tick, 4, 1, 1, 64, 1, 1, 0, NULL, args, NULL);
	count_launches(section, 1, TICK_NAME, shape, NULL);
}

static void *other(void *unused)
{
	DRIVER(cuCtxSetCurrent, context);
	for (long i = 0; i < launches; i++)
		launch("launches");
	OWN(cuStreamSynchronize, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	CUgraph graph;

	launches = sample_number(argc, argv, 1, 10);
	context = sample_context();
	sample_kernels(&kernels);
	launch("launches");
	OWN(cuStreamBeginCapture_v2, NULL, CU_STREAM_CAPTURE_MODE_RELAXED);
	launch("captured_launches");
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	launch("captured_launches");
	OWN(cuStreamEndCapture, NULL, &graph);
	launch("launches");
	OWN(cuStreamSynchronize, NULL);
	DRIVER(cuGraphDestroy, graph);
	return sample_end();
}
