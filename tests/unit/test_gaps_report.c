// SPDX-License-Identifier: MIT
/* What the reports `gaps` and `overlap` say: time as `why` has it, divided further. */
#include "stack_events.h"

#include "report/report.h"

#define THE_TID 4243 /* of push_call() */

static struct run run;
static struct table *table;
static uint64_t correlation;
static struct kernel *gemm; /* what runs; NULL: make one */

static void begin_report(const char *name, enum table_form form, struct report_options options,
                         size_t top)
{
	struct report_choice choice;
	struct err err = { 0 };

	open_run(&run);
	run.info.gpu_times = true;
	correlation = 0;
	assert_int_equal(report_choose(name, &choice, &err), 0);
	options.names = choice.names;
	table = table_open(&(struct table_options){ .out = run.out, .form = form, .top = top },
	                   true);
	options.table = table;
	begin_run(&run, report_new(choice.report, &options));
}

static void begin_gaps(enum table_form form, uint64_t gap_ns, size_t top)
{
	begin_report("gaps", form, (struct report_options){ .gap_ns = gap_ns }, top);
}

static void end_report(void)
{
	end_run(&run);
	table_close(table);
}

static uint64_t ask_at(const char *function, double at_us, double duration_us, uint32_t line)
{
	struct call call = call_at(function, at_us, duration_us);

	call.correlation = ++correlation;
	call.stack = line ? stack_of_line(line) : NULL;
	push_call(&run, call);
	return correlation;
}

static uint64_t ask(const char *function, double at_us, double duration_us)
{
	return ask_at(function, at_us, duration_us, 0);
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

static void rest(enum wait_kind wait, double begin_us, double end_us, uint32_t line)
{
	struct sample sample =
		sample_of(SAMPLE_OFF_CPU, end_us - begin_us, line ? stack_of_line(line) : NULL);
	struct event event;

	sample.wait = wait;
	sample.blocked = BLOCKED_INTERRUPT;
	event = sample_event(the_process(), THE_TID, end_us, &sample);
	push(&run, &event);
}

static void exits(double at_us)
{
	struct event event = process_event(EVENT_EXIT, the_process(), at_us);

	push(&run, &event);
}

/* `launches` kernels of kernel_us, each 8 us after its launch, one every period_us. */
static void run_model(int launches, double period_us, double kernel_us)
{
	for (int i = 0; i < launches; i++)
		kernel(ask("cuLaunchKernel", period_us * i, 5), period_us * i + 8,
		       period_us * i + 8 + kernel_us);
	exits(period_us * launches);
}

static size_t count_of(const char *part)
{
	size_t n = 0;

	for (const char *at = run.text; (at = strstr(at, part)); at += strlen(part))
		n++;
	return n;
}

/* ---- idle time ----------------------------------------------------------------------------- */

static void test_idle_time_by_cause_and_place(void **state)
{
	begin_gaps(TABLE_FORM_TEXT, 0, 0);
	kernel(ask_at("cuLaunchKernel", 0, 5, 30), 8, 100);
	rest(WAIT_SLEEP, 200, 900, 27);
	kernel(ask_at("cuLaunchKernel", 1000, 5, 30), 1008, 1100);
	exits(2000);
	end_report();
	assert_has(run.text,
	           "    0  4242       0.008  1.092 ms  184.00 us      16.8  908.00 us     1  "
	           "908.00 us  908.00 us  ");
	assert_has(run.text, "    0  4242  700.00 us       64.1  sleep       asleep\n"
	                     "    0  4242  200.00 us       18.3  computing   computing\n");
	assert_has(run.text, "\nWhere, and in which thread\n");
	assert_has(run.text, "  sleep       -                 4242  4243  train.py:27 ");
	close_run(&run);
}

/* Times of a damaged recording are so long that sums of them are not exact. */
static void test_busy_is_never_less_than_nothing(void **state)
{
	const double end_us = 1.2e15;

	begin_gaps(TABLE_FORM_CSV, 0, 0);
	kernel(ask_at("cuLaunchKernel", 0, 5, 63), 8, 8.1);
	for (uint32_t i = 0; i < 60; i++)
		rest(WAIT_SLEEP, 1000 + 400 * i, 1387 + 400 * i, 1 + i);
	rest(WAIT_DISK, 40000, end_us - 1000, 61);
	kernel(ask_at("cuLaunchKernel", end_us, 5, 63), end_us + 8, end_us + 9);
	exits(end_us + 1000);
	end_report();
	assert_has(run.text, "\n0,4242,8000,1200000000000001024,0,0.0,1200000000000001024,");
	close_run(&run);
}

/* The longest, then those that come next in time; each with what it was. */
static void test_a_long_gap_tells_all(void **state)
{
	begin_gaps(TABLE_FORM_TEXT, 0, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 8, 100);
	rest(WAIT_DISK, 150, 240, 0);
	ask("cudaMalloc", 250, 250);
	kernel(ask("cuLaunchKernel", 500, 5), 508, 600);
	exits(1000);
	end_report();
	assert_has(run.text, "\nLongest gaps\n");
	assert_has(run.text, "      1       0.100  408.00 us    0  4242  void gemm<float>(Params)  "
	                     "void gemm<float>(Params)       61.3  allocation  ");
	assert_has(run.text, "disk 22 %");
	assert_has(run.text, "  cudaMalloc    4242  4243  ");
	close_run(&run);
}

static void test_which_call_it_was_is_told_without_stacks(void **state)
{
	begin_gaps(TABLE_FORM_CSV, 0, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 8, 100);
	ask("cudaMalloc", 150, 250);
	kernel(ask("cuLaunchKernel", 402, 5), 410, 600);
	exits(1000);
	end_report();
	assert_has(run.text, ",allocation,cudaMalloc,4242,4243,,");
	close_run(&run);
}

/* ---- what is shown ------------------------------------------------------------------------- */

static void test_a_trace_without_gpu_times_says_so(void **state)
{
	begin_gaps(TABLE_FORM_TEXT, 0, 0);
	run.info.gpu_times = false;
	ask("cuLaunchKernel", 0, 5);
	end_report();
	assert_has(run.text, "GPU times were not recorded");
	assert_has_not(run.text, "Longest");
	close_run(&run);
}

static void test_of_a_choice_nothing_is_judged(void **state)
{
	begin_report("gaps", TABLE_FORM_TEXT, (struct report_options){ .chosen = true }, 0);
	run_model(10, 100, 20);
	end_report();
	assert_has(run.text, "Only a choice of calls or processes was recorded or read");
	assert_has_not(run.text, "Longest");
	close_run(&run);
}

static void test_programs_find_all_parts_also_of_nothing(void **state)
{
	begin_gaps(TABLE_FORM_JSON, 0, 0);
	end_report();
	assert_has(run.text, "\"gpus\": []");
	assert_has(run.text, "\"causes\": []");
	assert_has(run.text, "\"places\": []");
	assert_has(run.text, "\"longest\": []");
	close_run(&run);
}

static void test_the_threshold_can_be_chosen(void **state)
{
	begin_gaps(TABLE_FORM_JSON, 4000, 0);
	run_model(10, 6, 2);
	end_report();
	assert_has(run.text, "\"Gaps\": 9, \"In Gaps (ns)\": 36000, \"Longest (ns)\": 4000, "
	                     "\"Shorter\": 0");
	close_run(&run);
	begin_gaps(TABLE_FORM_JSON, 4001, 0);
	run_model(10, 6, 2);
	end_report();
	assert_has(run.text, "\"Gaps\": 0, \"In Gaps (ns)\": 0, \"Longest (ns)\": 0, "
	                     "\"Shorter\": 9, \"In Shorter (ns)\": 36000");
	close_run(&run);
}

static void test_gaps_that_are_alike_are_one_row(void **state)
{
	begin_gaps(TABLE_FORM_TEXT, 0, 0);
	run_model(20, 1000, 92);
	end_report();
	assert_has(run.text, "\n     19       0.100  908.00 us    0  ");
	assert_has(run.text,
	           "\n  Count: gaps that are alike, of the longest 19; all else is of the "
	           "longest of them\n");
	close_run(&run);
}

static void test_top_is_how_many_of_the_longest(void **state)
{
	static const char *const calls[] = { "cudaMalloc", "cuModuleLoad",
		                             "cudaDeviceSynchronize" };

	begin_gaps(TABLE_FORM_TEXT, 0, 2);
	for (int i = 0; i < 4; i++) {
		kernel(ask("cuLaunchKernel", 1000 * i, 5), 1000 * i + 8, 1000 * i + 100);
		ask(calls[i % 3], 1000 * i + 200, 750);
	}
	exits(4000);
	end_report();
	assert_int_equal(count_of("  void gemm<float>(Params)  void gemm<float>(Params)"), 2);
	close_run(&run);
}

/* Five functions of Python that call each other. */
static const struct stack *a_deep_stack(void)
{
	static const char *const names[] = { "decode", "collate", "fetch", "epoch", "train" };
	static struct stack_frame frames[ARRAY_SIZE(names)];
	static const struct stack_frame *pointers[ARRAY_SIZE(names)];
	static struct stack stack = { .id = 1000,
		                      .n_frames = ARRAY_SIZE(names),
		                      .frames = pointers };

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		frames[i] = (struct stack_frame){ .id = 1000 + i,
			                          .kind = FRAME_PYTHON,
			                          .function = names[i],
			                          .file = "deep.py",
			                          .line = i + 1 };
		pointers[i] = &frames[i];
	}
	return &stack;
}

/* Whole chains only where they are asked for. */
static void test_whole_stacks_on_demand(void **state)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, 700, a_deep_stack());
	struct event event = sample_event(the_process(), THE_TID, 900, &sample);

	sample.wait = WAIT_SLEEP;
	for (int whole = 0; whole < 2; whole++) {
		begin_report("gaps", TABLE_FORM_CSV, (struct report_options){ .stacks = whole }, 0);
		kernel(ask("cuLaunchKernel", 0, 5), 8, 100);
		push(&run, &event);
		kernel(ask("cuLaunchKernel", 1000, 5), 1008, 1100);
		exits(2000);
		end_report();
		assert_has(run.text, whole ? ",deep.py:5 train > deep.py:4 epoch > deep.py:3 fetch "
		                             "> deep.py:2 collate > deep.py:1 decode,"
		                           : ",... > deep.py:3 fetch > deep.py:2 collate > "
		                             "deep.py:1 decode,");
		close_run(&run);
	}
}

static void test_long_names_are_shortened_for_people(void **state)
{
	static const char name[] = "void reduce_kernel<Op<float, void (*)(float, float, float)> "
				   ">(Op<float, void (*)(float, float, float)>)";

	for (enum table_form form = TABLE_FORM_TEXT; form <= TABLE_FORM_CSV; form++) {
		begin_gaps(form, 0, 0);
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

static void test_clocks_that_differ_are_told(void **state)
{
	begin_gaps(TABLE_FORM_TEXT, 0, 0);
	run.info.gpu_clock_error_ns = 3000;
	run_model(10, 100, 20);
	end_report();
	assert_has(run.text, "times of the GPU can be off by 3.00 us against those of calls");
	close_run(&run);
}

/* Of GPUs that are seen from outside what ran is not known, of copies not where to. */
static void gpu_was(double begin_us, double end_us, int kernels, int copies)
{
	struct gpu_metrics_sample sample = { .source = GPU_METRICS_STRETCHES,
		                             .begin_ns = US(begin_us),
		                             .end_ns = US(end_us) };
	struct event event = { .type = EVENT_METRICS,
		               .time_ns = US(end_us),
		               .process = the_process(),
		               .metrics = &sample };

	for (size_t i = 0; i < GPU_METRICS; i++)
		sample.value[i] = GPU_METRIC_UNKNOWN;
	sample.value[GPU_METRIC_BUSY] = 100 * kernels;
	sample.value[GPU_METRIC_MEMORY_BUSY] = 100 * copies;
	push(&run, &event);
}

static void test_what_ran_is_not_known_from_outside(void **state)
{
	begin_gaps(TABLE_FORM_CSV, 0, 0);
	ask("cuLaunchKernel", 95, 5);
	gpu_was(0, 100, 0, 0);
	gpu_was(100, 200, 100, 0);
	gpu_was(200, 700, 0, 0);
	ask("cudaMemcpy", 690, 110);
	gpu_was(700, 800, 0, 100);
	gpu_was(800, 1200, 0, 0);
	ask("cuLaunchKernel", 1195, 5);
	gpu_was(1200, 1300, 100, 0);
	exits(2000);
	end_report();
	assert_has(run.text, ",(not known),(not known),");
	assert_has_not(run.text, "[CUDA");
	close_run(&run);
	begin_gaps(TABLE_FORM_TEXT, 0, 0);
	run.info.stretches.interval_ns = 10000;
	ask("cuLaunchKernel", 95, 5);
	gpu_was(0, 100, 0, 0);
	gpu_was(100, 200, 100, 0);
	end_report();
	assert_has(run.text, "  GPUs were seen from outside: when they were busy is known within ");
	close_run(&run);
}

/* ---- overlap ------------------------------------------------------------------------------- */

static void test_overlap_divides_the_same_time(void **state)
{
	begin_report("overlap", TABLE_FORM_CSV, (struct report_options){ 0 }, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 100, 200);
	kernel(ask("cuLaunchKernel", 10, 5), 150, 300);
	gemm = new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", true);
	kernel(ask("cuLaunchKernel", 20, 5), 250, 500);
	gemm = NULL;
	kernel(ask("cuLaunchKernel", 30, 5), 600, 700);
	exits(2000);
	end_report();
	assert_has(run.text, "4242,0,600000,100000,300000,250000,0,50000,0,0,20.0,\n");
	close_run(&run);
}

/* GPU times are of the whole recording, whoever watched its threads. */
static void test_overlap_goes_on_when_threads_are_not_watched_any_more(void **state)
{
	struct sample still = sample_of(SAMPLE_OFF_CPU, 100, NULL);
	struct event event = sample_event(the_process(), THE_TID, 400, &still);

	still.blocked = BLOCKED_STILL;
	begin_report("overlap", TABLE_FORM_CSV, (struct report_options){ 0 }, 0);
	kernel(ask("cuLaunchKernel", 0, 5), 100, 200);
	push(&run, &event);
	kernel(ask("cuLaunchKernel", 590, 5), 600, 700);
	exits(2000);
	end_report();
	assert_has(run.text, "4242,0,600000,400000,200000,0,0,0,0,0,");
	close_run(&run);
}

static void test_overlap_without_gpu_times_says_so(void **state)
{
	begin_report("overlap", TABLE_FORM_TEXT, (struct report_options){ 0 }, 0);
	run.info.gpu_times = false;
	ask("cuLaunchKernel", 0, 5);
	end_report();
	assert_has(run.text, "GPU times were not recorded");
	close_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_time_by_cause_and_place),
		cmocka_unit_test(test_busy_is_never_less_than_nothing),
		cmocka_unit_test(test_a_long_gap_tells_all),
		cmocka_unit_test(test_which_call_it_was_is_told_without_stacks),
		cmocka_unit_test(test_a_trace_without_gpu_times_says_so),
		cmocka_unit_test(test_of_a_choice_nothing_is_judged),
		cmocka_unit_test(test_programs_find_all_parts_also_of_nothing),
		cmocka_unit_test(test_the_threshold_can_be_chosen),
		cmocka_unit_test(test_gaps_that_are_alike_are_one_row),
		cmocka_unit_test(test_top_is_how_many_of_the_longest),
		cmocka_unit_test(test_whole_stacks_on_demand),
		cmocka_unit_test(test_long_names_are_shortened_for_people),
		cmocka_unit_test(test_clocks_that_differ_are_told),
		cmocka_unit_test(test_what_ran_is_not_known_from_outside),
		cmocka_unit_test(test_overlap_divides_the_same_time),
		cmocka_unit_test(test_overlap_goes_on_when_threads_are_not_watched_any_more),
		cmocka_unit_test(test_overlap_without_gpu_times_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
