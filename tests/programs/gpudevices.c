// SPDX-License-Identifier: MIT
/*
 * gpudevices [DEVICES]: a kernel on the first device, two on the second, and so on, each with as
 * many blocks as its device has a number, from 1. SIMCUDA_DEVICES has to be DEVICES or more.
 */
#include "sample.h"

static void use(CUdevice device)
{
	struct shape shape = { { (unsigned)device + 1, 1, 1 }, { 32, 1, 1 }, 0 };
	struct kernels kernels;
	CUcontext context;

	DRIVER(cuDevicePrimaryCtxRetain, &context, device);
	DRIVER(cuCtxSetCurrent, context);
	sample_kernels(&kernels);
	for (CUdevice i = 0; i <= device; i++)
		sample_run(kernels.tick, TICK_NAME, shape, NULL);
	DRIVER(cuCtxSynchronize);
}

int main(int argc, char **argv)
{
	long devices = sample_number(argc, argv, 1, 2);

	driver = sample_open("libcuda.so.1");
	DRIVER(cuInit, 0);
	for (CUdevice i = 0; i < devices; i++)
		use(i);
	return sample_end();
}
