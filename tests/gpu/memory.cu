// SPDX-License-Identifier: MIT
/* All kinds of memory that the runtime gives out; what has no count_free is leaked on purpose. */
#include "runtime.h"

static void device_memory(void)
{
	void *keep, *give, *pitched;
	size_t pitch;
	cudaPitchedPtr volume;

	CHECK(cudaMalloc(&keep, 3 << 20));
	count_alloc("device", address_of(keep), 3 << 20);
	for (int i = 1; i <= 50; i++) {
		CHECK(cudaMalloc(&give, 1000 * i));
		count_alloc("device", address_of(give), 1000 * i);
		CHECK(cudaFree(give));
		count_free("device", address_of(give));
	}
	CHECK(cudaFree(NULL));
	CHECK(cudaMallocPitch(&pitched, &pitch, 1000, 37));
	count_alloc("device", address_of(pitched), pitch * 37);
	CHECK(cudaFree(pitched));
	count_free("device", address_of(pitched));
	CHECK(cudaMalloc3D(&volume, make_cudaExtent(100, 10, 5)));
	count_alloc("device", address_of(volume.ptr), volume.pitch * 10 * 5);
}

static void stream_ordered_memory(cudaStream_t stream)
{
	void *first, *leaked, *pooled;
	cudaMemPool_t pool;

	CHECK(cudaMallocAsync(&first, 123456, stream));
	count_alloc("async", address_of(first), 123456);
	CHECK(cudaMallocAsync(&leaked, 77777, stream));
	count_alloc("async", address_of(leaked), 77777);
	CHECK(cudaFreeAsync(first, stream));
	count_free("async", address_of(first));
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMallocFromPoolAsync(&pooled, 55555, pool, stream));
	count_alloc("async", address_of(pooled), 55555);
	CHECK(cudaFree(pooled)); /* allowed, though made by an async call */
	count_free("async", address_of(pooled));
}

static void managed_memory(void)
{
	int *x;

	CHECK(cudaMallocManaged(&x, 1 << 20));
	count_alloc("managed", address_of(x), 1 << 20);
	CHECK(cudaFree(x));
	count_free("managed", address_of(x));
	CHECK(cudaMallocManaged(&x, 4096));
	count_alloc("managed", address_of(x), 4096);
}

static void host_memory(void)
{
	void *x, *mine = aligned_alloc(4096, 8192);

	CHECK(cudaMallocHost(&x, 65536));
	count_alloc("host", address_of(x), 65536);
	CHECK(cudaFreeHost(x));
	count_free("host", address_of(x));
	CHECK(cudaHostAlloc(&x, 4096, cudaHostAllocMapped));
	count_alloc("host", address_of(x), 4096);
	CHECK(cudaHostRegister(mine, 8192, cudaHostRegisterDefault));
	count_alloc("host", address_of(mine), 8192);
	CHECK(cudaHostUnregister(mine));
	count_free("host", address_of(mine));
}

static void arrays(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
	cudaArray_t array;

	CHECK(cudaMallocArray(&array, &format, 64, 32));
	count_alloc("array", address_of(array), 16 * 64 * 32);
	CHECK(cudaFreeArray(array));
	count_free("array", address_of(array));
	CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(8, 8, 8)));
	count_alloc("array", address_of(array), 16 * 8 * 8 * 8);
}

int main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	device_memory();
	stream_ordered_memory(stream);
	managed_memory();
	host_memory();
	arrays();
	CHECK(cudaDeviceSynchronize());
	return 0;
}
