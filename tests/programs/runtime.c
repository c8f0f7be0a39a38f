// SPDX-License-Identifier: MIT
/*
 * runtime12 [ROUNDS], runtime13, static: what nvcc makes of a program with kernel<<<grid, block>>>:
 * kernels registered before main, host stubs, and the launch path of CUDA 12 (the stub's address is
 * launched) or of CUDA 13 (a handle that stands for it is). Linked with libcudart.so.12, .13 and
 * libcudart_static.a.
 */
#include "sample.h"

#define BYTES    65536
#define LAUNCHES 5

/* The symbols that C++ gives to: __global__ void scale(float *, float, int); fill(int *); */
void _Z5scalePffi(float *p, float f, int n);
void _Z4fillPi(int *p);

static struct {
	unsigned magic, version;
	const void *data, *file;
} fatbin = { 0x466243b1, 1, "\x50\xed\x55\xba\x01\x00\x10\x00", NULL };

static void **fatbin_handle;

__attribute__((constructor)) static void register_kernels(void)
{
	fatbin_handle = LINKED(__cudaRegisterFatBinary, &fatbin);
	LINKED(__cudaRegisterFunction, fatbin_handle, (const char *)_Z5scalePffi,
	       (char *)"_Z5scalePffi", "_Z5scalePffi", -1, NULL, NULL, NULL, NULL, NULL);
	LINKED(__cudaRegisterFunction, fatbin_handle, (const char *)_Z4fillPi, (char *)"_Z4fillPi",
	       "_Z4fillPi", -1, NULL, NULL, NULL, NULL, NULL);
	LINKED(__cudaRegisterFatBinaryEnd, fatbin_handle);
}

__attribute__((destructor)) static void unregister_kernels(void)
{
	__cudaUnregisterFatBinary(fatbin_handle);
}

/* What the stubs end in: the configuration that <<<>>> pushed, and the launch. */
static void launch(const void *stub, void **args)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;

	LINKED(__cudaPopCallConfiguration, &grid, &block, &shared, &stream);
#if CUDART_MAJOR >= 13
	cudaKernel_t kernel;

	sample_check("__cudaGetKernel", LINKED(__cudaGetKernel, &kernel, stub), 0, NULL);
	sample_check("__cudaLaunchKernel",
	             LINKED(__cudaLaunchKernel, kernel, grid, block, args, shared, stream), 0,
	             NULL);
#else
	sample_check("cudaLaunchKernel",
	             LINKED(cudaLaunchKernel, stub, grid, block, args, shared, stream), 0, NULL);
#endif
}

void _Z5scalePffi(float *p, float f, int n)
{
	launch((const void *)_Z5scalePffi, (void *[]){ &p, &f, &n });
}

void _Z4fillPi(int *p)
{
	launch((const void *)_Z4fillPi, (void *[]){ &p });
}

/* scale<<<grid, block, shared, stream>>>(...) and fill<<<...>>>(...) */
static void launches(float *memory, cudaStream_t stream)
{
	struct shape wide = { { 65535, 3, 2 }, { 256, 2, 2 }, 512 },
		     narrow = { { 1, 1, 1 }, { 1, 1, 1 }, 0 };

	for (int i = 0; i < LAUNCHES; i++) {
		if (!__cudaPushCallConfiguration((dim3){ 65535, 3, 2 }, (dim3){ 256, 2, 2 }, 512,
		                                 stream))
			_Z5scalePffi(memory, 2.0f, 16);
	}
	count_launches("launches", LAUNCHES, "scale(float*, float, int)", wide, stream);
	if (!__cudaPushCallConfiguration((dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, 0, NULL))
		_Z4fillPi((int *)memory);
	count_launches("launches", 1, "fill(int*)", narrow, NULL);
}

#define OK(name, ...) sample_check(#name, LINKED(name, ##__VA_ARGS__), 0, NULL)

static void work(void *memory, cudaStream_t stream)
{
	static char host[BYTES];

	OK(cudaMemcpy, memory, host, BYTES, cudaMemcpyHostToDevice);
	count_copies(1, "H2D", BYTES, "sync");
	launches(memory, stream);
	OK(cudaMemcpyAsync, host, memory, BYTES, cudaMemcpyDeviceToHost, stream);
	count_copies(1, "D2H", BYTES, "async");
	OK(cudaStreamSynchronize, stream);
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 1);
	cudaStream_t stream;
	void *memory;

	OK(cudaSetDevice, 0);
	OK(cudaStreamCreate, &stream);
	OK(cudaMalloc, &memory, BYTES);
	count_alloc("device", BYTES);
	for (long i = 0; i < rounds; i++)
		work(memory, stream);
	OK(cudaFree, memory);
	count_free("device", BYTES);
	sample_check("cudaMalloc", LINKED(cudaMalloc, &memory, (size_t)1 << 60), 2,
	             "cudaErrorMemoryAllocation");
	OK(cudaDeviceSynchronize);
	count("calls", 1, "__cudaUnregisterFatBinary"); /* by the destructor */
	return sample_end();
}
