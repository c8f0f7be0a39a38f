// SPDX-License-Identifier: MIT
/* What goes into the kernel: large allocations, and managed memory that host and GPU touch in turns. */
#include "runtime.h"

#define ALLOCATIONS     8
#define ALLOCATED_BYTES (256ull << 20)
#define MANAGED_BYTES   (64ull << 20)
#define PAGE            4096
#define TURNS           3

static __global__ void touch(char *at, size_t bytes)
{
	size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * PAGE;

	if (i < bytes)
		at[i]++;
}

int main()
{
	void *memory[ALLOCATIONS];
	char *managed;

	for (int i = 0; i < ALLOCATIONS; i++) {
		CHECK(cudaMalloc(&memory[i], ALLOCATED_BYTES));
		count_alloc("device", address_of(memory[i]), ALLOCATED_BYTES);
	}
	CHECK(cudaMallocManaged(&managed, MANAGED_BYTES));
	count_alloc("managed", address_of(managed), MANAGED_BYTES);
	for (int turn = 0; turn < TURNS; turn++) {
		for (size_t i = 0; i < MANAGED_BYTES; i += PAGE)
			managed[i]++;
		touch<<<MANAGED_BYTES / PAGE / 256, 256>>>(managed, MANAGED_BYTES);
		CHECK(cudaDeviceSynchronize());
	}
	if (managed[0] != 2 * TURNS)
		return 1;
	CHECK(cudaFree(managed));
	for (int i = 0; i < ALLOCATIONS; i++)
		CHECK(cudaFree(memory[i]));
	return 0;
}
