// SPDX-License-Identifier: MIT
/*
 * Kernels of known durations: each takes the GPU's own clock (%globaltimer, 32 ns fine on Hopper)
 * when it begins and when it ends, and stands between two events. Writes a line of JSON for each to
 * the file that is named: the nanoseconds by the one, and by the other. A kernel before the first event
 * keeps the GPU until the host has launched all three, so that no event tells how slow the host is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"

#define TIMES   20
#define HOLD_NS 300000

static const unsigned long long lengths_ns[] = { 5000, 20000, 100000, 500000, 2000000, 10000000 };

__device__ unsigned long long now_ns(void)
{
	unsigned long long now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

__global__ void spin(unsigned long long length_ns, unsigned long long *took_ns)
{
	unsigned long long begin = now_ns();

	while (now_ns() - begin < length_ns)
		;
	*took_ns = now_ns() - begin;
}

__global__ void hold()
{
	unsigned long long begin = now_ns();

	while (now_ns() - begin < HOLD_NS)
		;
}

int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	unsigned long long *took, host;
	cudaEvent_t before, after;
	float ms;

	if (!out)
		return 1;
	CHECK(cudaMalloc((void **)&took, sizeof(*took)));
	CHECK(cudaEventCreate(&before));
	CHECK(cudaEventCreate(&after));
	spin<<<1, 1>>>(1000, took);
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < sizeof(lengths_ns) / sizeof(*lengths_ns); i++) {
		for (int j = 0; j < TIMES; j++) {
			hold<<<1, 1>>>();
			CHECK(cudaEventRecord(before));
			spin<<<1, 1>>>(lengths_ns[i], took);
			CHECK(cudaEventRecord(after));
			CHECK(cudaMemcpy(&host, took, sizeof(host), cudaMemcpyDeviceToHost));
			CHECK(cudaEventElapsedTime(&ms, before, after));
			fprintf(out, "{\"length\": %llu, \"kernel\": %llu, \"event\": %.0f}\n",
			        lengths_ns[i], host, ms * 1e6);
		}
	}
	return fclose(out) != 0;
}
