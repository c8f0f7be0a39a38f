// SPDX-License-Identifier: MIT
/* What the report `gaps` says: of models whose verdict is known, and in its edges. */
#include "support.h"

#include "report/report.h"

static struct run run;
static struct table *table;
static uint64_t correlation;
static double model_at_us;
static struct kernel *gemm; /* what runs; NULL: make one */

static void begin_report(enum table_form form, uint64_t gap_ns, size_t top)
{
	struct report_choice choice;
	struct err err = { 0 };

	open_run(&run);
	run.info.gpu_times = true;
	correlation = 0;
	model_at_us = 0;
	assert_int_equal(report_choose("gaps", &choice, &err), 0);
	table = table_open(&(struct table_options){ .out = run.out, .form = form, .top = top },
	                   true);
	begin_run(&run,
	          choice.report->create(choice.report, &(struct report_options){
							       .table = table, .gap_ns = gap_ns }));
}

static void end_report(void)
{
	end_run(&run);
	table_close(table);
}

static uint64_t ask(const char *function, double at_us, double duration_us)
{
	struct call call = call_at(function, at_us, duration_us);

	call.correlation = ++correlation;
	push_call(&run, call);
	return correlation;
}

static void kernel(uint64_t asked_by, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .context = 1,
		                     .stream = 7,
		                     .correlation = asked_by,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };
	struct event event = activity_event(the_process(), &activity);

	gemm = gemm ? gemm : new_kernel("void gemm<float>(Params)", true);
	activity.kernel = gemm;
	push(&run, &event);
}

/*
 * A loop of launches, each of 5 us, that begins one every `period_us`; a kernel begins 8 us after
 * its launch, or when the one before has ended. With `wait` the host waits after each.
 */
static void run_model(int launches, double period_us, double kernel_us, bool wait)
{
	double at_us = model_at_us, free_us = 0;

	for (int i = 0; i < launches; i++) {
		uint64_t asked = ask("cuLaunchKernel", at_us, 5);
		double begin_us = at_us + 8 > free_us + 1 ? at_us + 8 : free_us + 1;

		free_us = begin_us + kernel_us;
		kernel(asked, begin_us, free_us);
		if (wait)
			ask("cudaStreamSynchronize", at_us + 5.5, free_us + 5 - at_us - 5.5);
		at_us = wait ? free_us + 5 + period_us : at_us + period_us;
	}
}

/* ---- verdicts ------------------------------------------------------------------------------ */

static void test_small_kernels_one_after_the_other_are_launch_bound(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(1000, 6, 2, false);
	end_report();
	assert_has(run.text, "\n    0  launch-bound: busy 33 % of 5.996 ms; 67 % waiting for the "
	                     "host to ask\n");
	assert_has(run.text, "    -  why: 999 gaps of 4.00 us on average, most of it while the "
	                     "host was asking, in cuLaunchKernel\n"
	                     "    -  try: fewer and larger launches: ");
	close_run(&run);
}

static void test_a_host_that_does_other_things_is_launch_bound(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(100, 600, 20, false);
	end_report();
	assert_has(run.text, "\n    0  launch-bound: busy 3 % of 59.420 ms; 97 % waiting for the "
	                     "host to ask\n");
	assert_has(run.text, "until it asked, the host was outside of CUDA for 100 %\n"
	                     "    -  try: fewer and larger launches: ");
	close_run(&run);
}

static void test_a_host_that_takes_long_has_to_be_looked_at(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(100, 5000, 20, false);
	end_report();
	assert_has(run.text, "\n    0  launch-bound: ");
	assert_has(run.text, "    -  try: prepare work while the GPU runs");
	close_run(&run);
}

/* Its start, 2 s in which the host did not ask after a wait, is more than all of the rest. */
static void test_the_steady_state_is_what_is_judged(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 10, 100);
	ask("cudaStreamSynchronize", 10, 100);
	model_at_us = 2000092;
	run_model(1000, 6, 200, false);
	end_report();
	assert_has(run.text, "\n    0  GPU-bound: busy 99.5 % of 201.089 ms\n");
	assert_has(run.text, "\n    -  apart from one gap of 2.000 s at 100.00 us (cause: host); "
	                     "with it, busy 9 % of 2.201 s\n");
	assert_has(run.text, "  Apart: few, and so long");
	close_run(&run);
}

static void test_of_several_that_are_apart_the_longest_is_named(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	for (int i = 0; i < 150; i++) {
		double at_us = 30 * i + (i > 50 ? 40000 : 0) + (i > 100 ? 60000 : 0);

		kernel(ask("cuLaunchKernel", at_us, 5), at_us + 8, at_us + 28);
	}
	end_report();
	assert_has(run.text, "launch-bound: busy 67 % of ");
	assert_has(run.text,
	           "apart from 2 gaps of 100.020 ms in all, the longest of 60.010 ms at ");
	assert_has(run.text, " (cause: host); with them, busy 3 % of ");
	close_run(&run);
}

static void test_large_kernels_are_gpu_bound(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(1000, 6, 200, false);
	end_report();
	assert_has(run.text, "\n    0  GPU-bound: busy 99.5 % of 200.999 ms\n");
	assert_has(run.text, "    -  why: without any gap it would take 0.5 % less time\n"
	                     "    -  try: faster kernels");
	close_run(&run);
}

static void test_a_wait_after_each_kernel_is_synchronisation_bound(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(100, 30, 20, true);
	end_report();
	assert_has(run.text, "\n    0  synchronisation-bound: busy 32 %");
	assert_has(run.text, "why: 99 gaps of 43.00 us on average, most in "
	                     "cudaStreamSynchronize\n    -  try: ask for the next work");
	close_run(&run);
}

static void test_a_full_queue_of_tiny_kernels(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(10000, 2.5, 2, false);
	end_report();
	assert_has(run.text, "\n    0  many small kernels: busy 67 %");
	close_run(&run);
}

static void test_nothing_that_explains_it(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	kernel(0, 0, 100);
	kernel(0, 200, 300);
	end_report();
	assert_has(run.text, "\n    0  not known: busy 67 % of 300.00 us; 33 % idle, and nothing "
	                     "recorded tells why\n");
	assert_has(run.text, "was not recorded, or is more than 1048576 calls back\n");
	close_run(&run);
}

/* ---- what is shown ------------------------------------------------------------------------- */

static void test_a_trace_without_gpu_times_says_so(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run.info.gpu_times = false;
	ask("cuLaunchKernel", 0, 5);
	end_report();
	assert_has(run.text, "GPU times were not recorded");
	assert_has_not(run.text, "Longest");
	close_run(&run);
}

static void test_programs_find_all_parts_also_of_nothing(void **state)
{
	begin_report(TABLE_FORM_JSON, 0, 0);
	end_report();
	assert_has(run.text, "\"conclusion\": []");
	assert_has(run.text, "\"gpus\": []");
	assert_has(run.text, "\"processes\": []");
	assert_has(run.text, "\"causes\": []");
	assert_has(run.text, "\"longest\": []");
	assert_has(run.text, "\"streams\": []");
	assert_has(run.text, "\"stream_causes\": []");
	assert_has(run.text, "\"longest_of_streams\": []");
	close_run(&run);
}

static void test_the_threshold_can_be_chosen(void **state)
{
	begin_report(TABLE_FORM_JSON, 4000, 0);
	run_model(10, 6, 2, false);
	end_report();
	assert_has(run.text, "\"Gaps\": 9, \"In Gaps (ns)\": 36000, \"Longest (ns)\": 4000, "
	                     "\"Shorter\": 0");
	close_run(&run);
	begin_report(TABLE_FORM_JSON, 4001, 0);
	run_model(10, 6, 2, false);
	end_report();
	assert_has(run.text, "\"Gaps\": 0, \"In Gaps (ns)\": 0, \"Longest (ns)\": 0, "
	                     "\"Shorter\": 9, \"In Shorter (ns)\": 36000");
	close_run(&run);
}

/* In each of twenty gaps the host is in a call of that name. */
static void twenty_gaps(const char *(*name)(int i))
{
	for (int i = 0; i < 20; i++) {
		uint64_t asked = ask("cuLaunchKernel", 1000 * i, 5);

		kernel(asked, 1000 * i + 8, 1000 * i + 100);
		ask(name(i), 1000 * i + 200, 50 + i);
	}
}

static size_t count_of(const char *part)
{
	size_t n = 0;

	for (const char *at = run.text; (at = strstr(at, part)); at += strlen(part))
		n++;
	return n;
}

static const char *a_name_each(int i)
{
	static char names[20][16];

	snprintf(names[i], sizeof(names[i]), "cudaFree_%d", i);
	return names[i];
}

static const char *always_the_same(int i)
{
	return "cudaFree";
}

static void test_top_is_how_many_of_the_longest(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 12);
	twenty_gaps(a_name_each);
	end_report();
	assert_int_equal(count_of("  in cudaFree_"), 12);
	assert_has_not(run.text, "Count");
	close_run(&run);
}

static void test_gaps_that_are_alike_are_one_row(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	twenty_gaps(always_the_same);
	end_report();
	assert_has(run.text, "\nLongest gaps\n  Count  Begin (ms)        Gap  ");
	assert_has(run.text, "\n     19       0.100  908.00 us    0  ");
	assert_int_equal(count_of("  in cudaFree 5"), 1);
	assert_has(run.text,
	           "\n  Count: gaps that are alike, of the longest 19; all else is of the "
	           "longest of them\n");
	close_run(&run);
}

static void test_a_long_gap_tells_all(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 10, 100);
	ask("cudaStreamSynchronize", 20, 100);
	ask("cudaGraphInstantiate", 150, 300);
	kernel(ask("cuLaunchKernel", 500, 5), 510, 600);
	end_report();
	assert_has(run.text, "0.100  410.00 us    0  4242  4243     7  synchronisation  waited in "
	                     "cudaStreamSynchronize, in cudaGraphInstantiate 300.00 us (73 %), "
	                     "not in CUDA 80.00 us (20 %)  void gemm<float>(Params)  "
	                     "void gemm<float>(Params)\n");
	close_run(&run);
}

static void test_long_names_are_shortened_for_people(void **state)
{
	static const char name[] = "void reduce_kernel<Op<float, void (*)(float, float, float)> "
				   ">(Op<float, void (*)(float, float, float)>)";

	for (enum table_form form = TABLE_FORM_TEXT; form <= TABLE_FORM_CSV; form++) {
		begin_report(form, 0, 0);
		gemm = new_kernel(name, true);
		kernel(ask("cuLaunchKernel", 0, 5), 10, 100);
		kernel(ask("cuLaunchKernel", 500, 5), 510, 600);
		end_report();
		if (form == TABLE_FORM_TEXT)
			assert_has_not(run.text, "float");
		else
			assert_has(run.text, name);
		close_run(&run);
	}
	gemm = NULL;
}

static void test_calls_of_less_than_a_hundredth_of_a_gap_are_not_told(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 10, 100);
	ask("cudaGetDevice", 200, 4);
	kernel(ask("cuLaunchKernel", 500, 5), 510, 600);
	ask("cudaSetDevice", 700, 5);
	kernel(ask("cuLaunchKernel", 1000, 5), 1010, 1100);
	end_report();
	assert_has(run.text, "  not in CUDA 396.00 us (97 %)  ");
	assert_has(run.text, "  in cudaSetDevice 5.00 us (1 %), not in CUDA 395.00 us (96 %)  ");
	close_run(&run);
}

static void test_hardly_busy_is_more_than_nothing(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run_model(100, 600, 2, false);
	end_report();
	assert_has(run.text, "launch-bound: busy 0.3 % of 59.402 ms; 100 % waiting");
	close_run(&run);
}

static void test_an_error_of_the_clock_is_told(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run.info.gpu_clock_error_ns = 3500;
	run_model(10, 6, 2, false);
	end_report();
	assert_has(run.text, "times of the GPU can be off by 3.50 us against those of calls, so "
	                     "causes of gaps that are not longer can be wrong\n");
	close_run(&run);
}

static void test_losses_are_told(void **state)
{
	begin_report(TABLE_FORM_TEXT, 0, 0);
	run.info.lost[LOST_GPU_RING] = 3;
	run.info.lost[LOST_GPU_BUFFERS] = 4;
	run.info.lost[LOST_GPU_UNRECORDED] = 50;
	run_model(10, 6, 2, false);
	end_report();
	assert_has(run.text, "57 activities were lost: gaps are counted where they ran\n");
	close_run(&run);
}

static void test_windows_are_told(void **state)
{
	struct range range = { .kind = RANGE_NOT_MEASURED,
		               .begin_ns = US(2000),
		               .end_ns = US(9000),
		               .name = "between windows" };

	begin_report(TABLE_FORM_TEXT, 0, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 10, 1000);
	push(&run, &(struct event){ .type = EVENT_RANGE,
	                            .time_ns = range.end_ns,
	                            .process = the_process(),
	                            .range = &range });
	kernel(ask("cuLaunchKernel", 9990, 5), 10000, 10010);
	end_report();
	assert_has(run.text, "GPU-bound: busy 100 % of 1.000 ms\n");
	assert_has(run.text, "  9.000 ms      0      0 ns          100.0\n");
	assert_has(run.text, "Not Measured: between windows, neither busy nor idle\n");
	close_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_kernels_one_after_the_other_are_launch_bound),
		cmocka_unit_test(test_a_host_that_does_other_things_is_launch_bound),
		cmocka_unit_test(test_a_host_that_takes_long_has_to_be_looked_at),
		cmocka_unit_test(test_the_steady_state_is_what_is_judged),
		cmocka_unit_test(test_of_several_that_are_apart_the_longest_is_named),
		cmocka_unit_test(test_large_kernels_are_gpu_bound),
		cmocka_unit_test(test_long_names_are_shortened_for_people),
		cmocka_unit_test(test_a_wait_after_each_kernel_is_synchronisation_bound),
		cmocka_unit_test(test_a_full_queue_of_tiny_kernels),
		cmocka_unit_test(test_nothing_that_explains_it),
		cmocka_unit_test(test_a_trace_without_gpu_times_says_so),
		cmocka_unit_test(test_programs_find_all_parts_also_of_nothing),
		cmocka_unit_test(test_the_threshold_can_be_chosen),
		cmocka_unit_test(test_top_is_how_many_of_the_longest),
		cmocka_unit_test(test_gaps_that_are_alike_are_one_row),
		cmocka_unit_test(test_a_long_gap_tells_all),
		cmocka_unit_test(test_calls_of_less_than_a_hundredth_of_a_gap_are_not_told),
		cmocka_unit_test(test_hardly_busy_is_more_than_nothing),
		cmocka_unit_test(test_an_error_of_the_clock_is_told),
		cmocka_unit_test(test_losses_are_told),
		cmocka_unit_test(test_windows_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
