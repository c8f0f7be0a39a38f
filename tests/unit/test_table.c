// SPDX-License-Identifier: MIT
/* The table of calls for people. */
#include "support.h"

#include <errno.h>

#include "failing_output.h"
#include "output/sink.h"

static struct run run;

static void begin_table(struct sink_options options)
{
	open_run(&run);
	options.out = run.out;
	begin_run(&run, sink_format_by_name("table")->create(&options));
}

/* Ends the run and compares the whole text. */
static void assert_table(const char *expected)
{
	end_run(&run);
	assert_string_equal(run.text, expected);
	close_run(&run);
}

#define HEADER "  TIME(ms)  PROCESS      PID    TID  EVENT                    DURATION  DETAILS\n"

static struct call vector_add(double at_us)
{
	return launch_at("cuLaunchKernel", at_us,
	                 new_kernel("vectorAdd(float const*, float*, int)", true));
}

static void test_rows_are_aligned_under_their_header(void **state)
{
	begin_table((struct sink_options){ 0 });
	push_process(&run, the_process(), 1);
	push_call(&run, call_at("cuInit", 412.3, 101234));
	push_call(&run, alloc_at("cudaMalloc", 102000, 0x7f12c0000000, 1 << 20));
	push_call(&run, vector_add(103000));
	push_exit(&run, the_process(), 200000);
	assert_table(HEADER
	             "     0.412  vectorAdd   4242   4243  cuInit                 101.234 ms  "
	             "Flags=0x0\n"
	             "   102.000  vectorAdd   4242   4243  cudaMalloc               10.00 us  "
	             "size=1.00 MiB -> 0x7f12c0000000\n"
	             "   103.000  vectorAdd   4242   4243  cuLaunchKernel            5.00 us  "
	             "vectorAdd(float const*, float*, int) grid=(196,1,1) block=(256,1,1) "
	             "shmem=0 stream=0\n");
}

static void test_columns_widen_and_stay_wide(void **state)
{
	const struct process *other = new_process(1234567, "much_longer_nam");
	struct call call = call_at("cuInit", 1, 1);

	begin_table((struct sink_options){ 0 });
	push_call(&run, call);
	push_call(&run, call_at("cudaDeviceGetStreamPriorityRange", 2, 1));
	push_call_of(&run, other, 1234568, &call);
	push_call(&run, call);
	end_run(&run);
	assert_has(run.text, "\n     0.001  vectorAdd          4242    4243  "
	                     "cuInit                              1.00 us  Flags=0x0\n");
	assert_has(run.text, "  much_longer_nam 1234567 1234568  cuInit   ");
	close_run(&run);
}

static void test_line_without_details_has_no_trailing_blanks(void **state)
{
	begin_table((struct sink_options){ 0 });
	push_call(&run, call_at("cudaDeviceSynchronize", 1, 1));
	assert_table(
		"  TIME(ms)  PROCESS      PID    TID  EVENT                    DURATION  DETAILS\n"
		"     0.001  vectorAdd   4242   4243  cudaDeviceSynchronize     1.00 us\n");
}

static void test_calls_without_an_end_show_that(void **state)
{
	struct call unfinished = call_at("cudaDeviceSynchronize", 1, 1);
	struct call entry_only = call_at("cudaDeviceSynchronize", 2, 1);

	never_ends(&unfinished, CALL_UNFINISHED);
	never_ends(&entry_only, CALL_NO_RETURN);
	begin_table((struct sink_options){ 0 });
	push_call(&run, unfinished);
	push_call(&run, entry_only);
	end_run(&run);
	assert_has(run.text, "  cudaDeviceSynchronize  unfinished\n");
	assert_has(run.text, "  cudaDeviceSynchronize           -\n");
	close_run(&run);
}

static void push_nested_pair(void)
{
	struct call inner = alloc_at("cuMemAlloc_v2", 2, 0x7f12c0000000, 4096);

	inner.flags |= CALL_NESTED;
	inner.depth = 1;
	push_call(&run, inner);
	push_call(&run, alloc_at("cudaMalloc", 1, 0x7f12c0000000, 4096));
}

static void test_nested_calls_are_hidden(void **state)
{
	begin_table((struct sink_options){ 0 });
	push_nested_pair();
	end_run(&run);
	assert_has(run.text, "cudaMalloc");
	assert_has_not(run.text, "cuMemAlloc_v2");
	close_run(&run);
}

static void test_verbose_indents_nested_calls(void **state)
{
	begin_table((struct sink_options){ .verbose = true });
	push_nested_pair();
	end_run(&run);
	assert_has(run.text, "4243    cuMemAlloc_v2 ");
	assert_has(run.text, "4243  cudaMalloc ");
	close_run(&run);
}

static void test_a_depth_of_a_damaged_file_makes_no_endless_line(void **state)
{
	struct call inner = alloc_at("cuMemAlloc_v2", 2, 0x7f12c0000000, 4096);

	inner.flags |= CALL_NESTED;
	inner.depth = UINT32_MAX;
	begin_table((struct sink_options){ .verbose = true });
	push_call(&run, inner);
	end_run(&run);
	assert_has(run.text, "cuMemAlloc_v2");
	assert_true(strlen(run.text) < 1000);
	close_run(&run);
}

static void test_narrow_terminal_shortens_the_kernel_first(void **state)
{
	begin_table((struct sink_options){ .width = 146 });
	push_call(&run, vector_add(1));
	end_run(&run);
	assert_has(run.text, "  vectorAdd(...) grid=(196,1,1) block=(256,1,1) shmem=0 stream=0\n");
	close_run(&run);
}

static void test_narrow_terminal_keeps_the_error(void **state)
{
	struct call call = vector_add(1);

	fail_call(&call, 1);
	begin_table((struct sink_options){ .width = 122 });
	push_call(&run, call);
	end_run(&run);
	assert_has(run.text, "... = CUDA_ERROR_INVALID_VALUE (1)\n");
	assert_true(strlen(strchr(run.text, '\n') + 1) <= 122 + 1);
	close_run(&run);
}

static void test_details_go_on_in_the_next_line_of_a_narrow_terminal(void **state)
{
	begin_table((struct sink_options){ .width = 80 });
	push_call(&run, vector_add(1));
	end_run(&run);
	assert_has(run.text, "vectorAdd(float const*, float*, int) grid=(196,1,1)");
	close_run(&run);
}

static void test_template_fills_no_more_than_three_lines_of_a_narrow_terminal(void **state)
{
	static char name[600];
	struct call call;

	strcpy(name, "void at::native::vectorized_elementwise_kernel<4, ");
	memset(name + strlen(name), 'x', 500);
	strcat(name, ">(int)");
	call = launch_at("cuLaunchKernel", 1, new_kernel(name, true));
	begin_table((struct sink_options){ .width = 80 });
	push_call(&run, call);
	end_run(&run);
	assert_has(run.text, "vectorized_elementwise_kernel<...>(...)");
	assert_true(strlen(strstr(run.text, "DETAILS\n") + strlen("DETAILS\n")) <= 240 + 1);
	close_run(&run);
}

static void test_process_name_cannot_drive_the_terminal(void **state)
{
	const struct process *hostile = new_process(7, "\033[2Jx");
	struct call call = call_at("cuInit", 1, 1);

	begin_table((struct sink_options){ 0 });
	push_call_of(&run, hostile, 7, &call);
	end_run(&run);
	assert_has(run.text, "\\x1b[2Jx");
	assert_null(strchr(run.text, '\033'));
	close_run(&run);
}

static void test_colours_mark_failures_and_only_when_asked(void **state)
{
	struct call call = alloc_at("cudaMalloc", 1, 0, 4096);

	fail_call(&call, 2);
	begin_table((struct sink_options){ .color = true });
	push_call(&run, call);
	end_run(&run);
	assert_has(run.text, "\033[1;31m= cudaErrorMemoryAllocation (2)\033[0m\n");
	close_run(&run);
	begin_table((struct sink_options){ 0 });
	push_call(&run, call);
	end_run(&run);
	assert_null(strchr(run.text, '\033'));
	close_run(&run);
}

static void test_failed_leaves_out_what_succeeded(void **state)
{
	struct call call = alloc_at("cudaMalloc", 1, 0, 4096);

	fail_call(&call, 2);
	begin_table((struct sink_options){ .failed_only = true });
	push_call(&run, call_at("cuInit", 1, 1));
	push_call(&run, call);
	end_run(&run);
	assert_has_not(run.text, "cuInit");
	assert_has(run.text, "cudaMalloc");
	close_run(&run);
}

static void test_min_duration_leaves_out_the_short_and_the_unknown(void **state)
{
	struct call unfinished = call_at("cuCtxSynchronize", 1, 1);

	never_ends(&unfinished, CALL_UNFINISHED);
	begin_table((struct sink_options){ .min_duration_ns = 10000 });
	push_call(&run, call_at("cuInit", 1, 9.999));
	push_call(&run, call_at("cudaDeviceSynchronize", 2, 10));
	push_call(&run, unfinished);
	end_run(&run);
	assert_has_not(run.text, "cuInit");
	assert_has(run.text, "cudaDeviceSynchronize");
	assert_has_not(run.text, "unfinished");
	close_run(&run);
}

static void test_max_events_counts_what_is_shown(void **state)
{
	begin_table((struct sink_options){ .max_events = 2 });
	push_nested_pair(); /* one of them is hidden */
	assert_false(sink_done(run.consumer));
	push_call(&run, call_at("cuInit", 3, 1));
	assert_true(sink_done(run.consumer));
	push_call(&run, call_at("cudaFree", 4, 1));
	end_run(&run);
	assert_has(run.text, "cuInit");
	assert_has_not(run.text, "cudaFree");
	close_run(&run);
}

static void test_no_calls_leave_the_header(void **state)
{
	begin_table((struct sink_options){ 0 });
	assert_table(
		"  TIME(ms)  PROCESS    PID    TID  EVENT                    DURATION  DETAILS\n");
}

static void test_full_disk_is_an_error_that_says_so(void **state)
{
	struct sink_options options = { .out = full_disk() };
	struct err err = feed_until_error(sink_format_by_name("table")->create(&options), 3);

	assert_int_equal(err.code, -ENOSPC);
	assert_has(err.text, "cannot write the trace: No space left on device");
	fclose(options.out);
}

static void test_closed_pipe_is_an_error_that_says_so(void **state)
{
	struct sink_options options = { .out = closed_pipe() };
	struct err err = feed_until_error(sink_format_by_name("table")->create(&options), 3);

	assert_int_equal(err.code, -EPIPE);
	assert_has(err.text, "closed");
	fclose(options.out);
}

static void test_formats_are_found_by_name_and_ending(void **state)
{
	assert_string_equal(sink_format_by_name("table")->name, "table");
	assert_string_equal(sink_format_by_ending("/tmp/a.jsonl")->name, "jsonl");
	assert_string_equal(sink_format_by_ending("a.log")->name, "log");
	assert_null(sink_format_by_name("tabl"));
	assert_string_equal(sink_format_by_ending("a.txt")->name, "table");
	assert_null(sink_format_by_ending("a.text"));
	assert_null(sink_format_by_ending(".log"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_aligned_under_their_header),
		cmocka_unit_test(test_columns_widen_and_stay_wide),
		cmocka_unit_test(test_line_without_details_has_no_trailing_blanks),
		cmocka_unit_test(test_calls_without_an_end_show_that),
		cmocka_unit_test(test_nested_calls_are_hidden),
		cmocka_unit_test(test_verbose_indents_nested_calls),
		cmocka_unit_test(test_a_depth_of_a_damaged_file_makes_no_endless_line),
		cmocka_unit_test(test_narrow_terminal_shortens_the_kernel_first),
		cmocka_unit_test(test_narrow_terminal_keeps_the_error),
		cmocka_unit_test(test_details_go_on_in_the_next_line_of_a_narrow_terminal),
		cmocka_unit_test(test_template_fills_no_more_than_three_lines_of_a_narrow_terminal),
		cmocka_unit_test(test_process_name_cannot_drive_the_terminal),
		cmocka_unit_test(test_colours_mark_failures_and_only_when_asked),
		cmocka_unit_test(test_failed_leaves_out_what_succeeded),
		cmocka_unit_test(test_min_duration_leaves_out_the_short_and_the_unknown),
		cmocka_unit_test(test_max_events_counts_what_is_shown),
		cmocka_unit_test(test_no_calls_leave_the_header),
		cmocka_unit_test(test_full_disk_is_an_error_that_says_so),
		cmocka_unit_test(test_closed_pipe_is_an_error_that_says_so),
		cmocka_unit_test(test_formats_are_found_by_name_and_ending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
