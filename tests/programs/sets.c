// SPDX-License-Identifier: MIT
/* sets: every way of filling memory, of both layers. */
#include <string.h>

#include "gpu.h"

#define BYTES  ((size_t)16 << 10)
#define PITCH  ((size_t)512)
#define WIDTH  ((size_t)40)
#define HEIGHT ((size_t)8)

static CUdeviceptr device;

#define SET(bytes, function, ...)                                                                  \
	do {                                                                                       \
		MUST(function, __VA_ARGS__);                                                       \
		count_bytes(#function, "set", bytes);                                              \
	} while (0)

/* Whether byte `at` is `wanted` now. */
static void expect(size_t at, unsigned char wanted, const char *what)
{
	unsigned char byte;
	gpu_from_device(&byte, device + at, 1);
	if (byte != wanted)
		sample_die("%s: %d instead of %d", what, byte, wanted);
}

static void driver_sets(CUstream stream)
{
	SET(BYTES, cuMemsetD8_v2, device, 1, BYTES);
	expect(BYTES - 1, 1, "D8");
	SET(BYTES, cuMemsetD16_v2, device, 0x0302, BYTES / 2);
	expect(BYTES - 1, 3, "D16");
	SET(BYTES, cuMemsetD32_v2, device, 0x07060504, BYTES / 4);
	expect(BYTES - 1, 7, "D32");
	SET(BYTES, cuMemsetD8Async, device, 8, BYTES, stream);
	SET(BYTES, cuMemsetD16Async, device, 0x0a09, BYTES / 2, stream);
	SET(BYTES, cuMemsetD32Async, device, 0x0e0d0c0b, BYTES / 4, stream);
	MUST(cuStreamSynchronize, stream);
	expect(BYTES - 1, 14, "D32 async");
	SET(WIDTH * HEIGHT, cuMemsetD2D8_v2, device, PITCH, 15, WIDTH, HEIGHT);
	expect(PITCH * (HEIGHT - 1) + WIDTH - 1, 15, "D2D8");
	expect(PITCH * (HEIGHT - 1) + WIDTH, 11, "beside D2D8");
	SET(WIDTH * HEIGHT * 2, cuMemsetD2D16_v2, device, PITCH, 0x1110, WIDTH, HEIGHT);
	SET(WIDTH * HEIGHT * 4, cuMemsetD2D32_v2, device, PITCH, 0x15141312, WIDTH, HEIGHT);
	expect(3, 0x15, "D2D32");
	SET(WIDTH * HEIGHT, cuMemsetD2D8Async, device, PITCH, 22, WIDTH, HEIGHT, stream);
	SET(WIDTH * HEIGHT * 2, cuMemsetD2D16Async, device, PITCH, 0x1817, WIDTH, HEIGHT, stream);
	SET(WIDTH * HEIGHT * 4, cuMemsetD2D32Async, device, PITCH, 0x1c1b1a19, WIDTH, HEIGHT,
	    stream);
	MUST(cuStreamSynchronize, stream);
	expect(0, 0x19, "D2D32 async");
	SET(BYTES, cuMemsetD8_v2_ptds, device, 29, BYTES);
	expect(0, 29, "D8 per thread");
}

static void runtime_sets(cudaStream_t stream)
{
	void *address = (void *)device;
	struct cudaPitchedPtr pitched = { address, PITCH, PITCH, HEIGHT };
	struct cudaExtent extent = { WIDTH, HEIGHT, 2 };
	SET(BYTES, cudaMemset, address, 30, BYTES);
	expect(BYTES - 1, 30, "cudaMemset");
	SET(BYTES, cudaMemsetAsync, address, 31, BYTES, stream);
	MUST(cudaStreamSynchronize, stream);
	expect(BYTES - 1, 31, "cudaMemsetAsync");
	SET(WIDTH * HEIGHT, cudaMemset2D, address, PITCH, 32, WIDTH, HEIGHT);
	SET(WIDTH * HEIGHT, cudaMemset2DAsync, address, PITCH, 33, WIDTH, HEIGHT, stream);
	MUST(cudaStreamSynchronize, stream);
	expect(WIDTH - 1, 33, "cudaMemset2DAsync");
	SET(WIDTH * HEIGHT * 2, cudaMemset3D, pitched, 34, extent);
	SET(WIDTH * HEIGHT * 2, cudaMemset3DAsync, pitched, 35, extent, stream);
	MUST(cudaStreamSynchronize, stream);
	expect(PITCH * HEIGHT, 35, "cudaMemset3DAsync");
}

int main(void)
{
	struct gpu gpu;
	CUstream stream;
	gpu_open(&gpu);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	device = gpu_alloc(BYTES);
	driver_sets(stream);
	runtime_sets(stream);
	gpu_free(device);
	MUST(cuStreamDestroy_v2, stream);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
