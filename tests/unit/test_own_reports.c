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
	begin_run(&run,
	          choice.report->create(choice.report, &(struct report_options){ .table = table }));
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

static void test_a_long_gap_names_three_functions(void **state)
{
	static const char *const names[] = { "cudaFree", "cudaMemcpy", "cudaMalloc", "cudaMemset",
		                             "cudaSetDevice" };

	begin_report("launches", 0);
	push_launch(0);
	for (size_t i = 0; i < 5; i++)
		push_call(&run, call_at(names[i], 10 + 20 * (double)i, 1 + (double)i));
	push_call(&run, call_at("cudaMemset", 150, 4));
	push_launch(205);
	end_report();
	assert_has(run.text, "  200.00 us  4242  4243    181.00 us  2 cudaMemset 8.00 us, "
	                     "cudaSetDevice 5.00 us, cudaMalloc 3.00 us, 2 others 3.00 us\n");
	close_run(&run);
}

static void test_a_gap_without_calls_says_so(void **state)
{
	begin_report("launches", 0);
	push_launch(0);
	push_launch(55);
	end_report();
	assert_has(run.text, "  50.00 us  4242  4243     50.00 us  not in CUDA\n");
	close_run(&run);
}

static void test_a_command_is_told_once_for_the_more_urgent_reason(void **state)
{
	begin_report("overview", 0);
	push_call(&run, call_at("cudaDeviceSynchronize", 0, 50000));
	for (int i = 0; i < 1000; i++)
		push_call(&run, copy_at("cudaMemcpy", 60000 + 20 * i, DIRECTION_H2D, 100));
	end_report();
	assert_int_equal(count_of(run.text, "cuscope report FILE streams "), 1);
	assert_has(run.text, "83 % of the time in CUDA calls is waiting for the GPU");
	assert_has_not(run.text, "1000 copies of");
	close_run(&run);
}

static void test_small_copies_are_told(void **state)
{
	begin_report("overview", 0);
	for (int i = 0; i < 1000; i++)
		push_call(&run, copy_at("cudaMemcpy", 20 * i, DIRECTION_H2D, 2048));
	end_report();
	assert_has(run.text, "1000 copies of 2.00 KiB on average: fewer and larger ones cost less");
	close_run(&run);
}

static void test_an_overview_of_nothing_has_three_hints(void **state)
{
	begin_report("overview", 0);
	end_report();
	assert_int_equal(count_of(run.text, "\n  cuscope "), 3);
	assert_has_not(run.text, "Functions by");
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

static void test_the_slowest_are_as_many_as_top_says(void **state)
{
	begin_report("slowest", 3);
	for (int i = 0; i < 30; i++)
		push_call(&run, call_at("cudaSetDevice", 100.0 * i, i));
	end_report();
	assert_has(run.text, "  29.00 us       2.900  4242  4243  vectorAdd  cudaSetDevice");
	assert_int_equal(count_of(run.text, "cudaSetDevice"), 3);
	close_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_long_gap_names_three_functions),
		cmocka_unit_test(test_a_gap_without_calls_says_so),
		cmocka_unit_test(test_a_command_is_told_once_for_the_more_urgent_reason),
		cmocka_unit_test(test_small_copies_are_told),
		cmocka_unit_test(test_an_overview_of_nothing_has_three_hints),
		cmocka_unit_test(test_losses_come_first),
		cmocka_unit_test(test_the_facts_are_all_there_whatever_top_says),
		cmocka_unit_test(test_without_returns_there_are_no_durations),
		cmocka_unit_test(test_the_slowest_are_as_many_as_top_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
