// SPDX-License-Identifier: MIT
/*
 * runtime13, runtime12, static: launches as programs do that nvcc built. The constructor registers
 * a fat binary and its kernels under their host stubs; <<<...>>> pushes a configuration and calls
 * the stub, which pops it and launches. With CUDA 13 the stub asks once for the kernel's handle and
 * calls
 * __cudaLaunchKernel, which jumps to cudaLaunchKernel; before, it called cudaLaunchKernel with the
 * stub's own address.
 *
 *     runtime13 [LAUNCHES]
 */
#include <stdlib.h>

#define SAMPLE_LINKED
#include "gpu.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13
#endif

#define ELEMENTS 4096

/* What nvcc puts into the executable around the code. */
static const struct {
	uint32_t magic, version;
	const void *data;
	const void *file;
} fatbin = { 0x466243b1, 1, sample_ptx, NULL };

static void **fatbin_handle;
static char table[1024];

/* The host stubs have the kernels' own mangled names, as symbols of this executable. */
void vector_add(const float *a, const float *b, float *c, int n) __asm__(KERNEL_ADD);
void nothing(void) __asm__(KERNEL_NOTHING);

__attribute__((constructor)) static void register_all(void)
{
	fatbin_handle = CALL_PLAIN(__cudaRegisterFatBinary, (void *)&fatbin);
	CALL_PLAIN(__cudaRegisterFunction, fatbin_handle, (const char *)vector_add,
		   (char *)KERNEL_ADD, KERNEL_ADD, -1, NULL, NULL, NULL, NULL, NULL);
	CALL_PLAIN(__cudaRegisterFunction, fatbin_handle, (const char *)nothing,
		   (char *)KERNEL_NOTHING, KERNEL_NOTHING, -1, NULL, NULL, NULL, NULL, NULL);
	CALL_PLAIN(__cudaRegisterVar, fatbin_handle, table, (char *)"table", "table", 0,
		   sizeof(table), 0, 0);
	CALL_PLAIN(__cudaRegisterFatBinaryEnd, fatbin_handle);
}

#if CUDART_MAJOR >= 13
#define LAUNCH(stub, args)                                                                         \
	static cudaKernel_t handle;                                                                \
	if (!handle)                                                                               \
		MUST(__cudaGetKernel, &handle, (const void *)stub);                                \
	MUST(__cudaPopCallConfiguration, &grid, &block, &shared_bytes, &stream);                   \
	MUST(__cudaLaunchKernel, handle, grid, block, args, shared_bytes, stream)
#else
#define LAUNCH(stub, args)                                                                         \
	MUST(__cudaPopCallConfiguration, &grid, &block, &shared_bytes, &stream);                   \
	MUST(cudaLaunchKernel, (const void *)stub, grid, block, args, shared_bytes, stream)
#endif

void vector_add(const float *a, const float *b, float *c, int n)
{
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
	void *args[] = { &a, &b, &c, &n };
	LAUNCH(vector_add, args);
	count(LAUNCHES, KERNEL_ADD, 1);
}

void nothing(void)
{
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
	void *args[] = { NULL };
	LAUNCH(nothing, args);
	count(LAUNCHES, KERNEL_NOTHING, 1);
}

/* stub<<<grid, block, shared_bytes, stream>>> without its arguments */
static void configure(unsigned int grid, unsigned int block, size_t shared_bytes,
		      cudaStream_t stream)
{
	dim3 wide = { grid, 1, 1 }, deep = { block, 1, 1 };
	if (CALL_PLAIN(__cudaPushCallConfiguration, wide, deep, shared_bytes, stream) != 0)
		sample_die("too many configurations");
}

static float *device_floats(void)
{
	void *address;
	MUST(cudaMalloc, &address, ELEMENTS * sizeof(float));
	count_alloc("cudaMalloc", "device", (uint64_t)address, ELEMENTS * sizeof(float));
	return address;
}

static void device_free(float *address)
{
	count_free((uint64_t)address);
	MUST(cudaFree, address);
}

static void add_vectors(int launches, cudaStream_t stream)
{
	static float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];
	const size_t bytes = sizeof(a);
	float *device_a = device_floats(), *device_b = device_floats(), *device_c = device_floats();
	for (int i = 0; i < ELEMENTS; i++) {
		a[i] = (float)i;
		b[i] = 1.0f;
	}
	MUST(cudaMemcpy, device_a, a, bytes, cudaMemcpyHostToDevice);
	MUST(cudaMemcpyAsync, device_b, b, bytes, cudaMemcpyHostToDevice, stream);
	count_bytes("cudaMemcpy", "h2d", bytes);
	count_bytes("cudaMemcpyAsync", "h2d", bytes);
	for (int i = 0; i < launches; i++) {
		configure(ELEMENTS / 256, 256, 0, stream);
		vector_add(device_a, device_b, device_c, ELEMENTS);
	}
	MUST(cudaStreamSynchronize, stream);
	MUST(cudaMemcpy, c, device_c, bytes, cudaMemcpyDeviceToHost);
	count_bytes("cudaMemcpy", "d2h", bytes);
	for (int i = 0; i < ELEMENTS; i++) {
		if (c[i] != (float)i + 1.0f)
			sample_die("wrong result at %d", i);
	}
	device_free(device_a);
	device_free(device_b);
	device_free(device_c);
}

/* The other ways to launch, with a handle or stub as each version has it. */
static void launch_otherwise(cudaStream_t stream)
{
	dim3 grid = { 5, 4, 3 }, block = { 8, 4, 2 };
	cudaLaunchConfig_t config = {
		.gridDim = grid, .blockDim = block, .dynamicSmemBytes = 512, .stream = stream
	};
	void *args[] = { NULL };
	MUST(cudaLaunchKernelExC, &config, (const void *)nothing, args);
	MUST(cudaLaunchCooperativeKernel, (const void *)nothing, grid, block, args, 0, stream);
	MUST(cudaLaunchKernel, (const void *)nothing, grid, block, args, 1024, stream);
	count(LAUNCHES, KERNEL_NOTHING, 3);
}

static void use_variable(void)
{
	char text[sizeof(table)] = "in a variable of the device", back[sizeof(table)];
	MUST(cudaMemcpyToSymbol, table, text, sizeof(text), 0, cudaMemcpyHostToDevice);
	MUST(cudaMemcpyFromSymbol, back, table, sizeof(back), 0, cudaMemcpyDeviceToHost);
	count_bytes("cudaMemcpyToSymbol", "h2d", sizeof(text));
	count_bytes("cudaMemcpyFromSymbol", "d2h", sizeof(back));
	for (size_t i = 0; i < sizeof(text); i++) {
		if (text[i] != back[i])
			sample_die("wrong variable");
	}
}

int main(int argc, char **argv)
{
	int launches = argc > 1 ? atoi(argv[1]) : 20;
	cudaStream_t stream;
	MUST(cudaSetDevice, 0);
	MUST(cudaStreamCreate, &stream);
	add_vectors(launches, stream);
	for (int i = 0; i < launches; i++) {
		configure(2, 64, 256, NULL);
		nothing();
	}
	launch_otherwise(stream);
	use_variable();
	MUST(cudaDeviceSynchronize);
	MUST(cudaStreamDestroy, stream);
	CALL_PLAIN(__cudaUnregisterFatBinary, fatbin_handle);
	sample_finish();
	return 0;
}
