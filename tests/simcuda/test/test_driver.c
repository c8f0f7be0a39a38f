// SPDX-License-Identifier: MIT
/* The simulated driver where a tracer can tell: run with LD_LIBRARY_PATH at one of its shapes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../driver_api.h"

#define N 1000

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  "// .entry in_a_comment\n"
			  ".global .align 4 .b8 table[64];\n"
			  ".visible .entry _Z9vectorAddPKfS0_Pfi(.param .u64 a) { ret; }\n"
			  ".entry _Z5otherv() { ret; }\n";

static void *library;
static CUcontext ctx;
static CUmodule module;

/* A driver function by name, with its type. */
#define CU(function)               ((__typeof__(&function))dlsym(library, #function))
#define OK(function, ...)          assert_int_equal(CU(function)(__VA_ARGS__), CUDA_SUCCESS)
#define FAILS(code, function, ...) assert_int_equal(CU(function)(__VA_ARGS__), code)

static int open_driver(void **state)
{
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		return -1;
	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &ctx, 0);
	OK(cuCtxSetCurrent, ctx);
	OK(cuModuleLoadData, &module, ptx);
	return 0;
}

static CUfunction kernel(const char *name)
{
	CUfunction function;
	OK(cuModuleGetFunction, &function, module, name);
	return function;
}

static CUstream new_stream(unsigned int flags)
{
	CUstream stream;
	OK(cuStreamCreate, &stream, flags);
	return stream;
}

static const char *name_at_byte_8(const void *handle)
{
	return *(char *const *)((const char *)handle + 8);
}

/* Three vectors on the device, the third all zero. */
static void vectors(CUdeviceptr vector[3])
{
	float values[N];
	for (int i = 0; i < N; i++)
		values[i] = (float)i;
	for (int i = 0; i < 3; i++) {
		OK(cuMemAlloc_v2, &vector[i], sizeof(values));
		OK(cuMemcpyHtoD_v2, vector[i], values, sizeof(values));
	}
	OK(cuMemsetD32_v2, vector[2], 0, N);
}

static void free_vectors(CUdeviceptr vector[3])
{
	for (int i = 0; i < 3; i++)
		OK(cuMemFree_v2, vector[i]);
}

static void launch_add(CUdeviceptr *vector, int n, CUstream stream)
{
	void *params[] = { &vector[0], &vector[1], &vector[2], &n };
	OK(cuLaunchKernel, kernel("_Z9vectorAddPKfS0_Pfi"), 8, 1, 1, 128, 1, 1, 0, stream, params,
	   NULL);
}

static float element(CUdeviceptr vector, int i)
{
	float value;
	OK(cuMemcpyDtoH_v2, &value, vector + (CUdeviceptr)i * sizeof(value), sizeof(value));
	return value;
}

static void test_a_function_and_a_kernel_hold_their_name_at_byte_8(void **state)
{
	CUlibrary code;
	CUkernel handle;
	OK(cuLibraryLoadData, &code, ptx, NULL, NULL, 0, NULL, NULL, 0);
	OK(cuLibraryGetKernel, &handle, code, "_Z5otherv");
	assert_string_equal(name_at_byte_8(handle), "_Z5otherv");
	assert_string_equal(name_at_byte_8(kernel("_Z5otherv")), "_Z5otherv");
	OK(cuLibraryUnload, code);
}

static void test_kernels_are_read_from_ptx(void **state)
{
	CUlibrary code;
	CUfunction function;
	unsigned int count;
	size_t bytes;
	CUdeviceptr address;
	OK(cuLibraryLoadData, &code, ptx, NULL, NULL, 0, NULL, NULL, 0);
	OK(cuLibraryGetKernelCount, &count, code);
	assert_int_equal(count, 2);
	OK(cuLibraryUnload, code);
	FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction, &function, module, "in_a_comment");
	OK(cuModuleGetGlobal_v2, &address, &bytes, module, "table");
	assert_int_equal(bytes, 64);
	FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData, &(CUmodule){ NULL }, "no code");
}

static void test_handles_of_an_unloaded_module_are_used_again(void **state)
{
	CUmodule first, second;
	CUfunction before, after;
	OK(cuModuleLoadData, &first, ptx);
	OK(cuModuleGetFunction, &before, first, "_Z5otherv");
	OK(cuModuleUnload, first);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel, before, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
	      NULL);
	OK(cuModuleLoadData, &second, ptx);
	OK(cuModuleGetFunction, &after, second, "_Z9vectorAddPKfS0_Pfi");
	assert_ptr_equal(before, after);
	OK(cuModuleUnload, second);
}

static void test_vector_add_computes(void **state)
{
	CUdeviceptr vector[3];
	vectors(vector);
	launch_add(vector, N, NULL);
	OK(cuCtxSynchronize);
	assert_true(element(vector[2], 1) == 2);
	assert_true(element(vector[2], N - 1) == 2 * (N - 1));
	free_vectors(vector);
}

static void test_parameters_are_copied_by_the_launch(void **state)
{
	CUdeviceptr vector[3];
	vectors(vector);
	launch_add(vector, N, NULL); /* its parameters are gone when it runs */
	CUdeviceptr zero[3] = { 0 };
	memcpy(zero, vector, sizeof(zero));
	OK(cuCtxSynchronize);
	assert_true(element(zero[2], 2) == 4);
	free_vectors(zero);
}

static void test_work_runs_later_and_synchronising_waits(void **state)
{
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent start, end;
	float ms;
	OK(cuEventCreate, &start, 0);
	OK(cuEventCreate, &end, 0);
	OK(cuEventRecord, start, stream);
	for (int i = 0; i < 20; i++) /* 20 ms: see SIMCUDA_KERNEL_US in the test's script */
		OK(cuLaunchKernel, kernel("_Z5otherv"), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	OK(cuEventRecord, end, stream);
	FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery, stream);
	FAILS(CUDA_ERROR_NOT_READY, cuEventQuery, end);
	FAILS(CUDA_ERROR_NOT_READY, cuEventElapsedTime, &ms, start, end);
	OK(cuEventSynchronize, end);
	OK(cuStreamQuery, stream);
	OK(cuEventElapsedTime, &ms, start, end);
	assert_true(ms > 19.9F && ms < 25.0F);
	OK(cuEventDestroy_v2, start);
	OK(cuEventDestroy_v2, end);
	OK(cuStreamDestroy_v2, stream);
}

static void test_an_event_of_a_context_waits_for_all_its_streams(void **state)
{
	CUstream streams[2] = { new_stream(CU_STREAM_NON_BLOCKING),
		                new_stream(CU_STREAM_NON_BLOCKING) };
	CUevent event;
	CUgraph graph;
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	for (int i = 0; i < 20; i++)
		OK(cuLaunchKernel, kernel("_Z5otherv"), 1, 1, 1, 32, 1, 1, 0, streams[1], NULL,
		   NULL);
	OK(cuCtxRecordEvent, ctx, event);
	FAILS(CUDA_ERROR_NOT_READY, cuEventQuery, event);
	OK(cuStreamSynchronize, streams[0]);
	FAILS(CUDA_ERROR_NOT_READY, cuEventQuery, event);
	OK(cuEventSynchronize, event);
	OK(cuEventQuery, event);
	OK(cuStreamQuery, streams[1]);
	OK(cuStreamBeginCapture_v2, streams[0], CU_STREAM_CAPTURE_MODE_RELAXED);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent, ctx, event);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, streams[0], &graph);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent, ctx, (CUevent)0x1234);
	OK(cuEventDestroy_v2, event);
	OK(cuStreamDestroy_v2, streams[0]);
	OK(cuStreamDestroy_v2, streams[1]);
}

static void test_the_legacy_stream_waits_for_blocking_streams(void **state)
{
	CUdeviceptr vector[3];
	CUstream blocking = new_stream(CU_STREAM_DEFAULT);
	vectors(vector);
	launch_add(vector, N, blocking);
	assert_true(element(vector[2], 3) == 6); /* a copy on the default stream, no other wait */
	free_vectors(vector);
	OK(cuStreamDestroy_v2, blocking);
}

static void test_a_stream_waits_for_an_event_of_another(void **state)
{
	CUdeviceptr vector[3];
	CUstream first = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent event;
	float value = 0;
	vectors(vector);
	OK(cuEventCreate, &event, 0);
	launch_add(vector, N, first);
	OK(cuEventRecord, event, first);
	OK(cuStreamWaitEvent, second, event, 0);
	OK(cuMemcpyDtoHAsync_v2, &value, vector[2] + 4 * sizeof(float), sizeof(value), second);
	OK(cuStreamSynchronize, second);
	assert_true(value == 8);
	OK(cuEventDestroy_v2, event);
	OK(cuStreamDestroy_v2, first);
	OK(cuStreamDestroy_v2, second);
	free_vectors(vector);
}

static void test_a_captured_launch_does_not_run_and_its_graph_does(void **state)
{
	CUdeviceptr vector[3];
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph;
	CUgraphExec exec;
	CUstreamCaptureStatus status;
	vectors(vector);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	launch_add(vector, N, stream);
	OK(cuStreamIsCapturing, stream, &status);
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuStreamSynchronize, stream);
	assert_true(element(vector[2], 5) == 0);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphDestroy, graph);
	OK(cuGraphLaunch, exec, stream);
	OK(cuGraphExecDestroy, exec); /* while it runs */
	OK(cuStreamSynchronize, stream);
	assert_true(element(vector[2], 5) == 10);
	OK(cuStreamDestroy_v2, stream);
	free_vectors(vector);
}

static void test_a_capture_spreads_through_events(void **state)
{
	CUstream first = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent fork_event, join_event;
	CUgraph graph;
	CUstreamCaptureStatus status;
	size_t nodes;
	OK(cuEventCreate, &fork_event, 0);
	OK(cuEventCreate, &join_event, 0);
	OK(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuEventRecord, fork_event, first);
	OK(cuStreamWaitEvent, second, fork_event, 0);
	OK(cuStreamIsCapturing, second, &status);
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuLaunchKernel, kernel("_Z5otherv"), 1, 1, 1, 1, 1, 1, 0, second, NULL, NULL);
	OK(cuEventRecord, join_event, second);
	OK(cuStreamWaitEvent, first, join_event, 0);
	OK(cuStreamEndCapture, first, &graph);
	OK(cuGraphGetNodes, graph, NULL, &nodes);
	assert_int_equal(nodes, 1);
	OK(cuStreamIsCapturing, second, &status);
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphDestroy, graph);
	OK(cuEventDestroy_v2, fork_event);
	OK(cuEventDestroy_v2, join_event);
	OK(cuStreamDestroy_v2, first);
	OK(cuStreamDestroy_v2, second);
}

static void test_a_branch_that_does_not_come_back_fails_the_capture(void **state)
{
	CUstream first = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent event;
	CUgraph graph;
	OK(cuEventCreate, &event, 0);
	OK(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuEventRecord, event, first);
	OK(cuStreamWaitEvent, second, event, 0);
	OK(cuLaunchKernel, kernel("_Z5otherv"), 1, 1, 1, 1, 1, 1, 0, second, NULL, NULL);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture, first, &graph);
	OK(cuEventDestroy_v2, event);
	OK(cuStreamDestroy_v2, first);
	OK(cuStreamDestroy_v2, second);
}

static void test_waiting_for_a_capturing_stream_ends_the_capture(void **state)
{
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph;
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize, stream);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
	OK(cuStreamSynchronize, stream);
	OK(cuStreamDestroy_v2, stream);
}

static void test_allocating_during_a_global_capture_is_refused(void **state)
{
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr address;
	CUgraph graph;
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2, &address, 4096);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
	OK(cuStreamDestroy_v2, stream);
}

static void test_a_built_graph_runs_in_the_order_of_its_edges(void **state)
{
	CUdeviceptr address;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode last, first;
	unsigned char value;
	OK(cuMemAlloc_v2, &address, 16);
	CUDA_MEMSET_NODE_PARAMS params = {
		.dst = address, .value = 2, .elementSize = 1, .width = 16, .height = 1
	};
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddMemsetNode, &last, graph, NULL, 0, &params, ctx);
	params.value = 1;
	OK(cuGraphAddMemsetNode, &first, graph, NULL, 0, &params, ctx);
	OK(cuGraphAddDependencies_v2, graph, &first, &last, NULL, 1);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, NULL);
	OK(cuMemcpyDtoH_v2, &value, address, 1);
	assert_int_equal(value, 2);
	OK(cuGraphAddDependencies_v2, graph, &last, &first, NULL, 1);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphDestroy, graph);
	OK(cuMemFree_v2, address);
}

static void test_memory_runs_out_at_its_limit(void **state)
{
	size_t unused, total;
	CUdeviceptr address, more;
	OK(cuMemGetInfo_v2, &unused, &total);
	OK(cuMemAlloc_v2, &address, unused);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &more, 1);
	OK(cuMemFree_v2, address);
	OK(cuMemAlloc_v2, &more, 1);
	OK(cuMemFree_v2, more);
}

static void test_a_pointer_is_freed_once(void **state)
{
	CUdeviceptr address;
	OK(cuMemAlloc_v2, &address, 100);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2, address + 1);
	OK(cuMemFree_v2, address);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2, address);
	OK(cuMemAllocAsync, &address, 100, NULL);
	OK(cuMemFreeAsync, address, NULL);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync, address, NULL);
	OK(cuCtxSynchronize);
}

static void test_bad_handles_are_told(void **state)
{
	int on_the_stack;
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize, (CUstream)&on_the_stack);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery, (CUevent)0x1234);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload, (CUmodule)ctx);
	CUstream stream = new_stream(0);
	OK(cuStreamDestroy_v2, stream);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2, stream);
}

static void test_copies_are_checked(void **state)
{
	char text[64];
	CUdeviceptr address;
	OK(cuMemAlloc_v2, &address, 64);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2, address + 1, text, 64);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2, text, (CUdeviceptr)text, 64);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2, address, 1, 65);
	OK(cuMemFree_v2, address);
}

static void test_proc_address_gives_exported_functions(void **state)
{
	static const struct {
		const char *name;
		int version;
		cuuint64_t flags;
		const char *exported;
	} wanted[] = {
		{ "cuMemAlloc", 13000, 0, "cuMemAlloc_v2" },
		{ "cuMemAlloc", 2000, 0, "cuMemAlloc" },
		{ "cuMemcpyHtoDAsync", 13000, 2, "cuMemcpyHtoDAsync_v2_ptsz" },
		{ "cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds" },
		{ "cuLaunchKernel", 13000, 1, "cuLaunchKernel" },
		{ "cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz" },
		{ "cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture" },
		{ "cuStreamBeginCapture", 12000, 0, "cuStreamBeginCapture_v2" },
		{ "cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v3" },
		{ "cuCtxGetDevice", 12000, 0, "cuCtxGetDevice" },
		{ "cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2" },
		{ "cuGraphInstantiate", 13000, 0, "cuGraphInstantiateWithFlags" },
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *found = NULL;
		CUdriverProcAddressQueryResult status;
		OK(cuGetProcAddress_v2, wanted[i].name, &found, wanted[i].version, wanted[i].flags,
		   &status);
		assert_ptr_equal(found, dlsym(library, wanted[i].exported));
	}
	void *found;
	CUdriverProcAddressQueryResult status;
	OK(cuGetProcAddress_v2, "cuNothing", &found, 13000, 0, &status);
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static bool has_thread(const char *name)
{
	char path[300], comm[32];
	DIR *tasks = opendir("/proc/self/task");
	bool found = false;
	for (struct dirent *task; (task = readdir(tasks)) && !found;) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		FILE *file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file))
			found = strncmp(comm, name, strlen(name)) == 0;
		fclose(file);
	}
	closedir(tasks);
	return found;
}

/* As the real driver's, which is cut to what a thread's name may be. */
static void test_there_is_an_event_thread_unless_it_is_left_out(void **state)
{
	assert_int_equal(has_thread("cuda-EvtHandlr"), !getenv("SIMCUDA_NO_EVENT_THREAD"));
}

/* Last: the context is of no use after it. */
static void test_a_kernel_with_a_bad_pointer_leaves_a_sticky_error(void **state)
{
	CUdeviceptr nowhere[3] = { 4096, 4096, 4096 };
	CUdeviceptr address;
	launch_add(nowhere, N, NULL);
	FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
	FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize, NULL);
	OK(cuDevicePrimaryCtxReset_v2, 0);
	FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2, &address, 1);
	OK(cuDevicePrimaryCtxRetain, &ctx, 0);
	OK(cuCtxSetCurrent, ctx);
	OK(cuMemAlloc_v2, &address, 1);
	OK(cuMemFree_v2, address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_function_and_a_kernel_hold_their_name_at_byte_8),
		cmocka_unit_test(test_kernels_are_read_from_ptx),
		cmocka_unit_test(test_handles_of_an_unloaded_module_are_used_again),
		cmocka_unit_test(test_vector_add_computes),
		cmocka_unit_test(test_parameters_are_copied_by_the_launch),
		cmocka_unit_test(test_work_runs_later_and_synchronising_waits),
		cmocka_unit_test(test_an_event_of_a_context_waits_for_all_its_streams),
		cmocka_unit_test(test_the_legacy_stream_waits_for_blocking_streams),
		cmocka_unit_test(test_a_stream_waits_for_an_event_of_another),
		cmocka_unit_test(test_a_captured_launch_does_not_run_and_its_graph_does),
		cmocka_unit_test(test_a_capture_spreads_through_events),
		cmocka_unit_test(test_a_branch_that_does_not_come_back_fails_the_capture),
		cmocka_unit_test(test_waiting_for_a_capturing_stream_ends_the_capture),
		cmocka_unit_test(test_allocating_during_a_global_capture_is_refused),
		cmocka_unit_test(test_a_built_graph_runs_in_the_order_of_its_edges),
		cmocka_unit_test(test_memory_runs_out_at_its_limit),
		cmocka_unit_test(test_a_pointer_is_freed_once),
		cmocka_unit_test(test_bad_handles_are_told),
		cmocka_unit_test(test_copies_are_checked),
		cmocka_unit_test(test_proc_address_gives_exported_functions),
		cmocka_unit_test(test_there_is_an_event_thread_unless_it_is_left_out),
		cmocka_unit_test(test_a_kernel_with_a_bad_pointer_leaves_a_sticky_error),
	};
	return cmocka_run_group_tests_name("driver", tests, open_driver, NULL);
}
