// SPDX-License-Identifier: MIT
/*
 * toolkit LIBRARY [any]: calls a real libcudart where there is no driver for it. With a second
 * argument its calls may return what they like: the library itself is asked for the names.
 */
#include "sample.h"

static void note(const char *call, int result)
{
	__typeof__(&cudaGetErrorName) name = sample_symbol(runtime, "cudaGetErrorName");

	count("calls", 1, "%s", call);
	if (result)
		count("errors", 1, "%s %d %s", call, result, name((cudaError_t)result));
}

#define NOTE(name, ...)                                                                            \
	note(#name, (int)((__typeof__(&name))sample_symbol(runtime, #name))(__VA_ARGS__))

int main(int argc, char **argv)
{
	void *memory = NULL;
	char byte = 0;

	if (argc < 2)
		sample_fail("toolkit LIBRARY [any]");
	runtime = sample_open(argv[1]);
	if (argc > 2) {
		NOTE(cudaMalloc, &memory, 100);
		NOTE(cudaMemcpy, memory, &byte, 1, cudaMemcpyHostToDevice);
		NOTE(cudaFree, memory);
		NOTE(cudaDeviceSynchronize);
		return sample_end();
	}
	RUNTIME_FAILS(cudaErrorInsufficientDriver, cudaMalloc, &memory, 100);
	RUNTIME_FAILS(cudaErrorInsufficientDriver, cudaMalloc, &memory, 200);
	RUNTIME_FAILS(cudaErrorInsufficientDriver, cudaMemcpy, &byte, &byte, 1,
	              cudaMemcpyHostToDevice);
	RUNTIME_FAILS(cudaErrorInsufficientDriver, cudaDeviceSynchronize);
	return sample_end();
}
