// SPDX-License-Identifier: MIT
/* Copies and sets of known sizes, in all directions, by all calls. */
#include "runtime.h"

#define BYTES (1 << 20)

__device__ float symbol[1024];

static char *device, *other, *host, *pinned;

static void linear(cudaStream_t stream)
{
	for (int i = 0; i < 10; i++) {
		CHECK(cudaMemcpy(device, host, 1000 + i, cudaMemcpyHostToDevice));
		count_copies(1, "H2D", 1000 + i, false);
	}
	CHECK(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
	count_copies(1, "D2H", BYTES, false);
	CHECK(cudaMemcpy(other, device, 5000, cudaMemcpyDeviceToDevice));
	count_copies(1, "D2D", 5000, false);
	CHECK(cudaMemcpy(host, pinned, 300, cudaMemcpyHostToHost));
	count_copies(1, "H2H", 300, false);
	CHECK(cudaMemcpy(device, host, 700, cudaMemcpyDefault));
	count_copies(1, "default", 700, false);
	CHECK(cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice, stream));
	count_copies(1, "H2D", BYTES, false);
	CHECK(cudaMemcpyAsync(pinned, device, 12345, cudaMemcpyDeviceToHost, stream));
	count_copies(1, "D2H", 12345, false);
	CHECK(cudaMemcpyPeer(other, 0, device, 0, 2222));
	count_copies(1, "P2P", 2222, false);
}

static void of_symbols(void)
{
	CHECK(cudaMemcpyToSymbol(symbol, host, 400));
	count_copies(1, "H2D", 400, false);
	CHECK(cudaMemcpyFromSymbol(host, symbol, 200, 16));
	count_copies(1, "D2H", 200, false);
}

/* 2D and 3D copies count what is moved, not the pitch. */
static void of_planes(cudaStream_t stream)
{
	cudaMemcpy3DParms p = {};
	p.srcPtr = make_cudaPitchedPtr(host, 128, 128, 8);
	p.dstPtr = make_cudaPitchedPtr(device, 256, 256, 8);
	p.extent = make_cudaExtent(100, 8, 4);
	p.kind = cudaMemcpyHostToDevice;

	CHECK(cudaMemcpy2D(device, 512, host, 256, 200, 30, cudaMemcpyHostToDevice));
	count_copies(1, "H2D", 200 * 30, false);
	CHECK(cudaMemcpy2DAsync(pinned, 256, device, 512, 100, 7, cudaMemcpyDeviceToHost, stream));
	count_copies(1, "D2H", 100 * 7, false);
	CHECK(cudaMemcpy3D(&p));
	count_copies(1, "H2D", 100 * 8 * 4, false);
}

static void sets(cudaStream_t stream)
{
	CHECK(cudaMemset(device, 1, BYTES));
	count_sets(1, BYTES, false);
	for (int i = 0; i < 5; i++)
		CHECK(cudaMemsetAsync(device, i, 999, stream));
	count_sets(5, 999, false);
	CHECK(cudaMemset2D(device, 512, 0, 300, 20));
	count_sets(1, 300 * 20, false);
}

int main(void)
{
	cudaStream_t stream;

	host = (char *)calloc(1, BYTES);
	CHECK(cudaMalloc(&device, BYTES));
	count_alloc("device", address_of(device), BYTES);
	CHECK(cudaMalloc(&other, BYTES));
	count_alloc("device", address_of(other), BYTES);
	CHECK(cudaHostAlloc(&pinned, BYTES, cudaHostAllocDefault));
	count_alloc("host", address_of(pinned), BYTES);
	CHECK(cudaStreamCreate(&stream));
	linear(stream);
	of_symbols();
	of_planes(stream);
	sets(stream);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(device));
	count_free("device", address_of(device));
	CHECK(cudaFree(other));
	count_free("device", address_of(other));
	CHECK(cudaFreeHost(pinned));
	count_free("host", address_of(pinned));
	return 0;
}
