// SPDX-License-Identifier: MIT
/* What reports print; what they count is tested with their analyses. */
#include "support.h"

#include "report/report.h"

static struct run run;
static struct table *table;

static void begin_report(const char *name, size_t top)
{
	struct report_choice choice;
	struct err err = { 0 };

	open_run(&run);
	assert_int_equal(report_choose(name, &choice, &err), 0);
	table = table_open(&(struct table_options){ .out = run.out, .top = top },
	                   choice.report->parts);
	begin_run(&run, report_new(choice.report, &(struct report_options){ .table = table }));
}

static void end_report(void)
{
	end_run(&run);
	table_close(table);
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void push_launch(double at_us)
{
	push_call(&run, launch_at("cuLaunchKernel", at_us, NULL));
}

/* A kernel of 5 us each 100 us, and one that comes when nobody knows any more what ran then. */
static void late_work(const char *report)
{
	struct activity kernel = { .kind = ACTIVITY_KERNEL };

	begin_report(report, 0);
	run.info.gpu_times = true;
	for (unsigned i = 1; i <= 5000; i++) {
		kernel.begin_ns = US(100 * i);
		kernel.end_ns = kernel.begin_ns + 5000;
		push_work(&run, kernel);
	}
	kernel.begin_ns = US(150);
	kernel.end_ns = US(152);
	push_work(&run, kernel);
	end_report();
}

static void test_what_busy_times_can_lack_is_said(void **state)
{
	static const char *const names[] = { "overview", "summary", "streams" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		late_work(names[i]);
		assert_has(run.text, "busy times can be short by 2.00 us in all: of work that");
		close_run(&run);
	}
}

static void test_bytes_of_copies_of_unknown_size_are_not_told(void **state)
{
	begin_report("overview", 0);
	for (int i = 0; i < 1000; i++) {
		struct call copy = copy_at("cudaMemcpy", 20 * i, DIRECTION_H2D, 0);

		copy.flags |= CALL_SIZE_UNKNOWN;
		push_call(&run, copy);
	}
	end_report();
	assert_has(run.text, "\n  H2D          1000      -        -\n");
	assert_has_not(run.text, "on average");
	close_run(&run);
}

static void test_an_overview_of_nothing_has_three_hints(void **state)
{
	begin_report("overview", 0);
	end_report();
	assert_int_equal(count_of(run.text, "\n  cuscope "), 3);
	assert_has_not(run.text, "Functions by");
	assert_has(run.text, "  there were no CUDA calls\n");
	close_run(&run);
}

static void test_losses_come_first(void **state)
{
	begin_report("overview", 0);
	run.info.lost[LOST_RING_FULL] = 7;
	end_report();
	assert_has(run.text, "Why\n  cuscope record --ring-size=SIZE   7 events were lost");
	close_run(&run);
}

static void test_the_facts_are_all_there_whatever_top_says(void **state)
{
	begin_report("overview", 1);
	push_launch(0);
	push_call(&run, copy_at("cudaMemcpy", 100, DIRECTION_H2D, 100));
	end_report();
	assert_has(run.text, "\n  Kernel Launches  1\n");
	assert_has(run.text, "\n  Copied           100 B\n");
	close_run(&run);
}

static void test_without_returns_there_are_no_durations(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 0, NULL);

	begin_report("threads", 0);
	run.info.returns = false;
	never_ends(&call, CALL_NO_RETURN);
	push_call(&run, call);
	end_report();
	assert_has(run.text, "\n  4242  4243      1        -            -        -         1 ");
	assert_has(run.text, "no durations: this trace was recorded without returns\n");
	close_run(&run);
}

static struct call copy_of(double at_us, double took_us, uint64_t bytes)
{
	struct call call = copy_at("cudaMemcpy", at_us, DIRECTION_H2D, bytes);

	call.end_ns = call.begin_ns + (uint64_t)(took_us * 1000);
	return call;
}

static void test_the_slowest_are_as_many_as_top_says(void **state)
{
	begin_report("slowest", 3);
	for (int i = 0; i < 30; i++)
		push_call(&run, copy_of(100.0 * i, i, i));
	end_report();
	assert_has(run.text, "  29.00 us       2.900  4242  4243  vectorAdd  cudaMemcpy");
	assert_has_not(run.text, "Count");
	assert_int_equal(count_of(run.text, "cudaMemcpy"), 3);
	close_run(&run);
}

/* What they gave back aside. */
static void test_slow_calls_that_are_alike_are_one_row(void **state)
{
	begin_report("slowest", 0);
	for (int i = 0; i < 30; i++)
		push_call(&run, alloc_at("cudaMalloc", 100.0 * i, 0x7f0000000000 + i, 4096));
	push_call(&run, alloc_at("cudaMalloc", 9000, 0x7f0000000000, 8192));
	push_call(&run, copy_of(10000, 500, 64));
	end_report();
	assert_has(run.text, "\n  Count   Duration  Begin (ms)   PID   TID  Process    Function    "
	                     "Details\n"
	                     "      1  500.00 us      10.000  4242  4243  vectorAdd  cudaMemcpy  "
	                     "H2D 64 B\n"
	                     "     30   10.00 us       0.000  4242  4243  vectorAdd  cudaMalloc  "
	                     "size=4.00 KiB -> 0x7f0000000000\n"
	                     "      1   10.00 us       9.000  4242  4243  vectorAdd  cudaMalloc  "
	                     "size=8.00 KiB -> 0x7f0000000000\n"
	                     "  Count: calls that are alike, of the longest 32; all else is of the "
	                     "longest of them\n");
	close_run(&run);
}

static void push_failure(const char *name, double at_us, int code)
{
	struct call call = call_at(name, at_us, 1);

	fail_call(&call, code);
	push_call(&run, call);
}

static void test_failures_after_the_shutdown_of_cuda_are_harmless(void **state)
{
	begin_report("overview", 0);
	push_failure("cuModuleUnload", 0, 4);
	push_failure("cudaFree", 10, 4);
	end_report();
	assert_has(run.text, "\n  Failed Calls     2\n");
	assert_has(run.text, "\n  Failed At Exit   2\n");
	assert_has(run.text, "harmless: 2 that came at the end of the process, when CUDA was shut");
	assert_has_not(run.text, "cuscope report FILE errors");
	close_run(&run);
}

static void test_true_failures_are_told_before_harmless_ones(void **state)
{
	begin_report("overview", 0);
	for (int i = 0; i < 27; i++)
		push_failure("cuModuleUnload", i, 4);
	push_failure("cudaMalloc", 30, 2);
	end_report();
	assert_has(run.text, "cuscope report FILE errors        1 call failed: which");
	assert_true(strstr(run.text, "cudaErrorMemoryAllocation") <
	            strstr(run.text, "CUDA_ERROR_DEINITIALIZED"));
	close_run(&run);
}

static void test_memory_that_stays_until_the_exit_is_no_alarm(void **state)
{
	begin_report("overview", 0);
	push_call(&run, alloc_at("cudaMalloc", 0, 0x1000, 4096));
	push_exit(&run, the_process(), 100);
	end_report();
	assert_has(run.text, "4.00 KiB were kept until the process ended, as is usual for caching "
	                     "allocators: the biggest, and who made them");
	close_run(&run);
}

static void test_names_of_kernels_fit_a_page(void **state)
{
	static char name[300];

	memset(name, 'k', sizeof(name) - 1);
	begin_report("overview", 0);
	push_call(&run, launch_at("cuLaunchKernel", 0, new_kernel(name, true)));
	end_report();
	for (char *line = strtok(run.text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 120);
	close_run(&run);
}

static void test_functions_are_those_that_no_other_call_made(void **state)
{
	struct call inner = alloc_at("cuMemAlloc_v2", 1, 0x1000, 64);

	begin_report("overview", 0);
	inner.flags |= CALL_NESTED;
	push_call(&run, inner);
	push_call(&run, alloc_at("cudaMalloc", 0, 0x1000, 64));
	end_report();
	assert_has(run.text, "  cudaMalloc\n");
	assert_has_not(run.text, "cuMemAlloc_v2");
	close_run(&run);
}

static void test_an_overview_without_returns_knows_no_durations(void **state)
{
	struct call call = call_at("cudaMalloc", 0, 0);

	begin_report("overview", 0);
	run.info.returns = false;
	never_ends(&call, CALL_NO_RETURN);
	push_call(&run, call);
	end_report();
	assert_has(run.text, "      -      1        -    -  cudaMalloc\n");
	assert_has_not(run.text, "slowest");
	assert_int_equal(count_of(run.text, "\n  cuscope "), 3);
	close_run(&run);
}

static void test_what_is_live_is_not_known_of_a_part_of_the_calls(void **state)
{
	begin_report("overview", 0);
	run.info.estimate_scale = 2;
	push_call(&run, alloc_at("cudaMalloc", 0, 0x1000, 4096));
	end_report();
	assert_has(run.text, "estimated: about 2.00 times as much happened as was seen\n");
	assert_has_not(run.text, "Memory Peak");
	assert_has_not(run.text, "cuscope report FILE memory");
	close_run(&run);
}

static void test_other_losses_are_no_matter_of_the_rings(void **state)
{
	begin_report("overview", 0);
	run.info.lost[LOST_NO_ENTRY] = 3;
	end_report();
	assert_has(run.text, "lost 3: ");
	assert_has_not(run.text, "--ring-size");
	close_run(&run);
}

static void test_a_part_of_the_trace_is_as_long_as_the_part(void **state)
{
	const struct report_options part = { .from_ns = 1000, .to_ns = 3000 }, all = { 0 },
				    beyond = { .from_ns = 1499999000, .to_ns = 2000000000 },
				    after = { .from_ns = 2000000000 };
	const struct run_info info = default_run_info(); /* 1.5 s */

	assert_int_equal(report_duration_ns(&part, &info), 2000);
	assert_int_equal(report_duration_ns(&all, &info), 1500000000);
	assert_int_equal(report_duration_ns(&beyond, &info), 1000);
	assert_int_equal(report_duration_ns(&after, &info), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_busy_times_can_lack_is_said),
		cmocka_unit_test(test_bytes_of_copies_of_unknown_size_are_not_told),
		cmocka_unit_test(test_an_overview_of_nothing_has_three_hints),
		cmocka_unit_test(test_losses_come_first),
		cmocka_unit_test(test_the_facts_are_all_there_whatever_top_says),
		cmocka_unit_test(test_without_returns_there_are_no_durations),
		cmocka_unit_test(test_the_slowest_are_as_many_as_top_says),
		cmocka_unit_test(test_slow_calls_that_are_alike_are_one_row),
		cmocka_unit_test(test_failures_after_the_shutdown_of_cuda_are_harmless),
		cmocka_unit_test(test_true_failures_are_told_before_harmless_ones),
		cmocka_unit_test(test_memory_that_stays_until_the_exit_is_no_alarm),
		cmocka_unit_test(test_names_of_kernels_fit_a_page),
		cmocka_unit_test(test_functions_are_those_that_no_other_call_made),
		cmocka_unit_test(test_an_overview_without_returns_knows_no_durations),
		cmocka_unit_test(test_what_is_live_is_not_known_of_a_part_of_the_calls),
		cmocka_unit_test(test_other_losses_are_no_matter_of_the_rings),
		cmocka_unit_test(test_a_part_of_the_trace_is_as_long_as_the_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
