// SPDX-License-Identifier: MIT
/* What is said to be wrong, of runs that are made for it: the rule, the line, the sentences. */
#include "stack_events.h"

#include "report/diagnosis/diagnosis.h"
#include "report/summary/summary.h"
#include "trace/consumers.h"

static struct diagnoser *diagnoser;
static struct consumer *summary;
static struct run_info info;
static struct diagnosis diagnosis;
static bool chosen;
static uint64_t correlation;
static double now_us;

static int set_up(void **state)
{
	info = default_run_info();
	info.gpu_times = true;
	diagnoser = diagnoser_new(NULL);
	summary = summary_new(&(struct summary_options){ 0 });
	correlation = 0;
	now_us = 0;
	chosen = false;
	return 0;
}

static int tear_down(void **state)
{
	diagnosis_free(&diagnosis);
	diagnoser_free(diagnoser);
	consumer_free(summary);
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

static void see(struct event event)
{
	feed(summary, &event);
	assert_int_equal(diagnoser_event(diagnoser, &event, NULL), 0);
}

static void without_gpu_times(void)
{
	info.gpu_times = false;
	diagnoser_begin(diagnoser, &info);
}

static uint64_t ask(const char *function, double at_us, double us, uint32_t line)
{
	struct call call = call_at(function, at_us, us);

	call.correlation = ++correlation;
	call.stack = line ? stack_of_line(line) : NULL;
	see(call_event(the_process(), the_process()->pid, &call));
	return correlation;
}

static void kernel_on(uint32_t device, uint64_t asked_by, double begin_us, double us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .device = device,
		                     .context = 1,
		                     .stream = 7,
		                     .correlation = asked_by,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(begin_us + us) };

	see(activity_event(the_process(), &activity));
}

static void sample_without_stack(double at_us, double us)
{
	struct sample one = sample_of(SAMPLE_CPU, us, NULL);

	see(sample_event(the_process(), the_process()->pid, at_us, &one));
}

static void sample(enum sample_kind kind, double at_us, double us, uint32_t line)
{
	struct sample one = sample_of(kind, us, stack_of_line(line));

	see(sample_event(the_process(), the_process()->pid, at_us, &one));
}

/* Steps of 10 ms, in each a kernel of so long. */
static void steps(unsigned n, double kernel_us, uint32_t line)
{
	for (unsigned i = 0; i < n; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, kernel_us);
		for (unsigned k = 3; line && k < 10; k++)
			sample(SAMPLE_CPU, now_us + k * 1000, 1000, line);
	}
}

static void conclude(void)
{
	struct err err = { 0 };

	consumers_end(&summary, 1, &info, &err);
	diagnoser_conclude(diagnoser,
	                   &(struct diagnosis_run){ .run = &info,
	                                            .tally = summary_tally(summary),
	                                            .duration_ns = info.end_ns - info.begin_ns,
	                                            .begin_ns = info.begin_ns,
	                                            .chosen = chosen },
	                   &diagnosis);
	assert_in_range(diagnosis.n, 1, DIAGNOSIS_SENTENCES);
	assert_true(diagnosis.n_rows >= 1);
}

static void assert_said(const char *words)
{
	for (size_t i = 0; i < diagnosis.n; i++) {
		if (strstr(diagnosis.sentence[i].data, words))
			return;
	}
	for (size_t i = 0; i < diagnosis.n; i++)
		print_error("%s\n", diagnosis.sentence[i].data);
	fail_msg("nothing says '%s'", words);
}

/* ---- with GPU times ------------------------------------------------------------------------ */

static void test_a_host_that_is_late_is_told_with_its_line(void **state)
{
	const struct diagnosis_row *row;

	steps(20, 2000, 31);
	conclude();
	row = &diagnosis.rows[0];
	assert_string_equal(row->rule, "host");
	assert_false(row->healthy);
	assert_string_equal(row->place, "step (train.py:31)");
	assert_string_equal(row->state, "on a CPU");
	assert_int_equal(row->trust, GAP_TRUST_SURE);
	assert_said("the main thread was in step (train.py:31), on a CPU");
	assert_said("Sure: 133 samples cover");
}

static void test_a_blocked_host_has_another_hint(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		steps(1, 2000, 0);
		sample(SAMPLE_OFF_CPU, now_us - 100, 8000, 44);
	}
	conclude();
	assert_string_equal(diagnosis.rows[0].state, "blocked");
	assert_said("in step (train.py:44), blocked");
	assert_said("asking earlier for what it waits for");
}

static void test_few_samples_name_no_line(void **state)
{
	steps(20, 2000, 0);
	sample(SAMPLE_CPU, 5000, 1000, 31);
	info.stacks.sample_ns = 1000000;
	info.stacks.missed[STACKS_LOST] = 130;
	conclude();
	assert_null(diagnosis.rows[0].place);
	assert_said("is not known: only 1 sample is of that time, and others were lost");
}

static void test_samples_without_a_stack_are_not_known(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		steps(1, 2000, 0);
		for (unsigned k = 3; k < 9; k++)
			sample_without_stack(now_us - 10000 + k * 1000, 1000);
	}
	conclude();
	assert_int_equal(diagnosis.rows[0].known.samples, 0);
	assert_int_equal(diagnosis.rows[0].trust, GAP_TRUST_NONE);
	assert_null(diagnosis.rows[0].place);
}

static void test_without_samples_is_said_how_to_take_them(void **state)
{
	steps(20, 2000, 0);
	conclude();
	assert_int_equal(diagnosis.rows[0].trust, GAP_TRUST_NONE);
	assert_said("'cuscope record --stacks' takes the samples that tell");
}

static void test_a_busy_gpu_has_nothing_wrong(void **state)
{
	for (unsigned i = 0; i < 20; i++)
		kernel_on(0, ask("cuLaunchKernel", 10 * i, 5, 0), 300 + 1001 * i, 1000);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "busy");
	assert_true(diagnosis.rows[0].judged);
	assert_true(diagnosis.rows[0].healthy);
	assert_said("Nothing is wrong with how the GPU is fed: GPU 0 was busy for 99.9 %");
}

static void test_waits_are_told_with_the_line_of_the_call(void **state)
{
	for (unsigned i = 0; i < 40; i++) {
		double at_us = 1000 * i;

		kernel_on(0, ask("cuLaunchKernel", at_us, 5, 91), at_us + 10, 400);
		ask("cudaStreamSynchronize", at_us + 20, 400, 95);
	}
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "synchronisation");
	assert_string_equal(diagnosis.rows[0].place, "step (train.py:95)");
	assert_null(diagnosis.rows[0].state);
	assert_said("It waited in step (train.py:95).");
	assert_said("Sure: the code is known of the 39 waits right before 100 % of that time.");
}

static void test_short_kernels_are_told_with_the_line_of_the_launch(void **state)
{
	for (unsigned i = 0; i < 200; i++)
		kernel_on(0, ask("cuLaunchKernel", 20 * i, 10, 91), 20 * i + 11, 2);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "launches");
	assert_said("its work, of 2.00 us a piece");
	assert_said("The late launches are made in step (train.py:91)");
}

static void test_the_gpu_that_was_idle_for_longest_is_spoken_of(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		kernel_on(0, ask("cuLaunchKernel", 1000 * i, 5, 0), 1000 * i + 10, 950);
		kernel_on(3, ask("cuLaunchKernel", 1000 * i + 5, 5, 0), 1000 * i + 15, 100);
	}
	conclude();
	assert_int_equal(diagnosis.n_rows, 2);
	assert_string_equal(diagnosis.rows[0].rule, "busy");
	assert_int_equal(diagnosis.rows[1].device, 3);
	assert_said("Of 2 GPUs GPU 3 was idle for longest");
}

static void test_a_gpu_with_a_larger_idle_share_precedes_a_longer_busy_one(void **state)
{
	for (unsigned i = 0; i < 200; i++)
		kernel_on(0, ask("cuLaunchKernel", 1000 * i, 5, 0), 1000 * i + 10, 950);
	for (unsigned i = 0; i < 5; i++, now_us += 1000)
		kernel_on(3, ask("cuLaunchKernel", 200000 + now_us, 5, 0), 200010 + now_us, 300);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "busy");
	assert_string_equal(diagnosis.rows[1].rule, "launches");
	assert_said("Of 2 GPUs GPU 3 was idle for 65 % of 4.300 ms");
}

static void test_of_several_busy_gpus_one_is_told_as_one_of_them(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		kernel_on(0, ask("cuLaunchKernel", 1000 * i, 5, 0), 1000 * i + 10, 990);
		kernel_on(3, ask("cuLaunchKernel", 1000 * i + 5, 5, 0), 1000 * i + 15, 950);
	}
	conclude();
	assert_said("fed: of 2 GPUs GPU 3 was idle for longest, and busy for 95.2 % of");
}

static void test_a_moment_is_too_short_to_judge(void **state)
{
	kernel_on(0, ask("cuLaunchKernel", 0, 5, 0), 10, 100);
	kernel_on(0, ask("cuLaunchKernel", 500, 5, 0), 510, 100);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "short");
	assert_false(diagnosis.rows[0].judged);
}

static void test_of_chosen_calls_there_is_no_diagnosis(void **state)
{
	steps(20, 2000, 31);
	info.lost[LOST_RING_FULL] = 1000;
	chosen = true;
	conclude();
	assert_int_equal(diagnosis.n, 1);
	assert_said("Only a choice of calls was read, so there is no diagnosis of the whole.");
	assert_int_equal(diagnosis.n_rows, 1);
	assert_string_equal(diagnosis.rows[0].rule, "chosen");
	assert_false(diagnosis.rows[0].of_gpu);
	assert_null(diagnosis.rows[0].hint);
}

static void test_gpu_times_without_work_in_them_are_not_asked_for(void **state)
{
	diagnoser_begin(diagnoser, &info);
	ask("cuLaunchKernel", 0, 5, 0);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "no_gpu_work");
	assert_int_equal(diagnosis.n, 1);
	assert_said("No work on a GPU is in what was read");
}

/* ---- without ------------------------------------------------------------------------------- */

static void test_nothing_recorded_is_nothing_wrong(void **state)
{
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "nothing_recorded");
	assert_false(diagnosis.rows[0].judged);
	assert_said("no call of CUDA was recorded");
}

static void test_a_damaged_file_does_not_tell_what_was_recorded(void **state)
{
	info.damaged_chunks = 1;
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "nothing_read");
	assert_int_equal(diagnosis.n, 1);
	assert_said("no call of CUDA is in what could be read of the file");
}

static void test_a_file_without_its_end_does_not_tell_either(void **state)
{
	info.cut_short = true;
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "nothing_read");
}

static void test_calls_without_work_are_told_as_such(void **state)
{
	ask("cudaSetDevice", 0, 5, 0);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "no_work");
	assert_false(diagnosis.rows[0].judged);
	assert_said("no call of CUDA that was recorded asked the GPU for work");
}

static void test_without_gpu_times_the_launching_thread_is_judged(void **state)
{
	without_gpu_times();
	for (unsigned i = 0; i < 40; i++) {
		ask("cuLaunchKernel", 10000 * i, 10, 0);
		for (unsigned k = 1; k < 10; k++)
			sample(SAMPLE_CPU, 10000 * i + 1000 * k, 1000, 31);
	}
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "outside");
	assert_false(diagnosis.rows[0].of_gpu);
	assert_string_equal(diagnosis.rows[0].place, "step (train.py:31)");
	assert_said("so the GPU probably waited for it");
	assert_said("Try recording with --gpu as well");
}

static void test_without_gpu_times_samples_without_a_stack_are_not_known(void **state)
{
	without_gpu_times();
	for (unsigned i = 0; i < 40; i++) {
		ask("cuLaunchKernel", 10000 * i, 10, 0);
		for (unsigned k = 1; k < 10; k++)
			sample_without_stack(10000 * i + 1000 * k, 1000);
	}
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "outside");
	assert_int_equal(diagnosis.rows[0].trust, GAP_TRUST_NONE);
}

static void test_without_gpu_times_what_follows_the_last_call_does_not_count(void **state)
{
	without_gpu_times();
	for (unsigned i = 0; i < 40; i++) {
		ask("cuLaunchKernel", 10000 * i, 10, 0);
		sample(SAMPLE_CPU, 10000 * i + 5000, 9000, 31);
	}
	for (unsigned k = 1; k < 500; k++)
		sample(SAMPLE_CPU, 400000 + 1000 * k, 1000, 44);
	conclude();
	assert_string_equal(diagnosis.rows[0].place, "step (train.py:31)");
	assert_int_equal(diagnosis.rows[0].known.samples, 39);
}

static void test_without_gpu_times_a_thread_that_waits_is_well(void **state)
{
	without_gpu_times();
	for (unsigned i = 0; i < 40; i++) {
		ask("cuLaunchKernel", 10000 * i, 10, 0);
		ask("cudaStreamSynchronize", 10000 * i + 20, 9000, 0);
	}
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "waits");
	assert_true(diagnosis.rows[0].healthy);
}

static void test_without_gpu_times_calls_that_overlap_take_no_more_than_all_time(void **state)
{
	without_gpu_times();
	ask("cuLaunchKernel", 0, 10, 0);
	for (unsigned i = 0; i < 40; i++)
		ask("cudaStreamSynchronize", 1000 * i, 5000, 0);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "waits");
	assert_said("waited for the GPU for 100 % of 44.000 ms");
}

static void test_without_durations_nothing_is_claimed(void **state)
{
	without_gpu_times();
	info.returns = false;
	for (unsigned i = 0; i < 40; i++)
		ask("cuLaunchKernel", 10000 * i, 10, 0);
	conclude();
	assert_string_equal(diagnosis.rows[0].rule, "not_known");
	assert_false(diagnosis.rows[0].judged);
}

/* ---- besides ------------------------------------------------------------------------------- */

static void test_losses_are_said_before_all_else(void **state)
{
	steps(20, 2000, 31);
	info.lost[LOST_RING_FULL] = 1000;
	conclude();
	assert_int_equal(diagnosis.n, DIAGNOSIS_SENTENCES);
	assert_said("1000 events were lost, so all of this is of a part: record with a larger");
}

static void test_losses_of_any_reason_are_said(void **state)
{
	steps(20, 2000, 31);
	info.lost[LOST_OVER_BUDGET] = 1000;
	conclude();
	assert_said("1000 events were lost, so all of this is of a part.");
}

static void test_a_long_start_is_told(void **state)
{
	now_us = 1.2e6;
	steps(20, 2000, 31);
	conclude();
	assert_said("Before that, the GPU had no work for 1.200 s, which is 80 % of the recording");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_a_host_that_is_late_is_told_with_its_line),
		TEST(test_a_blocked_host_has_another_hint),
		TEST(test_few_samples_name_no_line),
		TEST(test_samples_without_a_stack_are_not_known),
		TEST(test_without_samples_is_said_how_to_take_them),
		TEST(test_a_busy_gpu_has_nothing_wrong),
		TEST(test_waits_are_told_with_the_line_of_the_call),
		TEST(test_short_kernels_are_told_with_the_line_of_the_launch),
		TEST(test_the_gpu_that_was_idle_for_longest_is_spoken_of),
		TEST(test_a_gpu_with_a_larger_idle_share_precedes_a_longer_busy_one),
		TEST(test_of_several_busy_gpus_one_is_told_as_one_of_them),
		TEST(test_a_moment_is_too_short_to_judge),
		TEST(test_of_chosen_calls_there_is_no_diagnosis),
		TEST(test_gpu_times_without_work_in_them_are_not_asked_for),
		TEST(test_a_damaged_file_does_not_tell_what_was_recorded),
		TEST(test_a_file_without_its_end_does_not_tell_either),
		TEST(test_nothing_recorded_is_nothing_wrong),
		TEST(test_calls_without_work_are_told_as_such),
		TEST(test_without_gpu_times_the_launching_thread_is_judged),
		TEST(test_without_gpu_times_samples_without_a_stack_are_not_known),
		TEST(test_without_gpu_times_what_follows_the_last_call_does_not_count),
		TEST(test_without_gpu_times_a_thread_that_waits_is_well),
		TEST(test_without_gpu_times_calls_that_overlap_take_no_more_than_all_time),
		TEST(test_without_durations_nothing_is_claimed),
		TEST(test_losses_are_said_before_all_else),
		TEST(test_losses_of_any_reason_are_said),
		TEST(test_a_long_start_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
