// SPDX-License-Identifier: MIT
/*
 * twice SECONDS: has the driver a second time, in a namespace of its own (dlmopen), and calls a
 * function of each in turns, 300 times a second.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include "sample.h"

int main(int argc, char **argv)
{
	double end = sample_seconds() + (double)sample_number(argc, argv, 1, 5);
	void *other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
	int (*begin)(unsigned) = other ? (int (*)(unsigned))dlsym(other, "cuInit") : NULL;
	int (*version)(int *) = other ? (int (*)(int *))dlsym(other, "cuDriverGetVersion") : NULL;
	CUdeviceptr memory;
	int value;

	if (!begin || !version || begin(0))
		sample_fail("no second driver: %s", dlerror());
	sample_context();
	sample_ready();
	do {
		DRIVER(cuMemAlloc_v2, &memory, 256);
		DRIVER(cuMemFree_v2, memory);
		DRIVER(cuDriverGetVersion, &value);
		if (version(&value))
			sample_fail("the second driver fails");
	} while (sample_seconds() < end && !sample_input_ended(3));
	return sample_end();
}
