// SPDX-License-Identifier: MIT
#include "work.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "simcuda/driver_api.h"
#include "simcuda/runtime_api.h"

#define MOST 65536

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry " WORK_KERNEL "(.param .u64 a) { ret; }\n";

static void *driver, *runtime;
static CUcontext context;
static CUfunction kernel;
static CUdeviceptr device;
static CUgraphExec graph;
static char host[MOST];

#define CU(function)      ((__typeof__(&function))dlsym(driver, #function))
#define RT(function)      ((__typeof__(&function))dlsym(runtime, #function))
#define OK(function, ...) assert_int_equal(CU(function)(__VA_ARGS__), CUDA_SUCCESS)

void work_begin(void)
{
	CUmodule module;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	assert_non_null(driver);
	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &context, 0);
	OK(cuCtxSetCurrent, context);
	OK(cuModuleLoadData, &module, ptx);
	OK(cuModuleGetFunction, &kernel, module, WORK_KERNEL);
	OK(cuMemAlloc_v2, &device, MOST);
}

void work_runtime(void)
{
	if (!runtime)
		runtime = dlopen("libcudart.so.13", RTLD_NOW);
	assert_non_null(runtime);
}

void work_thread(void)
{
	OK(cuCtxSetCurrent, context);
}

static void launch(CUstream stream, uint32_t grid)
{
	int n = 1;
	void *parameters[] = { &device, &device, &device, &n };

	OK(cuLaunchKernel, kernel, grid, 1, 1, 128, 1, 1, 0, stream, parameters, NULL);
}

void work_other_context(void)
{
	CUcontext other;
	CUmodule module;
	CUfunction function;
	int n = 0; /* it leaves alone what the others work on */
	void *parameters[] = { &device, &device, &device, &n };

	OK(cuCtxCreate_v2, &other, 0, 0);
	OK(cuModuleLoadData, &module, ptx);
	OK(cuModuleGetFunction, &function, module, WORK_KERNEL);
	OK(cuLaunchKernel, function, 1, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL);
	OK(cuCtxSynchronize);
	OK(cuCtxDestroy_v2, other);
	OK(cuCtxSetCurrent, context);
}

void work_launch(uint32_t grid)
{
	launch(NULL, grid);
}

void work_launch_ex(uint32_t grid)
{
	int n = 1;
	void *parameters[] = { &device, &device, &device, &n };
	CUlaunchConfig config = { .gridDimX = grid,
		                  .gridDimY = 1,
		                  .gridDimZ = 1,
		                  .blockDimX = 64,
		                  .blockDimY = 1,
		                  .blockDimZ = 1 };

	OK(cuLaunchKernelEx, &config, kernel, parameters, NULL);
}

void work_copy(uint32_t bytes)
{
	OK(cuMemcpyHtoD_v2, device, host, bytes);
}

void work_set(uint32_t bytes)
{
	OK(cuMemsetD8Async, device, 7, bytes, NULL);
}

void work_runtime_copy(uint32_t bytes)
{
	assert_int_equal(
		RT(cudaMemcpy)((void *)(uintptr_t)device, host, bytes, cudaMemcpyHostToDevice),
		cudaSuccess);
}

void work_graph(int launches)
{
	CUstream stream;
	CUgraph captured;

	OK(cuStreamCreate, &stream, 1);
	if (!graph) {
		OK(cuStreamBeginCapture_v2, stream, 0);
		launch(stream, 3);
		launch(stream, 4);
		OK(cuStreamEndCapture, stream, &captured);
		OK(cuGraphInstantiateWithFlags, &graph, captured, 0);
	}
	for (int i = 0; i < launches; i++)
		OK(cuGraphLaunch, graph, stream);
	OK(cuStreamSynchronize, stream);
	OK(cuStreamDestroy_v2, stream);
}

void work_graph_once(void)
{
	OK(cuGraphLaunch, graph, NULL);
}

void work_sync(void)
{
	OK(cuCtxSynchronize);
}

void work_query(void)
{
	CUcontext current;

	OK(cuCtxGetCurrent, &current);
}
