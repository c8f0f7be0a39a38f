// SPDX-License-Identifier: MIT
/* Many threads at once, each with a stream, a kernel and a shape of its own. */
#include <pthread.h>

#include "runtime.h"

#define THREADS	 8
#define LAUNCHES 2000
#define COPIES	 50

template <int N> __global__ void work(int *x)
{
	x[threadIdx.x] += N;
}

typedef void kernel_fn(int *);

static const struct {
	kernel_fn *kernel;
	const char *name;
} kernels[THREADS] = {
	{ work<0>, "void work<0>(int*)" }, { work<1>, "void work<1>(int*)" },
	{ work<2>, "void work<2>(int*)" }, { work<3>, "void work<3>(int*)" },
	{ work<4>, "void work<4>(int*)" }, { work<5>, "void work<5>(int*)" },
	{ work<6>, "void work<6>(int*)" }, { work<7>, "void work<7>(int*)" },
};

static void *run(void *arg)
{
	int i = (int)(intptr_t)arg;
	dim3 grid(i + 1, 2), block(32 * (i + 1));
	size_t bytes = 4096 * (i + 1);
	cudaStream_t stream;
	int *x, *host;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&x, 1 << 16));
	count_alloc("device", address_of(x), 1 << 16);
	CHECK(cudaMallocHost(&host, 1 << 16));
	count_alloc("host", address_of(host), 1 << 16);
	for (int n = 0; n < LAUNCHES; n++) {
		kernels[i].kernel<<<grid, block, 0, stream>>>(x);
		if (n % (LAUNCHES / COPIES) == 0)
			CHECK(cudaMemcpyAsync(x, host, bytes, cudaMemcpyHostToDevice, stream));
	}
	CHECK(cudaGetLastError());
	count_launches(LAUNCHES, kernels[i].name, shape_of(grid, block), stream, false);
	count_copies(COPIES, "H2D", bytes, false);
	/* On the default stream: its variants for each thread are other functions, *_ptsz. */
	kernels[i].kernel<<<grid, block>>>(x);
	count_launches(1, kernels[i].name, shape_of(grid, block), NULL, false);
	CHECK(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost));
	count_copies(1, "D2H", bytes, false);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamDestroy(stream));
	/* Freed by another thread than the one that allocated it: see main. */
	CHECK(cudaFreeHost(host));
	count_free("host", address_of(host));
	return x;
}

int main(void)
{
	pthread_t threads[THREADS];
	void *x;

	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			exit(1);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &x);
		CHECK(cudaFree(x));
		count_free("device", address_of(x));
	}
	return 0;
}
