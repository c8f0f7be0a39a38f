// SPDX-License-Identifier: MIT
/* The log format. */
#include "support.h"

#include <errno.h>

#include "failing_output.h"
#include "output/sink.h"

static struct run run;

/* One call and its line. */
static void assert_line(struct call call, const char *expected)
{
	struct sink_options options = { 0 };

	open_run(&run);
	options.out = run.out;
	begin_run(&run, sink_format_by_name("log")->create(&options));
	push_call(&run, call);
	end_run(&run);
	assert_string_equal(run.text, expected);
	close_run(&run);
}

static void test_launch_line_has_every_argument_and_the_outcome(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 40000,
	                             new_kernel("vectorAdd(float const*, int)", true));

	set_arg(&call, "kernelParams", 0x7fff5d310f90);
	assert_line(call, "2027-01-15 08:00:00,040 - [cuLaunchKernel] pid: 4242, tid: 4243, "
	                  "time_start: 5000040000000, time_end: 5000040005000, f: 0x55d0, "
	                  "gridDimX: 196, gridDimY: 1, gridDimZ: 1, "
	                  "blockDimX: 256, blockDimY: 1, blockDimZ: 1, sharedMemBytes: 0, "
	                  "hStream: 0, kernelParams: 0x7fff5d310f90, extra: 0x0, "
	                  "kernel: vectorAdd(float const*, int), result: CUDA_SUCCESS (0)\n");
}

static void test_memory_lines_have_the_names_that_readers_know(void **state)
{
	assert_line(alloc_at("cuMemAlloc_v2", 0, 0x7f12c0000000, 4096),
	            "2027-01-15 08:00:00,000 - [cuMemAlloc_v2] pid: 4242, tid: 4243, "
	            "time_start: 5000000000000, time_end: 5000000010000, "
	            "devPtr: 0x7f12c0000000, size: 4096, result: CUDA_SUCCESS (0)\n");
	assert_line(free_at("cuMemFree_v2", 0, 0x7f12c0000000),
	            "2027-01-15 08:00:00,000 - [cuMemFree_v2] pid: 4242, tid: 4243, "
	            "time_start: 5000000000000, time_end: 5000000010000, "
	            "devPtr: 0x7f12c0000000, result: CUDA_SUCCESS (0)\n");
}

static void test_copy_and_synchronisation_lines(void **state)
{
	struct call copy = copy_at("cuMemcpyHtoDAsync_v2", 0, DIRECTION_H2D, 64);
	struct call sync = call_at("cuStreamSynchronize", 0, 1);

	set_stream(&copy, 0x55);
	set_stream(&sync, 0x55);
	assert_line(copy, "2027-01-15 08:00:00,000 - [cuMemcpyHtoDAsync_v2] pid: 4242, tid: 4243, "
	                  "time_start: 5000000000000, time_end: 5000000010000, "
	                  "dstDevice: 0x7f0000001000, srcHost: 0x5500, ByteCount: 64, "
	                  "hStream: 0x55, result: CUDA_SUCCESS (0)\n");
	assert_line(sync, "2027-01-15 08:00:00,000 - [cuStreamSynchronize] pid: 4242, tid: 4243, "
	                  "time_start: 5000000000000, time_end: 5000000001000, "
	                  "hStream: 0x55, result: CUDA_SUCCESS (0)\n");
}

static void test_failure_and_missing_end_are_told(void **state)
{
	struct call failed = free_at("cuMemFree_v2", 0, 0x10), unfinished = failed;

	fail_call(&failed, 1);
	never_ends(&unfinished, CALL_UNFINISHED);
	assert_line(failed, "2027-01-15 08:00:00,000 - [cuMemFree_v2] pid: 4242, tid: 4243, "
	                    "time_start: 5000000000000, time_end: 5000000010000, "
	                    "devPtr: 0x10, result: CUDA_ERROR_INVALID_VALUE (1)\n");
	assert_line(unfinished, "2027-01-15 08:00:00,000 - [cuMemFree_v2] pid: 4242, tid: 4243, "
	                        "time_start: 5000000000000, time_end: 0, "
	                        "devPtr: 0x10, result: unfinished\n");
}

static void test_closed_pipe_is_an_error(void **state)
{
	struct sink_options options = { .out = closed_pipe() };
	struct err err = feed_until_error(sink_format_by_name("log")->create(&options), 3);

	assert_int_equal(err.code, -EPIPE);
	fclose(options.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_line_has_every_argument_and_the_outcome),
		cmocka_unit_test(test_memory_lines_have_the_names_that_readers_know),
		cmocka_unit_test(test_copy_and_synchronisation_lines),
		cmocka_unit_test(test_failure_and_missing_end_are_told),
		cmocka_unit_test(test_closed_pipe_is_an_error),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
