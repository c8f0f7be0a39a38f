// SPDX-License-Identifier: MIT
/*
 * longjmp [ROUNDS [US]]: leaves a CUDA call by longjmp, so that it never returns, from two depths
 * and between ordinary calls; from the main thread and from another one. After each round it waits,
 * if asked to, and so it has just left a call nearly always.
 */
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>

#include "sample.h"

static long rounds, pause_us;
static __thread jmp_buf back;

static void jump(void *unused)
{
	longjmp(back, 1);
}

static void call_and_jump(void *unused)
{
	CALL_IN(driver, cuSimCallback, jump, NULL);
	sample_fail("the jump came back");
}

/* An ordinary call that must come out as if nothing had happened. */
static void allocate_and_free(size_t bytes)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	DRIVER(cuMemFree_v2, memory);
	count_free("device", bytes);
}

static void jump_from(CUsimCallback depth, int calls)
{
	if (!setjmp(back)) {
		CALL_IN(driver, cuSimCallback, depth, NULL);
		sample_fail("the jump came back");
	}
	count("unfinished", 1, "cuSimCallback");
	count("nested_unfinished", calls - 1, "cuSimCallback");
}

static void rest(void)
{
	if (pause_us)
		usleep((useconds_t)pause_us);
}

static void *loop(void *context)
{
	DRIVER(cuCtxSetCurrent, context);
	for (long i = 0; i < rounds; i++) {
		jump_from(jump, 1);
		allocate_and_free(100 + (size_t)i);
		jump_from(call_and_jump, 2);
		rest();
	}
	/* many in a row: nothing returns in between */
	for (long i = 0; i < rounds; i++) {
		jump_from(call_and_jump, 2);
		rest();
	}
	allocate_and_free(77);
	return NULL;
}

int main(int argc, char **argv)
{
	CUcontext context = sample_context();
	pthread_t thread;

	rounds = sample_number(argc, argv, 1, 20);
	pause_us = sample_number(argc, argv, 2, 0);
	pthread_create(&thread, NULL, loop, context);
	loop(context);
	pthread_join(thread, NULL);
	return sample_end();
}
