// SPDX-License-Identifier: MIT
/*
 * The driver API alone: a module and a library from PTX, launches, copies, memory, errors. With an
 * argument no call fails: a trace without results cannot tell those that do.
 */
#include <string.h>

#include <cuda.h>

#include "counts.h"

/* A call that must succeed; ends the program where it does not. */
#define CHECK(call)                                                                                \
	do {                                                                                       \
		CUresult check_result = (call);                                                    \
		if (check_result != CUDA_SUCCESS) {                                                \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call,              \
			        check_result);                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static bool may_fail;

/* A call that must fail. */
#define FAILS(function, ...)                                                                       \
	do {                                                                                       \
		if (!may_fail)                                                                     \
			break;                                                                     \
		CUresult fails_result = function(__VA_ARGS__);                                     \
		const char *fails_name = "";                                                       \
		cuGetErrorName(fails_result, &fails_name);                                         \
		if (fails_result == CUDA_SUCCESS) {                                                \
			fprintf(stderr, "%s:%d: %s succeeded\n", __FILE__, __LINE__, #function);   \
			exit(1);                                                                   \
		}                                                                                  \
		count_error(#function, fails_result, fails_name);                                  \
	} while (0)

#define BYTES (1 << 20)

/* One name as C has it, one as C++: add(float*, int) */
#define ADD "_Z3addPfi"

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry nothing(.param .u64 p, .param .u32 n) { ret; }\n"
			  ".visible .entry " ADD "(.param .u64 p, .param .u32 n) { ret; }\n";

static CUdeviceptr x, y;
static void *pinned;

static void launch_from_module(CUstream stream)
{
	int n = 1;
	void *args[] = { &x, &n };
	CUmodule module;
	CUfunction nothing, add, none; /* a driver writes NULL where it finds no kernel */

	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&nothing, module, "nothing"));
	CHECK(cuModuleGetFunction(&add, module, ADD));
	FAILS(cuModuleGetFunction, &none, module, "no_such_kernel");
	for (int i = 0; i < 500; i++)
		CHECK(cuLaunchKernel(nothing, 3, 2, 1, 64, 1, 2, 1024, stream, args, NULL));
	count_launches(500, "nothing", (struct shape){ { 3, 2, 1 }, { 64, 1, 2 }, 1024 }, stream,
	               false);
	CHECK(cuLaunchKernel(add, 9, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
	count_launches(1, "add(float*, int)", (struct shape){ { 9, 1, 1 }, { 256, 1, 1 }, 0 }, NULL,
	               false);
	CHECK(cuLaunchCooperativeKernel(add, 2, 1, 1, 32, 1, 1, 0, stream, args));
	count_launches(1, "add(float*, int)", (struct shape){ { 2, 1, 1 }, { 32, 1, 1 }, 0 },
	               stream, false);
	FAILS(cuLaunchKernel, nothing, 1, 1, 1, 4096, 1, 1, 0, stream, args, NULL);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuModuleUnload(module));
}

/* A CUkernel may be launched as it is, or by its function. */
static void launch_from_library(CUstream stream)
{
	int n = 1;
	void *args[] = { &x, &n };
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUlaunchConfig config = { .gridDimX = 5,
		                  .gridDimY = 6,
		                  .gridDimZ = 7,
		                  .blockDimX = 8,
		                  .blockDimY = 4,
		                  .blockDimZ = 2,
		                  .sharedMemBytes = 256,
		                  .hStream = stream };

	CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, ADD));
	CHECK(cuLaunchKernel((CUfunction)kernel, 1, 2, 3, 4, 5, 6, 0, stream, args, NULL));
	count_launches(1, "add(float*, int)", (struct shape){ { 1, 2, 3 }, { 4, 5, 6 }, 0 }, stream,
	               false);
	CHECK(cuKernelGetFunction(&function, kernel));
	for (int i = 0; i < 10; i++)
		CHECK(cuLaunchKernelEx(&config, function, args, NULL));
	count_launches(10, "add(float*, int)", (struct shape){ { 5, 6, 7 }, { 8, 4, 2 }, 256 },
	               stream, false);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuLibraryUnload(library));
}

static void copy(CUstream stream)
{
	char *host = calloc(1, BYTES);
	CUDA_MEMCPY2D plane = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		                .srcHost = host,
		                .srcPitch = 512,
		                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
		                .dstDevice = x,
		                .dstPitch = 1024,
		                .WidthInBytes = 300,
		                .Height = 11 };

	CHECK(cuMemcpyHtoD(x, host, 1111));
	count_copies(1, "H2D", 1111, false);
	CHECK(cuMemcpyHtoDAsync(x, pinned, BYTES, stream));
	count_copies(1, "H2D", BYTES, false);
	CHECK(cuMemcpyDtoH(host, x, 2222));
	count_copies(1, "D2H", 2222, false);
	CHECK(cuMemcpyDtoHAsync(pinned, x, 3333, stream));
	count_copies(1, "D2H", 3333, false);
	CHECK(cuMemcpyDtoD(y, x, 4444));
	count_copies(1, "D2D", 4444, false);
	CHECK(cuMemcpyDtoDAsync(y, x, 5555, stream));
	count_copies(1, "D2D", 5555, false);
	CHECK(cuMemcpy(y, x, 6666));
	count_copies(1, "default", 6666, false);
	CHECK(cuMemcpy2D(&plane));
	count_copies(1, "H2D", 300 * 11, false);
	CHECK(cuMemsetD8(x, 1, 1000));
	count_sets(1, 1000, false);
	CHECK(cuMemsetD32Async(x, 1, 1000, stream));
	count_sets(1, 4000, false);
	CHECK(cuStreamSynchronize(stream));
	free(host);
}

/* Physical memory, address space and mapping apart. */
static void map_memory(CUdevice device)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		                     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
		                                   .id = device } };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;
	size_t size;

	CHECK(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemCreate(&handle, size, &prop, 0));
	count_alloc("vmm", handle, size);
	CHECK(cuMemAddressReserve(&range, size, 0, 0, 0));
	CHECK(cuMemMap(range, size, 0, handle, 0));
	CHECK(cuMemUnmap(range, size));
	CHECK(cuMemAddressFree(range, size));
	CHECK(cuMemRelease(handle));
	count_free("vmm", handle);
	count_calls(1, "cuMemMap");
	count_calls(1, "cuMemUnmap");
}

static void allocate(CUstream stream)
{
	CUdeviceptr p;
	size_t pitch;
	void *host;

	CHECK(cuMemAllocPitch(&p, &pitch, 1000, 10, 4));
	count_alloc("device", p, pitch * 10);
	CHECK(cuMemFree(p));
	count_free("device", p);
	CHECK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL)); /* leaked */
	count_alloc("managed", p, 4096);
	CHECK(cuMemAllocAsync(&p, 33333, stream));
	count_alloc("async", p, 33333);
	CHECK(cuMemFreeAsync(p, stream));
	count_free("async", p);
	CHECK(cuMemAllocHost(&host, 4096)); /* leaked */
	count_alloc("host", (uintptr_t)host, 4096);
	FAILS(cuMemAlloc, &p, (size_t)1 << 60);
	FAILS(cuMemFree, 0x1230);
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdevice device;
	CUstream stream;

	(void)argv;
	may_fail = argc < 2;
	CHECK(cuInit(0));
	count_calls(1, "cuInit"); /* its first call into a library that may have come by dlopen */
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	count_calls(1, "cuDevicePrimaryCtxRetain");
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&x, BYTES));
	count_alloc("device", x, BYTES);
	CHECK(cuMemAlloc(&y, BYTES)); /* leaked */
	count_alloc("device", y, BYTES);
	CHECK(cuMemHostAlloc(&pinned, BYTES, 0));
	count_alloc("host", (uintptr_t)pinned, BYTES);

	launch_from_module(stream);
	launch_from_library(stream);
	copy(stream);
	allocate(stream);
	map_memory(device);

	CHECK(cuMemFreeHost(pinned));
	count_free("host", (uintptr_t)pinned);
	CHECK(cuMemFree(x));
	count_free("device", x);
	CHECK(cuStreamDestroy(stream));
	return 0;
}
