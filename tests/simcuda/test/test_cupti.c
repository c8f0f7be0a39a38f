// SPDX-License-Identifier: MIT
/* The simulated libcupti: what is recorded of work, and what is told of calls. */
#include "cupti_scene.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const uint32_t all_work[] = { KIND_CONCURRENT_KERNEL, KIND_MEMCPY, KIND_MEMSET,
	                             KIND_SYNCHRONIZATION, 0 };

/* ---- kinds ----------------------------------------------------------------------------------- */

static void test_a_kind_that_is_not_enabled_gives_nothing(void **state)
{
	char host[100] = { 0 };
	CUdeviceptr memory;
	OK(cuMemAlloc_v2, &memory, sizeof(host));
	scene_start(KINDS_OF(KIND_MEMSET));
	launch(NULL);
	OK(cuMemcpyHtoD_v2, memory, host, sizeof(host));
	OK(cuMemsetD8_v2, memory, 1, sizeof(host));
	wait_for_all();
	assert_int_equal(seen.n, 1);
	assert_int_equal(nth(KIND_MEMSET, 0)->set.bytes, sizeof(host));
	SUCCEEDS(cuptiActivityDisable(KIND_MEMSET));
	OK(cuMemsetD8_v2, memory, 1, sizeof(host));
	wait_for_all();
	assert_int_equal(seen.n, 1);
	OK(cuMemFree_v2, memory);
}

static void test_kinds_that_are_not_known_are_refused(void **state)
{
	REFUSED(RESULT_INVALID_KIND, cuptiActivityEnable(0));
	REFUSED(RESULT_INVALID_KIND, cuptiActivityEnable(KINDS));
	REFUSED(RESULT_NOT_SUPPORTED, cuptiActivityEnable(12));
	if (version < 17)
		REFUSED(RESULT_INVALID_KIND, cuptiActivityEnable(KIND_GRAPH_TRACE));
}

static void test_work_from_before_is_not_reported(void **state)
{
	launch(NULL);
	scene_start(all_work);
	launch(NULL);
	wait_for_all();
	assert_int_equal(count_kind(KIND_CONCURRENT_KERNEL), 1);
}

/* ---- records --------------------------------------------------------------------------------- */

static void test_a_kernel_is_told_as_it_was_launched(void **state)
{
	CUstream stream = new_stream();
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
	OK(cuLaunchKernel, tick_function(), 2, 3, 4, 32, 2, 1, 128, stream, NULL, NULL);
	launch(NULL);
	wait_for_all();
	const struct kernel_record *kernel = &nth(KIND_CONCURRENT_KERNEL, 0)->kernel;
	assert_string_equal(kernel->name, TICK);
	assert_string_equal(seen.told[0].symbol, TICK);
	assert_memory_equal(kernel->grid, ((int[]){ 2, 3, 4 }), sizeof(kernel->grid));
	assert_memory_equal(kernel->block, ((int[]){ 32, 2, 1 }), sizeof(kernel->block));
	assert_int_equal(kernel->shared_dynamic, 128);
	assert_int_equal(kernel->device, 0);
	assert_int_equal(kernel->context, 1);
	assert_true(kernel->stream >= 13);
	assert_int_equal(kernel->correlation, seen.told[0].correlation);
	assert_int_equal(kernel->graph_node, 0);
	assert_int_equal(nth(KIND_CONCURRENT_KERNEL, 1)->kernel.stream, 7);
	assert_int_equal(nth(KIND_CONCURRENT_KERNEL, 1)->kernel.correlation,
	                 seen.told[2].correlation);
	OK(cuStreamDestroy_v2, stream);
}

/* What CUDA 11.0 did not tell is not what a program that asks the version would read. */
static void test_the_graph_is_told_since_11_1(void **state)
{
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	launch(NULL);
	wait_for_all();
	uint32_t graph = nth(KIND_CONCURRENT_KERNEL, 0)->kernel.graph;
	assert_int_equal(graph == 0, version >= 14);
}

static void test_records_are_as_long_as_the_release_has_them(void **state)
{
	static const struct {
		uint32_t kind;
		size_t bytes[3];
	} kinds[] = {
#define KIND(kind, member, old, middle, now) { kind, { old, middle, now } },
		RECORD_VERSIONS(KIND)
#undef KIND
	};
	int release = version >= 130000 ? 2 : version > 13 ? 1 : 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		_Alignas(8) uint8_t buffer[512] = { 0 };
		struct record *record = (struct record *)buffer;
		record->kind = kinds[i].kind;
		size_t bytes = kinds[i].bytes[release];
		/* The one after it is a record as well. */
		((struct record *)(buffer + bytes))->kind = KIND_MEMSET;
		if (bytes == 0) {
			REFUSED(RESULT_INVALID_KIND,
			        cuptiActivityGetNextRecord(buffer, sizeof(buffer), &record));
			continue;
		}
		SUCCEEDS(cuptiActivityGetNextRecord(buffer, sizeof(buffer), &record));
		assert_ptr_equal(record, buffer + bytes);
		record = (struct record *)buffer;
		REFUSED(RESULT_MAX_LIMIT_REACHED,
		        cuptiActivityGetNextRecord(buffer, bytes, &record));
	}
}

static void test_memory_kinds_and_directions_are_those_of_the_pointers(void **state)
{
	static char pageable[3000];
	CUdeviceptr device, managed;
	void *pinned;
	CUstream stream = new_stream();
	OK(cuMemAlloc_v2, &device, 4096);
	OK(cuMemAllocManaged, &managed, 4096, CU_MEM_ATTACH_GLOBAL);
	OK(cuMemAllocHost_v2, &pinned, 4096);
	scene_start(KINDS_OF(KIND_MEMCPY));
	OK(cuMemcpyHtoD_v2, device, pageable, 1000);
	OK(cuMemcpyHtoDAsync_v2, device, pinned, 1001, stream);
	OK(cuMemcpyDtoH_v2, pageable, device, 1002);
	OK(cuMemcpyDtoHAsync_v2, pageable, device, 1003, stream);
	OK(cuMemcpyDtoD_v2, device, device + 2048, 1004);
	OK(cuMemcpy, managed, (CUdeviceptr)pageable, 1005);
	OK(cuMemcpyAsync, device, managed, 1006, stream);
	wait_for_all();
	static const struct {
		uint8_t kind, from, to, flags;
	} wanted[] = {
		{ COPY_HTOD, 1, 3, 0 }, { COPY_HTOD, 2, 3, 1 }, { COPY_DTOH, 3, 1, 0 },
		{ COPY_DTOH, 3, 1, 1 }, { COPY_DTOD, 3, 3, 0 }, { COPY_HTOD, 1, 5, 0 },
		{ COPY_DTOD, 5, 3, 1 },
	};
	for (size_t i = 0; i < 7; i++) {
		const struct copy_record *copy = &nth(KIND_MEMCPY, i)->copy;
		assert_int_equal(copy->bytes, 1000 + i);
		assert_memory_equal(&copy->copy_kind, &wanted[i], 4);
		assert_true(copy->end > copy->start);
	}
	OK(cuStreamDestroy_v2, stream);
	OK(cuMemFree_v2, device);
	OK(cuMemFree_v2, managed);
	OK(cuMemFreeHost, pinned);
}

static void test_waits_are_told_with_what_was_waited_for(void **state)
{
	CUstream stream = new_stream(), other = new_stream();
	CUevent event;
	OK(cuEventCreate, &event, 0);
	scene_start(KINDS_OF(KIND_SYNCHRONIZATION));
	launch(stream);
	OK(cuEventRecord, event, stream);
	OK(cuStreamWaitEvent, other, event, 0);
	OK(cuEventSynchronize, event);
	OK(cuStreamSynchronize, stream);
	uint64_t before = monotonic();
	launch(stream);
	wait_for_all();
	assert_int_equal(seen.n, 4);
	static const uint32_t types[] = { 2, 1, 3, 4 };
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(nth(KIND_SYNCHRONIZATION, i)->wait.type, types[i]);
	const struct wait_record *wait = &nth(KIND_SYNCHRONIZATION, 0)->wait;
	assert_int_equal(wait[0].context, 1);
	assert_int_not_equal(wait[0].event, 0xffffffff);
	assert_int_not_equal(wait[0].stream, 0xffffffff);
	wait = &nth(KIND_SYNCHRONIZATION, 3)->wait;
	assert_int_equal(wait->stream, 0xffffffff);
	if (cuptiActivityRegisterTimestampCallback)
		assert_true(wait->start >= before && wait->end <= monotonic());
	assert_true(wait->end > wait->start);
	OK(cuStreamDestroy_v2, stream);
	OK(cuStreamDestroy_v2, other);
	OK(cuEventDestroy_v2, event);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void test_a_graphs_kernels_share_its_correlation_and_have_their_nodes(void **state)
{
	CUgraphExec exec = two_kernels();
	CUstream stream = new_stream();
	manner.graphs = true;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	OK(cuGraphLaunch, exec, stream);
	OK(cuGraphLaunch, exec, stream);
	wait_for_all();
	assert_int_equal(seen.n, 4);
	const struct kernel_record *kernel[4];
	for (size_t i = 0; i < 4; i++) {
		kernel[i] = &nth(KIND_CONCURRENT_KERNEL, i)->kernel;
		assert_int_not_equal(kernel[i]->graph_node, 0);
	}
	assert_int_equal(kernel[0]->correlation, kernel[1]->correlation);
	assert_int_not_equal(kernel[0]->correlation, kernel[2]->correlation);
	assert_int_equal(kernel[0]->graph_node, kernel[2]->graph_node);
	assert_int_not_equal(kernel[0]->graph_node, kernel[1]->graph_node);
	for (size_t i = 1; i < 4; i++)
		assert_true(kernel[i]->start >= kernel[i - 1]->end);
	if (version >= 14)
		assert_int_equal(kernel[0]->graph, kernel[3]->graph);
	OK(cuGraphExecDestroy, exec);
	OK(cuStreamDestroy_v2, stream);
}

static void test_the_trace_of_graphs_hides_their_nodes(void **state)
{
	if (version < 17)
		return;
	manner.graphs = true;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL, KIND_GRAPH_TRACE));
	CUgraphExec exec = two_kernels();
	OK(cuGraphLaunch, exec, NULL);
	launch(NULL);
	wait_for_all();
	assert_int_equal(count_kind(KIND_GRAPH_TRACE), 1);
	assert_int_equal(count_kind(KIND_CONCURRENT_KERNEL), 1);
	const struct graph_record *run = &nth(KIND_GRAPH_TRACE, 0)->graph;
	assert_int_equal(run->stream, 7);
	assert_int_not_equal(run->graph, 0);
	assert_true(run->end > run->start);
	OK(cuGraphExecDestroy, exec);
}

/* ---- times ----------------------------------------------------------------------------------- */

static void test_work_runs_between_its_call_and_the_end_of_the_wait(void **state)
{
	if (!cuptiActivityRegisterTimestampCallback)
		return;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	for (size_t i = 0; i < 50; i++) {
		uint64_t before = monotonic();
		launch(NULL);
		wait_for_all();
		uint64_t after = monotonic();
		const struct kernel_record *kernel = &nth(KIND_CONCURRENT_KERNEL, i)->kernel;
		assert_true(kernel->start >= before);
		assert_true(kernel->end > kernel->start);
		assert_true(kernel->end <= after);
		assert_true(kernel->completed == kernel->end);
	}
}

static void test_work_of_a_stream_does_not_overlap(void **state)
{
	CUstream stream[2] = { new_stream(), new_stream() };
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	for (int i = 0; i < 100; i++)
		launch(stream[i % 2]);
	wait_for_all();
	assert_int_equal(seen.n, 100);
	uint64_t end[2] = { 0 };
	uint32_t first = nth(KIND_CONCURRENT_KERNEL, 0)->kernel.stream;
	for (size_t i = 0; i < 100; i++) {
		const struct kernel_record *kernel = &nth(KIND_CONCURRENT_KERNEL, i)->kernel;
		assert_true(kernel->start >= end[kernel->stream == first]);
		end[kernel->stream == first] = kernel->end;
	}
	OK(cuStreamDestroy_v2, stream[0]);
	OK(cuStreamDestroy_v2, stream[1]);
}

static void test_the_clock_is_the_wall_clock_unless_told_otherwise(void **state)
{
	handle subscriber;
	uint64_t ns, wall = (uint64_t)time(NULL);
	SUCCEEDS(cuptiGetTimestamp(&ns));
	assert_in_range(ns / 1000000000u, wall - 1, wall + 1);
	SUCCEEDS(cuptiSubscribe(&subscriber, tell, NULL));
	SUCCEEDS(cuptiActivityRegisterCallbacks(request, complete));
	SUCCEEDS(cuptiActivityEnable(KIND_CONCURRENT_KERNEL));
	launch(NULL);
	wait_for_all();
	assert_in_range(nth(KIND_CONCURRENT_KERNEL, 0)->kernel.start / 1000000000u, wall - 1,
	                wall + 2);
	if (cuptiActivityRegisterTimestampCallback)
		REFUSED(RESULT_INVALID_OPERATION,
		        cuptiActivityRegisterTimestampCallback(monotonic));
	SUCCEEDS(cuptiFinalize());
	if (!cuptiActivityRegisterTimestampCallback)
		return;
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivityRegisterTimestampCallback(NULL));
	SUCCEEDS(cuptiActivityRegisterTimestampCallback(monotonic));
	SUCCEEDS(cuptiGetTimestamp(&ns));
	assert_in_range(ns, monotonic() - 1000000000u, monotonic());
}

static void test_the_clock_came_with_11_6(void **state)
{
	assert_int_equal(cuptiActivityRegisterTimestampCallback != NULL, version >= 17);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void test_only_what_was_enabled_is_told(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	launch(NULL);
	assert_int_equal(seen.n_told, 0);
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_CTX_SYNCHRONIZE));
	launch(NULL);
	OK(cuCtxSynchronize);
	assert_int_equal(seen.n_told, 2);
	assert_string_equal(seen.told[0].function, "cuCtxSynchronize");
	SUCCEEDS(cuptiEnableCallback(0, subscriber, 1, SITE_CTX_SYNCHRONIZE));
	OK(cuCtxSynchronize);
	assert_int_equal(seen.n_told, 2);
	SUCCEEDS(cuptiEnableDomain(1, subscriber, 1));
	OK(cuCtxSynchronize);
	assert_int_equal(seen.n_told, 4);
	SUCCEEDS(cuptiUnsubscribe(subscriber));
	OK(cuCtxSynchronize);
	assert_int_equal(seen.n_told, 4);
}

static void test_a_callback_tells_the_call(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	manner.params_bytes = 64;
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
	CUfunction function = tick_function();
	void *args[] = { NULL };
	OK(cuLaunchKernel, function, 2, 3, 4, 5, 6, 7, 8, NULL, args, NULL);
	assert_int_equal(CU(cuLaunchKernel)(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	                 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(seen.n_told, 4);
	const struct {
		CUfunction function;
		unsigned int grid[3], block[3], shared;
		CUstream stream;
		void **args, **extra;
	} *params = (const void *)seen.told[0].params;
	assert_ptr_equal(params->function, function);
	assert_memory_equal(params->grid, ((int[]){ 2, 3, 4 }), 12);
	assert_memory_equal(params->block, ((int[]){ 5, 6, 7 }), 12);
	assert_int_equal(params->shared, 8);
	assert_ptr_equal(params->args, args);
	assert_false(seen.told[0].exit);
	assert_true(seen.told[1].exit);
	assert_int_equal(seen.told[1].result, CUDA_SUCCESS);
	assert_int_equal(seen.told[1].correlation, seen.told[0].correlation);
	assert_int_equal(seen.told[1].data, 4711);
	assert_int_equal(seen.told[0].context, 1);
	assert_int_equal(seen.told[2].data, 0);
	assert_int_not_equal(seen.told[2].correlation, seen.told[0].correlation);
	assert_int_equal(seen.told[3].result, CUDA_ERROR_INVALID_VALUE);
}

static void test_the_drivers_call_in_a_runtime_call_has_its_correlation(void **state)
{
	void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
	int (*copy)(void *, const void *, size_t, int) = dlsym(runtime, "cudaMemcpy");
	int (*synchronize)(void) = dlsym(runtime, "cudaDeviceSynchronize");
	char host[64] = { 0 };
	CUdeviceptr memory;
	OK(cuMemAlloc_v2, &memory, sizeof(host));
	assert_int_equal(synchronize(), 0); /* binds the runtime */
	handle subscriber = scene_start(KINDS_OF(KIND_MEMCPY));
	manner.params_bytes = 24;
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_MEMCPY_HTOD));
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 2, SITE_RUNTIME_MEMCPY));
	assert_int_equal(copy((void *)memory, host, sizeof(host), 1), 0);
	assert_int_equal(seen.n_told, 4);
	static const char *const names[] = { "cudaMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2",
		                             "cudaMemcpy" };
	for (int i = 0; i < 4; i++) {
		assert_string_equal(seen.told[i].function, names[i]);
		assert_int_equal(seen.told[i].correlation, seen.told[0].correlation);
		assert_int_equal(seen.told[i].domain, i % 3 ? 1 : 2);
		assert_int_equal(seen.told[i].exit, i > 1);
		assert_int_equal(seen.told[i].params[0], memory);
	}
	wait_for_all();
	assert_int_equal(nth(KIND_MEMCPY, 0)->copy.correlation, seen.told[0].correlation);
	OK(cuMemFree_v2, memory);
}

static void test_functions_have_names_by_number(void **state)
{
	const char *name;
	SUCCEEDS(cuptiGetCallbackName(1, SITE_LAUNCH, &name));
	assert_string_equal(name, "cuLaunchKernel");
	SUCCEEDS(cuptiGetCallbackName(2, SITE_RUNTIME_MEMCPY, &name));
	assert_string_equal(name, "cudaMemcpy_v3020");
	REFUSED(RESULT_INVALID_PARAMETER, cuptiGetCallbackName(1, 100000, &name));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiGetCallbackName(4, 1, &name));
}

static void test_a_second_subscriber_is_refused(void **state)
{
	handle first = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL)), second;
	REFUSED(RESULT_MULTIPLE_SUBSCRIBERS, cuptiSubscribe(&second, tell, NULL));
	SUCCEEDS(cuptiUnsubscribe(first));
	SUCCEEDS(cuptiSubscribe(&second, tell, NULL));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiUnsubscribe(first));
	SUCCEEDS(cuptiUnsubscribe(second));
}

static void test_wrong_arguments_are_refused(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	uint8_t buffer[16] = { 0 };
	struct record *record = NULL;
	uint64_t value = 1;
	size_t bytes = 4;
	REFUSED(RESULT_INVALID_PARAMETER, cuptiSubscribe(NULL, tell, NULL));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiUnsubscribe(NULL));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiEnableCallback(1, NULL, 1, SITE_LAUNCH));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiEnableCallback(1, subscriber, 0, SITE_LAUNCH));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiEnableCallback(1, subscriber, 1, 0));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiEnableCallback(1, subscriber, 1, 5000));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiEnableDomain(1, subscriber, 9));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivityRegisterCallbacks(NULL, complete));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivityRegisterCallbacks(request, NULL));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivityGetNextRecord(NULL, 16, &record));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivityGetNextRecord(buffer, 16, NULL));
	REFUSED(RESULT_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, 0, &record));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivityGetNumDroppedRecords(NULL, 0, NULL));
	REFUSED(RESULT_SIZE_NOT_SUFFICIENT, cuptiActivitySetAttribute(0, &bytes, &value));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivitySetAttribute(99, &bytes, &value));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiActivitySetAttribute(0, NULL, &value));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiGetTimestamp(NULL));
	REFUSED(RESULT_INVALID_PARAMETER, cuptiGetVersion(NULL));
	bytes = sizeof(value);
	SUCCEEDS(cuptiActivitySetAttribute(2, &bytes, &value));
	value = 0;
	SUCCEEDS(cuptiActivityGetAttribute(2, &bytes, &value));
	assert_int_equal(value, 1);
}

static void test_flushing_needs_functions_for_buffers(void **state)
{
	SUCCEEDS(cuptiActivityEnable(KIND_CONCURRENT_KERNEL));
	launch(NULL);
	REFUSED(RESULT_INVALID_OPERATION, cuptiActivityFlushAll(0));
	SUCCEEDS(cuptiFinalize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, scene_clean)
		TEST(test_a_kind_that_is_not_enabled_gives_nothing),
		TEST(test_kinds_that_are_not_known_are_refused),
		TEST(test_work_from_before_is_not_reported),
		TEST(test_a_kernel_is_told_as_it_was_launched),
		TEST(test_the_graph_is_told_since_11_1),
		TEST(test_records_are_as_long_as_the_release_has_them),
		TEST(test_memory_kinds_and_directions_are_those_of_the_pointers),
		TEST(test_waits_are_told_with_what_was_waited_for),
		TEST(test_work_runs_between_its_call_and_the_end_of_the_wait),
		TEST(test_work_of_a_stream_does_not_overlap),
		TEST(test_the_clock_is_the_wall_clock_unless_told_otherwise),
		TEST(test_the_clock_came_with_11_6),
		TEST(test_only_what_was_enabled_is_told),
		TEST(test_a_callback_tells_the_call),
		TEST(test_the_drivers_call_in_a_runtime_call_has_its_correlation),
		TEST(test_functions_have_names_by_number),
		TEST(test_a_second_subscriber_is_refused),
		TEST(test_wrong_arguments_are_refused),
		TEST(test_flushing_needs_functions_for_buffers),
		/* After these CUPTI cannot be finalized any more. */
		TEST(test_a_graphs_kernels_share_its_correlation_and_have_their_nodes),
		TEST(test_the_trace_of_graphs_hides_their_nodes),
	};
	return cmocka_run_group_tests(tests, scene_open, NULL);
}
