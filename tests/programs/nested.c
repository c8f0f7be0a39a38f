// SPDX-License-Identifier: MIT
/* nested DEPTH [ROUNDS]: calls within calls, DEPTH of them, that all return; ordinary
 * ones between. */
#include "sample.h"

static void descend(void *depth)
{
	CUdeviceptr memory;

	if (depth) {
		DRIVER(cuSimCallback, descend, (char *)depth - 1);
		return;
	}
	DRIVER(cuMemAlloc_v2, &memory, 64);
	DRIVER(cuMemFree_v2, memory);
}

int main(int argc, char **argv)
{
	long depth = sample_number(argc, argv, 1, 2), rounds = sample_number(argc, argv, 2, 10);
	CUdeviceptr memory;

	sample_context();
	for (long i = 0; i < rounds; i++) {
		descend((void *)depth);
		DRIVER(cuMemAlloc_v2, &memory, 128);
		count_alloc("device", 128);
		DRIVER(cuMemFree_v2, memory);
		count_free("device", 128);
	}
	return sample_end();
}
