// SPDX-License-Identifier: MIT
/* copies: every direction and shape of copy, of both layers; what comes back is compared. */
#include <string.h>

#include "gpu.h"

#define BYTES  ((size_t)64 << 10)
#define PITCH  ((size_t)512)
#define WIDTH  ((size_t)300)
#define HEIGHT ((size_t)20)
#define DEPTH  ((size_t)3)

static char text[BYTES], back[BYTES];

/* A copy and its bytes. */
#define COPY(direction, bytes, function, ...)                                                      \
	do {                                                                                       \
		MUST(function, __VA_ARGS__);                                                       \
		count_bytes(#function, direction, bytes);                                          \
	} while (0)

static void same(const char *what)
{
	if (memcmp(text, back, BYTES) != 0)
		sample_die("%s: other bytes came back", what);
	memset(back, 0, BYTES);
}

static void driver_plain(CUdeviceptr a, CUdeviceptr b, CUcontext ctx, CUstream stream)
{
	COPY("h2d", BYTES, cuMemcpyHtoD_v2, a, text, BYTES);
	COPY("d2d", BYTES, cuMemcpyDtoD_v2, b, a, BYTES);
	COPY("d2h", BYTES, cuMemcpyDtoH_v2, back, b, BYTES);
	same("driver, plain");
	COPY("h2d", BYTES, cuMemcpyHtoDAsync_v2, b, text, BYTES, stream);
	COPY("d2d", BYTES, cuMemcpyDtoDAsync_v2, a, b, BYTES, stream);
	COPY("d2h", BYTES, cuMemcpyDtoHAsync_v2, back, a, BYTES, stream);
	MUST(cuStreamSynchronize, stream);
	same("driver, async");
	COPY("default", BYTES, cuMemcpy, a, (CUdeviceptr)text, BYTES);
	COPY("p2p", BYTES, cuMemcpyPeer, b, ctx, a, ctx, BYTES);
	COPY("default", BYTES, cuMemcpyAsync, (CUdeviceptr)back, b, BYTES, stream);
	MUST(cuStreamSynchronize, stream);
	same("driver, inferred");
	/* The variants for the thread's own default stream. */
	COPY("h2d", BYTES, cuMemcpyHtoD_v2_ptds, a, text, BYTES);
	COPY("d2h", BYTES, cuMemcpyDtoHAsync_v2_ptsz, back, a, BYTES, NULL);
	MUST(cuStreamSynchronize_ptsz, NULL);
	same("driver, per thread");
}

static void driver_shaped(CUdeviceptr device, CUstream stream)
{
	CUDA_MEMCPY2D in = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			     .srcHost = text,
			     .srcPitch = WIDTH,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = device,
			     .dstPitch = PITCH,
			     .WidthInBytes = WIDTH,
			     .Height = HEIGHT };
	CUDA_MEMCPY3D out = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = device,
			      .srcPitch = PITCH,
			      .srcHeight = HEIGHT,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = back,
			      .dstPitch = WIDTH,
			      .dstHeight = HEIGHT,
			      .WidthInBytes = WIDTH,
			      .Height = HEIGHT,
			      .Depth = 1 };
	COPY("h2d", WIDTH * HEIGHT, cuMemcpy2D_v2, &in);
	COPY("h2d", WIDTH * HEIGHT, cuMemcpy2DAsync_v2, &in, stream);
	MUST(cuStreamSynchronize, stream);
	COPY("d2h", WIDTH * HEIGHT, cuMemcpy3D_v2, &out);
	COPY("d2h", WIDTH * HEIGHT, cuMemcpy3DAsync_v2, &out, stream);
	MUST(cuStreamSynchronize, stream);
	if (memcmp(text, back, WIDTH * HEIGHT) != 0)
		sample_die("driver, shaped: other bytes came back");
	memset(back, 0, BYTES);
}

static void runtime_plain(char *a, char *b, cudaStream_t stream)
{
	COPY("h2d", BYTES, cudaMemcpy, a, text, BYTES, cudaMemcpyHostToDevice);
	COPY("d2d", BYTES, cudaMemcpy, b, a, BYTES, cudaMemcpyDeviceToDevice);
	COPY("d2h", BYTES, cudaMemcpy, back, b, BYTES, cudaMemcpyDeviceToHost);
	same("runtime, plain");
	COPY("h2h", BYTES, cudaMemcpy, back, text, BYTES, cudaMemcpyHostToHost);
	same("runtime, host to host");
	COPY("h2d", BYTES, cudaMemcpyAsync, b, text, BYTES, cudaMemcpyHostToDevice, stream);
	COPY("d2d", BYTES, cudaMemcpyAsync, a, b, BYTES, cudaMemcpyDeviceToDevice, stream);
	COPY("d2h", BYTES, cudaMemcpyAsync, back, a, BYTES, cudaMemcpyDeviceToHost, stream);
	MUST(cudaStreamSynchronize, stream);
	same("runtime, async");
	COPY("default", BYTES, cudaMemcpy, a, text, BYTES, cudaMemcpyDefault);
	COPY("p2p", BYTES, cudaMemcpyPeer, b, 0, a, 0, BYTES);
	COPY("default", BYTES, cudaMemcpyAsync, back, b, BYTES, cudaMemcpyDefault, stream);
	MUST(cudaStreamSynchronize, stream);
	same("runtime, inferred");
	COPY("h2d", BYTES, cudaMemcpy_ptds, a, text, BYTES, cudaMemcpyHostToDevice);
	COPY("d2h", BYTES, cudaMemcpyAsync_ptsz, back, a, BYTES, cudaMemcpyDeviceToHost, NULL);
	MUST(cudaStreamSynchronize_ptsz, NULL);
	same("runtime, per thread");
}

static void runtime_shaped(char *device, cudaStream_t stream)
{
	struct cudaExtent extent = { WIDTH, HEIGHT, DEPTH };
	struct cudaMemcpy3DParms in = { .srcPtr = { text, WIDTH, WIDTH, HEIGHT },
					.dstPtr = { device, PITCH, PITCH, HEIGHT },
					.extent = extent,
					.kind = cudaMemcpyHostToDevice };
	COPY("h2d", WIDTH * HEIGHT, cudaMemcpy2D, device, PITCH, text, WIDTH, WIDTH, HEIGHT,
	     cudaMemcpyHostToDevice);
	COPY("d2h", WIDTH * HEIGHT, cudaMemcpy2DAsync, back, WIDTH, device, PITCH, WIDTH, HEIGHT,
	     cudaMemcpyDeviceToHost, stream);
	MUST(cudaStreamSynchronize, stream);
	if (memcmp(text, back, WIDTH * HEIGHT) != 0)
		sample_die("runtime, 2D: other bytes came back");
	COPY("h2d", WIDTH * HEIGHT * DEPTH, cudaMemcpy3D, &in);
	COPY("h2d", WIDTH * HEIGHT * DEPTH, cudaMemcpy3DAsync, &in, stream);
	MUST(cudaStreamSynchronize, stream);
	COPY("d2h", WIDTH * HEIGHT * DEPTH, cudaMemcpy2D, back, WIDTH, device, PITCH, WIDTH,
	     HEIGHT * DEPTH, cudaMemcpyDeviceToHost);
	if (memcmp(text, back, WIDTH * HEIGHT * DEPTH) != 0)
		sample_die("runtime, 3D: other bytes came back");
}

static void runtime_array(void)
{
	struct cudaChannelFormatDesc bytes = { 8, 0, 0, 0, cudaChannelFormatKindUnsigned };
	cudaArray_t array;
	MUST(cudaMallocArray, &array, &bytes, WIDTH, HEIGHT, 0);
	COPY("h2d", WIDTH * HEIGHT, cudaMemcpy2DToArray, array, 0, 0, text, WIDTH, WIDTH, HEIGHT,
	     cudaMemcpyHostToDevice);
	COPY("d2h", WIDTH * HEIGHT, cudaMemcpy2DFromArray, back, WIDTH, array, 0, 0, WIDTH, HEIGHT,
	     cudaMemcpyDeviceToHost);
	MUST(cudaFreeArray, array);
	if (memcmp(text, back, WIDTH * HEIGHT) != 0)
		sample_die("runtime, array: other bytes came back");
}

int main(void)
{
	struct gpu gpu;
	CUstream stream;
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (char)(i * 7);
	gpu_open(&gpu);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CUdeviceptr a = gpu_alloc(BYTES), b = gpu_alloc(BYTES);
	driver_plain(a, b, gpu.ctx, stream);
	driver_shaped(a, stream);
	runtime_plain((char *)a, (char *)b, stream);
	runtime_shaped((char *)a, stream);
	runtime_array();
	gpu_free(a);
	gpu_free(b);
	MUST(cuStreamDestroy_v2, stream);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
