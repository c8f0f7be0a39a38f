// SPDX-License-Identifier: MIT
/* The DETAILS of a call, in words. */
#include "support.h"

#include "base/buf.h"
#include "output/sink.h"

static void assert_described(struct call call, const char *expected)
{
	struct buf out = { 0 };

	buf_puts(&out, "");
	describe_call(&call, &out);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static struct call vector_add(void)
{
	return launch_at("cuLaunchKernel", 0, new_kernel("vectorAdd(float const*, int)", true));
}

static void test_launch_has_kernel_grid_block_and_stream(void **state)
{
	struct call call = vector_add();

	assert_described(call, "vectorAdd(float const*, int) grid=(196,1,1) block=(256,1,1) "
	                       "shmem=0 stream=0");
	call.args.shmem_bytes = 48 * 1024;
	set_stream(&call, 0x55d000001000);
	assert_described(call, "vectorAdd(float const*, int) grid=(196,1,1) block=(256,1,1) "
	                       "shmem=48.00 KiB stream=0x55d000001000");
}

static void test_special_streams_have_names(void **state)
{
	struct call call = call_at("cudaStreamSynchronize", 0, 1);

	set_stream(&call, 1);
	assert_described(call, "stream=legacy");
	set_stream(&call, 2);
	assert_described(call, "stream=per-thread");
	call = call_at("cudaStreamSynchronize_ptsz", 0, 1);
	set_stream(&call, 0);
	assert_described(call, "stream=per-thread");
}

static void test_launch_without_a_name_shows_the_handle(void **state)
{
	struct call call = vector_add();

	call.kernel = NULL;
	assert_described(call, "0x55d0 grid=(196,1,1) block=(256,1,1) shmem=0 stream=0");
}

static void test_launch_that_could_not_be_read_says_so(void **state)
{
	struct call call = vector_add();

	memset(call.args.grid, 0, sizeof(call.args.grid));
	memset(call.args.block, 0, sizeof(call.args.block));
	assert_described(call, "vectorAdd(float const*, int) grid=? block=? shmem=0 stream=0");
}

static void test_captured_launch_is_marked(void **state)
{
	struct call call = vector_add();

	call.flags |= CALL_CAPTURED;
	assert_described(call, "vectorAdd(float const*, int) grid=(196,1,1) block=(256,1,1) "
	                       "shmem=0 stream=0 [captured]");
}

static void test_graph_launch(void **state)
{
	struct call call = call_at("cudaGraphLaunch", 0, 1);

	call.args.handle = 0x5600;
	set_stream(&call, 0x7700);
	assert_described(call, "graph=0x5600 stream=0x7700");
}

static void test_allocation_has_size_and_address(void **state)
{
	assert_described(alloc_at("cudaMalloc", 0, 0x7f12c0000000, 1 << 20),
	                 "size=1.00 MiB -> 0x7f12c0000000");
	assert_described(alloc_at("cuMemAlloc_v2", 0, 0x7f12c0000000, 100),
	                 "size=100 B -> 0x7f12c0000000");
}

static void test_allocation_shows_flags_and_stream_where_it_has_them(void **state)
{
	struct call call = alloc_at("cudaHostAlloc", 0, 0x7f22c0000000, 4096);

	set_arg(&call, "flags", 2);
	assert_described(call, "size=4.00 KiB flags=0x2 -> 0x7f22c0000000");
	call = alloc_at("cudaMallocAsync", 0, 0x7f22c0000000, 4096);
	set_stream(&call, 0x55);
	assert_described(call, "size=4.00 KiB stream=0x55 -> 0x7f22c0000000");
}

static void test_failed_call_ends_with_the_error(void **state)
{
	struct call call = alloc_at("cudaMalloc", 0, 0, 1ull << 40);

	fail_call(&call, 2);
	assert_described(call, "size=1.00 TiB = cudaErrorMemoryAllocation (2)");
	call = alloc_at("cuMemAlloc_v2", 0, 0, 1ull << 40);
	fail_call(&call, 2);
	assert_described(call, "size=1.00 TiB = CUDA_ERROR_OUT_OF_MEMORY (2)");
	fail_call(&call, 123456);
	assert_described(call, "size=1.00 TiB = error (123456)");
}

static void test_poll_that_came_too_early_says_so(void **state)
{
	struct call call = call_at("cudaStreamQuery", 0, 1);

	set_stream(&call, 0x55);
	call.result = 600;
	assert_described(call, "stream=0x55 = cudaErrorNotReady (600)");
}

static void test_free_has_the_address(void **state)
{
	struct call call = free_at("cudaFreeAsync", 0, 0x7f00);

	assert_described(free_at("cudaFree", 0, 0x7f00), "ptr=0x7f00");
	assert_described(free_at("cuMemRelease", 0, 0x12), "handle=0x12");
	set_stream(&call, 0x55);
	assert_described(call, "ptr=0x7f00 stream=0x55");
}

static void test_copy_has_direction_bytes_and_async(void **state)
{
	struct call call = copy_at("cudaMemcpyAsync", 0, DIRECTION_H2D, 4096);

	set_stream(&call, 0x55d0);
	assert_described(call, "H2D 4.00 KiB async stream=0x55d0");
	assert_described(copy_at("cuMemcpyDtoH_v2", 0, DIRECTION_D2H, 3), "D2H 3 B");
}

static void test_set_has_bytes_value_and_address(void **state)
{
	struct call call = call_at("cudaMemsetAsync", 0, 1);

	call.args.address = 0x7f00;
	call.args.bytes = 4096;
	set_arg(&call, "value", 0xff);
	set_stream(&call, 0);
	assert_described(call, "4.00 KiB value=0xff ptr=0x7f00 async stream=0");
}

static void test_synchronisation_says_with_what(void **state)
{
	struct call call = call_at("cudaEventSynchronize", 0, 1);

	set_arg(&call, "event", 0x1234);
	assert_described(call, "event=0x1234");
	assert_described(call_at("cudaDeviceSynchronize", 0, 1), "");
}

static void test_other_arguments_have_their_names(void **state)
{
	struct call call = call_at("cuModuleGetFunction", 0, 1);

	set_arg(&call, "hmod", 0x99);
	set_arg(&call, "hfunc", 0x55d0);
	call.text = "_Z9vectorAddPKfi";
	assert_described(call, "hmod=0x99 name=\"_Z9vectorAddPKfi\" -> hfunc=0x55d0");
}

static void test_outputs_of_a_call_that_gave_none_are_left_out(void **state)
{
	struct call call = call_at("cudaStreamCreateWithFlags", 0, 1);

	set_arg(&call, "flags", 1);
	set_arg(&call, "pStream", 0x7700);
	assert_described(call, "flags=0x1 -> pStream=0x7700");
	fail_call(&call, 1);
	assert_described(call, "flags=0x1 = cudaErrorInvalidValue (1)");
	call.flags = 0;
	never_ends(&call, CALL_NO_RETURN);
	assert_described(call, "flags=0x1");
}

static void test_milliseconds_of_elapsed_time(void **state)
{
	struct call call = call_at("cudaEventElapsedTime", 0, 1);

	set_arg(&call, "ms", 0x3fc00000); /* 1.5f */
	set_arg(&call, "start", 0x10);
	set_arg(&call, "end", 0x20);
	assert_described(call, "start=0x10 end=0x20 -> ms=1.500 ms");
}

static void test_terminal_escapes_of_a_string_do_not_get_through(void **state)
{
	struct call call = call_at("cuModuleGetFunction", 0, 1);

	never_ends(&call, CALL_NO_RETURN);
	call.text = "\033[2J";
	assert_described(call, "hmod=0x0 name=\"\\x1b[2J\"");
}

static void test_unknown_function_has_only_its_result(void **state)
{
	struct call call = call_at("cuOfTomorrow", 0, 1);

	assert_described(call, "");
	fail_call(&call, 1);
	assert_described(call, "= CUDA_ERROR_INVALID_VALUE (1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_has_kernel_grid_block_and_stream),
		cmocka_unit_test(test_special_streams_have_names),
		cmocka_unit_test(test_launch_without_a_name_shows_the_handle),
		cmocka_unit_test(test_launch_that_could_not_be_read_says_so),
		cmocka_unit_test(test_captured_launch_is_marked),
		cmocka_unit_test(test_graph_launch),
		cmocka_unit_test(test_allocation_has_size_and_address),
		cmocka_unit_test(test_allocation_shows_flags_and_stream_where_it_has_them),
		cmocka_unit_test(test_failed_call_ends_with_the_error),
		cmocka_unit_test(test_poll_that_came_too_early_says_so),
		cmocka_unit_test(test_free_has_the_address),
		cmocka_unit_test(test_copy_has_direction_bytes_and_async),
		cmocka_unit_test(test_set_has_bytes_value_and_address),
		cmocka_unit_test(test_synchronisation_says_with_what),
		cmocka_unit_test(test_other_arguments_have_their_names),
		cmocka_unit_test(test_outputs_of_a_call_that_gave_none_are_left_out),
		cmocka_unit_test(test_milliseconds_of_elapsed_time),
		cmocka_unit_test(test_terminal_escapes_of_a_string_do_not_get_through),
		cmocka_unit_test(test_unknown_function_has_only_its_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
