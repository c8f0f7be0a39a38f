// SPDX-License-Identifier: MIT
/* copies [ROUNDS]: copies in all directions, so often, and in all shapes, and sets, on both layers.
 */
#include "sample.h"

#define ROOM 65536

static CUdeviceptr a, b;
static void *host;
static CUstream stream;

static void plain_copies(void)
{
	DRIVER(cuMemcpyHtoD_v2, a, host, 100);
	count_copies(1, "H2D", 100, "sync");
	DRIVER(cuMemcpyDtoH_v2, host, a, 200);
	count_copies(1, "D2H", 200, "sync");
	DRIVER(cuMemcpyDtoD_v2, b, a, 300);
	count_copies(1, "D2D", 300, "sync");
	DRIVER(cuMemcpy, b, a, 400);
	count_copies(1, "default", 400, "sync");
	DRIVER(cuMemcpyHtoDAsync_v2, a, host, 500, stream);
	count_copies(1, "H2D", 500, "async");
	DRIVER(cuMemcpyDtoHAsync_v2, host, a, 600, stream);
	count_copies(1, "D2H", 600, "async");
	DRIVER(cuMemcpyDtoDAsync_v2, b, a, 700, stream);
	count_copies(1, "D2D", 700, "async");
	DRIVER(cuMemcpyAsync, b, a, 800, stream);
	count_copies(1, "default", 800, "async");
	/* the variants for the per-thread default stream */
	DRIVER(cuMemcpyHtoD_v2_ptds, a, host, 900);
	count_copies(1, "H2D", 900, "sync");
	DRIVER(cuMemcpyDtoHAsync_v2_ptsz, host, a, 1000, stream);
	count_copies(1, "D2H", 1000, "async");
}

static void shaped_copies(void)
{
	CUDA_MEMCPY2D plane = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		                .srcHost = host,
		                .srcPitch = 128,
		                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
		                .dstDevice = a,
		                .dstPitch = 256,
		                .WidthInBytes = 100,
		                .Height = 7 };
	CUDA_MEMCPY3D volume = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		                 .srcDevice = a,
		                 .srcPitch = 64,
		                 .srcHeight = 4,
		                 .dstMemoryType = CU_MEMORYTYPE_HOST,
		                 .dstHost = host,
		                 .dstPitch = 64,
		                 .dstHeight = 4,
		                 .WidthInBytes = 50,
		                 .Height = 4,
		                 .Depth = 3 };

	DRIVER(cuMemcpy2D_v2, &plane);
	count_copies(1, "H2D", 700, "sync");
	DRIVER(cuMemcpy2DAsync_v2, &plane, stream);
	count_copies(1, "H2D", 700, "async");
	DRIVER(cuMemcpy3D_v2, &volume);
	count_copies(1, "D2H", 600, "sync");
	DRIVER(cuMemcpy3DAsync_v2, &volume, stream);
	count_copies(1, "D2H", 600, "async");
}

static void driver_sets(void)
{
	DRIVER(cuMemsetD8_v2, a, 1, 101);
	count_sets(1, 101);
	DRIVER(cuMemsetD16_v2, a, 1, 101);
	count_sets(1, 202);
	DRIVER(cuMemsetD32_v2, a, 1, 101);
	count_sets(1, 404);
	DRIVER(cuMemsetD2D32_v2, a, 256, 1, 10, 5);
	count_sets(1, 200);
	DRIVER(cuMemsetD8Async, a, 1, 55, stream);
	count_sets(1, 55);
	DRIVER(cuMemsetD32Async, a, 1, 55, stream);
	count_sets(1, 220);
}

static void runtime_copies(void)
{
	void *memory = (void *)a;

	RUNTIME(cudaMemcpy, memory, host, 1100, cudaMemcpyHostToDevice);
	count_copies(1, "H2D", 1100, "sync");
	RUNTIME(cudaMemcpy, host, memory, 1200, cudaMemcpyDeviceToHost);
	count_copies(1, "D2H", 1200, "sync");
	RUNTIME(cudaMemcpy, (void *)b, memory, 1300, cudaMemcpyDeviceToDevice);
	count_copies(1, "D2D", 1300, "sync");
	RUNTIME(cudaMemcpy, host, (char *)host + 4096, 1400, cudaMemcpyHostToHost);
	count_copies(1, "H2H", 1400, "sync");
	RUNTIME(cudaMemcpy, memory, host, 1500, cudaMemcpyDefault);
	count_copies(1, "default", 1500, "sync");
	RUNTIME(cudaMemcpyAsync, memory, host, 1600, cudaMemcpyHostToDevice, stream);
	count_copies(1, "H2D", 1600, "async");
	RUNTIME(cudaMemcpy2D, memory, 256, host, 128, 100, 9, cudaMemcpyHostToDevice);
	count_copies(1, "H2D", 900, "sync");
	RUNTIME(cudaMemset, memory, 0, 1700);
	count_sets(1, 1700);
	RUNTIME(cudaMemset2D, memory, 256, 0, 100, 3);
	count_sets(1, 300);
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 1);

	sample_context();
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	DRIVER(cuMemAlloc_v2, &a, ROOM);
	count_alloc("device", ROOM);
	DRIVER(cuMemAlloc_v2, &b, ROOM);
	count_alloc("device", ROOM);
	DRIVER(cuMemAllocHost_v2, &host, ROOM);
	count_alloc("host", ROOM);
	for (long i = 0; i < rounds; i++)
		plain_copies();
	shaped_copies();
	driver_sets();
	runtime = sample_open("libcudart.so.13");
	runtime_copies();
	DRIVER(cuStreamSynchronize, stream);
	return sample_end();
}
