// SPDX-License-Identifier: MIT
/*
 * nvtx [STEPS]: ranges of NVTX around launches, on two threads, nested, in domains, some that begin
 * and end on different threads, and marks. In the section nvtx of its counts a range is
 * "pushpop DEPTH NAME", "startend NAME" or "mark NAME", with "DOMAIN:" before the name where it has
 * a domain. Nothing is counted where no tool is there.
 */
#include "nvtx.h"

#include <pthread.h>

#include "sample.h"

static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
static struct kernels kernels;
static CUcontext context;
static nvtx_domain data;
static nvtx_string epoch;
static uint64_t open_range;
static long steps;

static void seen(const char *what)
{
	if (nvtx_is_there())
		count("nvtx", 1, "%s", what);
}

static void step(void)
{
	nvtx_push("step");
	nvtx_push("forward");
	sample_run(kernels.tick, TICK_NAME, shape, NULL);
	nvtx_domain_push(data, "load");
	sample_run(kernels.plain, PLAIN, shape, NULL);
	nvtx_domain_pop(data);
	seen("pushpop 0 data:load"); /* depths are counted in a domain */
	nvtx_pop();
	seen("pushpop 1 forward");
	nvtx_mark("half");
	seen("mark half");
	nvtx_push_wide(L"r\u00fcckw\u00e4rts");
	sample_run(kernels.block, BLOCK_NAME, shape, NULL);
	nvtx_pop();
	seen("pushpop 1 r\u00fcckw\u00e4rts");
	nvtx_pop();
	seen("pushpop 0 step");
}

static void *other(void *unused)
{
	uint64_t id;

	DRIVER(cuCtxSetCurrent, context);
	id = nvtx_domain_start(data, "prefetch");
	for (long i = 0; i < steps; i++) {
		nvtx_domain_push_registered(data, epoch);
		sample_run(kernels.tick, TICK_NAME, shape, CU_STREAM_PER_THREAD);
		nvtx_domain_mark(data, "sample");
		seen("mark data:sample");
		nvtx_domain_pop(data);
		seen("pushpop 0 data:epoch");
	}
	nvtx_domain_end(data, id);
	seen("startend data:prefetch");
	nvtx_end(open_range); /* begun by the main thread */
	seen("startend all");
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	steps = sample_number(argc, argv, 1, 5);
	context = sample_context();
	sample_kernels(&kernels);
	data = nvtx_domain_create("data");
	epoch = nvtx_register(data, "epoch");
	open_range = nvtx_start("all");
	pthread_create(&thread, NULL, other, NULL);
	for (long i = 0; i < steps; i++)
		step();
	pthread_join(thread, NULL);
	nvtx_pop(); /* one too many: nothing is open */
	DRIVER(cuCtxSynchronize);
	return sample_end();
}
