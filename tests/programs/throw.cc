// SPDX-License-Identifier: MIT
/* throw [TIMES]: as longjmp, but calls are left by a C++ exception. */
#include <cstdlib>
#include <stdexcept>

#include "gpu.h"

static void raise_error(void *)
{
	throw std::runtime_error("out of a call");
}

static void leave_driver()
{
	try {
		CALL(cuSimCallback, raise_error, nullptr);
	} catch (const std::runtime_error &) {
		count(UNFINISHED, "cuSimCallback", 1);
		return;
	}
	sample_die("cuSimCallback returned");
}

static void leave_runtime()
{
	try {
		CALL(cudaSimCallback, raise_error, nullptr);
	} catch (const std::runtime_error &) {
		count(UNFINISHED, "cudaSimCallback", 1);
		return;
	}
	sample_die("cudaSimCallback returned");
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? std::atoi(argv[1]) : 100;
	struct gpu gpu;
	CUcontext ctx;
	gpu_open(&gpu);
	for (int i = 0; i < times; i++) {
		leave_driver();
		MUST(cuCtxGetCurrent, &ctx);
		leave_runtime();
		gpu_launch(&gpu, 1, nullptr);
	}
	MUST(cuCtxSynchronize);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
