// SPDX-License-Identifier: MIT
/* Calls that fail, and one that only looks as if it did. */
#include "runtime.h"

/* A call that must fail. */
#define FAILS(function, ...)                                                                       \
	do {                                                                                       \
		cudaError_t fails_error = function(__VA_ARGS__);                                   \
		if (fails_error == cudaSuccess) {                                                  \
			fprintf(stderr, "%s:%d: %s succeeded\n", __FILE__, __LINE__, #function);   \
			exit(1);                                                                   \
		}                                                                                  \
		count_error(#function, fails_error, cudaGetErrorName(fails_error));                \
		cudaGetLastError();                                                                \
	} while (0)

__global__ void spin(long long cycles)
{
	long long begin = clock64();
	while (clock64() - begin < cycles)
		;
}

static void failures(void)
{
	void *p, *args[] = { &p };
	cudaEvent_t a, b;
	char host[16];
	float ms;

	CHECK(cudaMalloc(&p, 4096));
	count_alloc("device", address_of(p), 4096);
	for (int i = 0; i < 3; i++)
		FAILS(cudaMalloc, &p, (size_t)1 << 60);
	FAILS(cudaFree, (void *)0x1230);
	FAILS(cudaMemcpy, host, host, 16, (cudaMemcpyKind)99);
	FAILS(cudaSetDevice, 9999);
	FAILS(cudaLaunchKernel, (const void *)spin, dim3(1), dim3(4096), args, 0, NULL);
	FAILS(cudaMallocHost, &p, (size_t)1 << 60);
	CHECK(cudaEventCreate(&a));
	CHECK(cudaEventCreate(&b));
	FAILS(cudaEventElapsedTime, &ms, a, b);
}

/* "Not ready" is an answer, not a failure. */
static void polls(cudaStream_t stream)
{
	int queries = 0;

	spin<<<1, 1, 0, stream>>>(50 * 1000 * 1000);
	count_launches(1, "spin(long long)", shape_of(1, 1), stream, false);
	do {
		queries++;
	} while (cudaStreamQuery(stream) == cudaErrorNotReady);
	CHECK(cudaGetLastError());
	if (queries < 2) {
		fprintf(stderr, "the kernel ended before it was asked for\n");
		exit(1);
	}
	count_calls(queries, "cudaStreamQuery");
}

int main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	failures();
	polls(stream);
	return 0;
}
