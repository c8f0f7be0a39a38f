// SPDX-License-Identifier: MIT
/*
 * longjmp [ROUNDS]: leaves a CUDA call by longjmp, so that it never returns, from two depths and
 * between ordinary calls; from the main thread and from another one.
 */
#include <pthread.h>
#include <setjmp.h>

#include "sample.h"

static long rounds;
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

static void *loop(void *context)
{
	DRIVER(cuCtxSetCurrent, context);
	for (long i = 0; i < rounds; i++) {
		jump_from(jump, 1);
		allocate_and_free(100 + (size_t)i);
		jump_from(call_and_jump, 2);
	}
	/* many in a row: nothing returns in between */
	for (long i = 0; i < rounds; i++)
		jump_from(call_and_jump, 2);
	allocate_and_free(77);
	return NULL;
}

int main(int argc, char **argv)
{
	CUcontext context = sample_context();
	pthread_t thread;

	rounds = sample_number(argc, argv, 1, 20);
	loop(context);
	pthread_create(&thread, NULL, loop, context);
	pthread_join(thread, NULL);
	return sample_end();
}
