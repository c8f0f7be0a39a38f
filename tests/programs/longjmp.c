// SPDX-License-Identifier: MIT
/*
 * longjmp [TIMES]: leaves calls by longjmp out of a function that they call, so that they never
 * return: once from one call, once from a call inside a call of the runtime. In between are calls
 * that do return.
 */
#include <setjmp.h>
#include <stdlib.h>

#include "gpu.h"

static jmp_buf back;

static void jump(void *data)
{
	longjmp(back, 1);
}

static void leave_driver(void)
{
	if (setjmp(back) == 0) {
		CALL(cuSimCallback, jump, NULL);
		sample_die("cuSimCallback returned");
	}
	count(UNFINISHED, "cuSimCallback", 1);
}

/* The driver's function is nested in the runtime's: neither returns. */
static void leave_runtime(void)
{
	if (setjmp(back) == 0) {
		CALL(cudaSimCallback, jump, NULL);
		sample_die("cudaSimCallback returned");
	}
	count(UNFINISHED, "cudaSimCallback", 1);
}

static void stay(void *data)
{
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 100;
	struct gpu gpu;
	CUcontext ctx;
	gpu_open(&gpu);
	for (int i = 0; i < times; i++) {
		leave_driver();
		MUST(cuCtxGetCurrent, &ctx);
		gpu_launch(&gpu, 1, NULL);
		leave_runtime();
		MUST(cuSimCallback, stay, NULL);
	}
	MUST(cuCtxSynchronize);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
