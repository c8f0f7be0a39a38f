// SPDX-License-Identifier: MIT
/*
 * c[i] = a[i] + b[i] on a GPU, by the CUDA driver API alone: a program to trace.
 *
 * It needs no CUDA toolkit. It loads libcuda.so.1 itself, which a GPU's driver installs, and brings
 * its kernel along as PTX, which the driver compiles for the GPU at hand. Where there is no GPU it
 * runs on the simulated driver of tests/simcuda: LD_LIBRARY_PATH chooses.
 *
 *     vectoradd [LAUNCHES]
 *
 * Exit status: 0 when the result is right, 1 when a call failed or the result is wrong, 2 when
 * there is no driver or no GPU.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ELEMENTS 50000
#define BLOCK    256
#define GRID     ((ELEMENTS + BLOCK - 1) / BLOCK) /* 196 */
#define KERNEL   "_Z9vectorAddPKfS0_Pfi" /* vectorAdd(float const*, float const*, float*, int) */

static const char ptx[] = ".version 6.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry " KERNEL "(\n"
			  "	.param .u64 a,\n"
			  "	.param .u64 b,\n"
			  "	.param .u64 c,\n"
			  "	.param .u32 n\n"
			  ")\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .f32 %f<4>;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .b64 %d<8>;\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.s32 %r4, %r1, %r2, %r3;\n"
			  "	ld.param.u32 %r5, [n];\n"
			  "	setp.ge.s32 %p, %r4, %r5;\n"
			  "	@%p bra done;\n"
			  "	ld.param.u64 %d1, [a];\n"
			  "	ld.param.u64 %d2, [b];\n"
			  "	ld.param.u64 %d3, [c];\n"
			  "	mul.wide.s32 %d4, %r4, 4;\n"
			  "	add.s64 %d5, %d1, %d4;\n"
			  "	add.s64 %d6, %d2, %d4;\n"
			  "	add.s64 %d7, %d3, %d4;\n"
			  "	ld.global.f32 %f1, [%d5];\n"
			  "	ld.global.f32 %f2, [%d6];\n"
			  "	add.f32 %f3, %f1, %f2;\n"
			  "	st.global.f32 [%d7], %f3;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n";

/* The part of the driver API that is used here. */
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

static struct {
	CUresult (*cuInit)(unsigned int flags);
	CUresult (*cuGetErrorName)(CUresult error, const char **name);
	CUresult (*cuGetErrorString)(CUresult error, const char **text);
	CUresult (*cuDriverGetVersion)(int *version);
	CUresult (*cuDeviceGetCount)(int *count);
	CUresult (*cuDeviceGet)(CUdevice *device, int ordinal);
	CUresult (*cuDeviceGetName)(char *name, int len, CUdevice device);
	CUresult (*cuCtxCreate_v2)(CUcontext *ctx, unsigned int flags, CUdevice device);
	CUresult (*cuCtxDestroy_v2)(CUcontext ctx);
	CUresult (*cuModuleLoadData)(CUmodule *module, const void *image);
	CUresult (*cuModuleGetFunction)(CUfunction *function, CUmodule module, const char *name);
	CUresult (*cuModuleUnload)(CUmodule module);
	CUresult (*cuStreamCreate)(CUstream *stream, unsigned int flags);
	CUresult (*cuStreamSynchronize)(CUstream stream);
	CUresult (*cuStreamDestroy_v2)(CUstream stream);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *address, size_t bytes);
	CUresult (*cuMemFree_v2)(CUdeviceptr address);
	CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr dst, const void *src, size_t bytes);
	CUresult (*cuMemcpyDtoH_v2)(void *dst, CUdeviceptr src, size_t bytes);
	CUresult (*cuLaunchKernel)(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	                           unsigned int block_z, unsigned int shared_bytes, CUstream stream,
	                           void **params, void **extra);
} cu;

static const struct {
	const char *name;
	void *to;
} functions[] = {
#define FUNCTION(name)                                                                             \
	{                                                                                          \
#name, &cu.name                                                                    \
	}
	FUNCTION(cuInit),
	FUNCTION(cuGetErrorName),
	FUNCTION(cuGetErrorString),
	FUNCTION(cuDriverGetVersion),
	FUNCTION(cuDeviceGetCount),
	FUNCTION(cuDeviceGet),
	FUNCTION(cuDeviceGetName),
	FUNCTION(cuCtxCreate_v2),
	FUNCTION(cuCtxDestroy_v2),
	FUNCTION(cuModuleLoadData),
	FUNCTION(cuModuleGetFunction),
	FUNCTION(cuModuleUnload),
	FUNCTION(cuStreamCreate),
	FUNCTION(cuStreamSynchronize),
	FUNCTION(cuStreamDestroy_v2),
	FUNCTION(cuMemAlloc_v2),
	FUNCTION(cuMemFree_v2),
	FUNCTION(cuMemcpyHtoD_v2),
	FUNCTION(cuMemcpyDtoH_v2),
	FUNCTION(cuLaunchKernel),
#undef FUNCTION
};

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char *fmt, ...)
{
	va_list args;
	fputs("vectoradd: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static void check(CUresult result, const char *call)
{
	const char *name = NULL, *text = NULL;
	if (result == 0)
		return;
	cu.cuGetErrorName(result, &name);
	cu.cuGetErrorString(result, &text);
	fail(1, "%s failed: %s (%d), %s", call, name ? name : "unknown error", result,
	     text ? text : "no description");
}

#define CALL(function, ...) check(cu.function(__VA_ARGS__), #function)

static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		fail(2,
		     "no CUDA driver: %s\n"
		     "Install the driver of your NVIDIA GPU, or build the simulated one with "
		     "`make simcuda` and set LD_LIBRARY_PATH=build/simcuda/push",
		     dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);
		if (!function)
			fail(2, "this libcuda.so.1 has no %s: it is too old", functions[i].name);
		*(void **)functions[i].to = function;
	}
}

static CUdevice find_device(void)
{
	int count = 0, version = 0;
	CUdevice device;
	char name[128];
	CUresult result = cu.cuInit(0);
	if (result == 100) /* CUDA_ERROR_NO_DEVICE */
		fail(2, "no GPU: the CUDA driver is there and sees no device");
	check(result, "cuInit");
	CALL(cuDeviceGetCount, &count);
	if (count == 0)
		fail(2, "no GPU: the CUDA driver is there and sees no device");
	CALL(cuDriverGetVersion, &version);
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDeviceGetName, name, sizeof(name), device);
	printf("device: %s, CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);
	return device;
}

/* The work itself, in a context that exists. */
static void add_vectors(CUfunction kernel, CUstream stream, int launches, const float *a,
                        const float *b, float *c)
{
	const size_t bytes = ELEMENTS * sizeof(float);
	CUdeviceptr device_a, device_b, device_c;
	int n = ELEMENTS;
	CALL(cuMemAlloc_v2, &device_a, bytes);
	CALL(cuMemAlloc_v2, &device_b, bytes);
	CALL(cuMemAlloc_v2, &device_c, bytes);
	printf("allocated: 3 buffers of %zu bytes\n", bytes);

	CALL(cuMemcpyHtoD_v2, device_a, a, bytes);
	CALL(cuMemcpyHtoD_v2, device_b, b, bytes);
	printf("copied to the device: 2 x %zu bytes\n", bytes);

	void *params[] = { &device_a, &device_b, &device_c, &n };
	for (int i = 0; i < launches; i++)
		CALL(cuLaunchKernel, kernel, GRID, 1, 1, BLOCK, 1, 1, 0, stream, params, NULL);
	CALL(cuStreamSynchronize, stream);
	printf("launched: %d x vectorAdd, grid (%d,1,1), block (%d,1,1)\n", launches, GRID, BLOCK);

	CALL(cuMemcpyDtoH_v2, c, device_c, bytes);
	printf("copied from the device: %zu bytes\n", bytes);

	CALL(cuMemFree_v2, device_a);
	CALL(cuMemFree_v2, device_b);
	CALL(cuMemFree_v2, device_c);
	puts("freed: 3 buffers");
}

static void compute(CUdevice device, int launches, const float *a, const float *b, float *c)
{
	CUcontext ctx;
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	CALL(cuCtxCreate_v2, &ctx, 0, device);
	CALL(cuModuleLoadData, &module, ptx);
	CALL(cuModuleGetFunction, &kernel, module, KERNEL);
	CALL(cuStreamCreate, &stream, 0);
	add_vectors(kernel, stream, launches, a, b, c);
	CALL(cuStreamDestroy_v2, stream);
	CALL(cuModuleUnload, module);
	CALL(cuCtxDestroy_v2, ctx);
}

int main(int argc, char **argv)
{
	static float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];
	int launches = argc > 1 ? atoi(argv[1]) : 5;
	if (launches < 1)
		fail(1, "usage: vectoradd [LAUNCHES], of which there must be one at least");
	for (int i = 0; i < ELEMENTS; i++) {
		a[i] = (float)i;
		b[i] = 2.0f * (float)i;
	}
	load_driver();
	compute(find_device(), launches, a, b, c);
	for (int i = 0; i < ELEMENTS; i++) {
		if (c[i] != 3.0f * (float)i)
			fail(1, "wrong result: c[%d] is %g, not %g", i, (double)c[i],
			     3.0 * (double)i);
	}
	printf("result: correct, %d elements\n", ELEMENTS);
	return 0;
}
