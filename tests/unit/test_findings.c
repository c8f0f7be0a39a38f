// SPDX-License-Identifier: MIT
/* The report `findings`: what `why` tells as tables, and facts beside it. */
#include "stack_events.h"

#include <time.h>

#include "report/report.h"
#include "table/table.h"

static struct run run;
static struct table *table;
static char told[1024];
static uint64_t correlation;

static void note(void *data, const char *name, const char *text)
{
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s\n", text);
}

static int set_up(void **state)
{
	struct table_options options = { .form = TABLE_FORM_CSV, .note = note };
	struct report_options report_options = { 0 };
	struct report_choice choice;
	struct err err = { 0 };

	told[0] = '\0';
	correlation = 0;
	assert_int_equal(report_choose("findings", &choice, &err), 0);
	open_run(&run);
	run.info.gpu_times = true;
	options.out = run.out;
	report_options.table = table = table_open(&options, choice.report->parts);
	begin_run(&run, report_new(choice.report, &report_options));
	return 0;
}

static int tear_down(void **state)
{
	table_close(table);
	close_run(&run);
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

static void kernel(const char *function, double at_us, double begin_us, double us)
{
	struct call call = call_at(function, at_us, 5);
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .context = 1,
		                     .stream = 7,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(begin_us + us) };

	call.correlation = activity.correlation = ++correlation;
	push_call(&run, call);
	push_work(&run, activity);
}

/* Steps of 10 ms with a kernel of so long, and samples of a line up to the next. */
static void steps(unsigned n, double kernel_us, uint32_t line)
{
	for (unsigned i = 0; i < n; i++) {
		kernel("cuLaunchKernel", 10000 * i, 10000 * i + 10, kernel_us);
		for (unsigned k = 3; line && k < 10; k++) {
			struct sample one = sample_of(SAMPLE_CPU, 1000, stack_of_line(line));
			struct event event =
				sample_event(the_process(), 4243, 10000 * i + 1000 * k, &one);

			push(&run, &event);
		}
	}
}

static void small_copies(unsigned rows, unsigned of, double us)
{
	double at_us = 0;

	for (unsigned i = 0; i < rows; i++, at_us += 1000) {
		push_call(&run, call_at("cuCtxSynchronize", at_us, 1));
		for (unsigned k = 0; k < of; k++) {
			struct call call =
				copy_at("cuMemcpyHtoD_v2", at_us + 10 + k * us, DIRECTION_H2D, 512);

			call.end_ns = call.begin_ns + (uint64_t)(1000 * us);
			push_call(&run, call);
		}
	}
}

static void metrics(int64_t tensor, int64_t fp32, int64_t dram, int64_t sm, unsigned samples)
{
	for (unsigned i = 0; i < samples; i++) {
		struct gpu_metrics_sample sample = { .source = GPU_METRICS_GPM,
			                             .begin_ns = US(100000.0 * i),
			                             .end_ns = US(100000.0 * (i + 1)) };

		for (size_t k = 0; k < GPU_METRICS; k++)
			sample.value[k] = GPU_METRIC_UNKNOWN;
		sample.value[GPU_METRIC_GRAPHICS] = 9000;
		sample.value[GPU_METRIC_TENSOR] = tensor * 100;
		sample.value[GPU_METRIC_FP32] = fp32 * 100;
		sample.value[GPU_METRIC_DRAM] = dram * 100;
		sample.value[GPU_METRIC_SM] = sm * 100;
		push(&run, &(struct event){ .type = EVENT_METRICS,
		                            .time_ns = sample.end_ns,
		                            .metrics = &sample });
	}
}

static void conclude(double end_us)
{
	struct err err = { 0 };

	run.info.end_ns = US(end_us);
	end_run(&run);
	assert_int_equal(table_finish(table, &err), 0);
	fflush(run.out);
}

/* ---- the account --------------------------------------------------------------------------- */

static void test_what_why_would_change_is_a_row(void **state)
{
	steps(20, 2000, 31);
	conclude(200000);
	assert_has(run.text, "\n1,159800000,79.9,7990399,4.9");
	assert_has(run.text, ",140,4242,0,4243,yes,computing,computing in train.py:31 step\n");
	assert_has(run.text, "\n1,gain,At most 5.0 times as fast without it (10.000 ms to ");
	assert_has(run.text, " a step); then most is: GPU runs kernels.\n");
	assert_has(run.text, "\n1,sure,Sure: 140 samples of what ran there.\n");
	assert_has(run.text, "\n1,try,");
	assert_has(told, "they do not add up");
}

/* The account has all of the time, whatever is worth a change. */
static void test_the_whole_account_is_there(void **state)
{
	steps(20, 2000, 31);
	conclude(200000);
	assert_has(run.text, "\n4242,0,4243,159800000,79.9");
	assert_has(run.text, ",computing,computing in train.py:31 step\n");
	assert_has(run.text, "\n4242,0,4243,40000000,20.0");
	assert_has(run.text, ",kernels,GPU runs kernels\n");
}

#define STACKS  60000u
#define WORKERS 90u

/* Of a thread that nobody waits for. */
static void samples_of_many_lines(void)
{
	static struct stack_frame frames[STACKS];
	static const struct stack_frame *pointers[STACKS];
	static struct stack stacks[STACKS];

	for (uint32_t i = 0; i < STACKS; i++) {
		struct sample one = sample_of(SAMPLE_CPU, 1, &stacks[i]);
		struct event event = sample_event(the_process(), 4999, 10 + i, &one);

		pointers[i] = &frames[i];
		frames[i] = (struct stack_frame){ .id = 100 + i,
			                          .kind = FRAME_PYTHON,
			                          .function = "f",
			                          .file = "/home/ann/many.py",
			                          .line = 1 + i };
		stacks[i] = (struct stack){ .id = 100 + i, .n_frames = 1, .frames = &pointers[i] };
		push(&run, &event);
	}
}

/* Each step the thread waits for another one of them, for 0.9 % of the time. */
static void steps_wait_for_workers(void)
{
	static struct process workers[WORKERS];

	for (uint32_t i = 0; i < WORKERS; i++) {
		struct sample waits = sample_of(SAMPLE_OFF_CPU, 8000, NULL), sleeps = waits;
		struct event event;

		workers[i] = (struct process){ .id = 100 + i, .pid = 900 + i };
		snprintf(workers[i].comm, sizeof(workers[i].comm), "worker%u", i);
		kernel("cuLaunchKernel", 10000 * i, 10000 * i + 10, 500);
		sleeps.wait = WAIT_SLEEP;
		sleeps.blocked = BLOCKED_INTERRUPT;
		event = sample_event(&workers[i], 900 + i, 10000 * i + 9500, &sleeps);
		push(&run, &event);
		waits.wait = WAIT_PIPE;
		waits.blocked = BLOCKED_WOKEN;
		waits.waker_tid = 900 + i;
		event = sample_event(the_process(), 4243, 10000 * i + 9500, &waits);
		push(&run, &event);
	}
}

/* What is less than 1 % is one row; which it is is not looked for again for each of them. */
static void test_many_small_lines_of_an_account_take_no_time(void **state)
{
	clock_t from;

	samples_of_many_lines();
	steps_wait_for_workers();
	from = clock();
	conclude(10000 * WORKERS);
	assert_has(run.text, ",rest,all else\n");
	assert_true((double)(clock() - from) / CLOCKS_PER_SEC < 1); /* 0.13 s, and not 4.4 */
}

static void test_a_busy_gpu_has_nothing_to_change(void **state)
{
	steps(20, 9900, 0);
	conclude(200000);
	assert_has(told, "Nothing is wrong: most of the time is: GPU runs kernels.");
	assert_has(run.text, ",kernels,GPU runs kernels\n");
}

static void test_without_work_it_says_so(void **state)
{
	conclude(200000);
	assert_has(told, "No work of a GPU was seen");
	assert_has(run.text,
	           "what threads waited for: it was not recorded (record --host-waits)\n");
	assert_has(run.text, "(record --kernel)");
}

/* Short kernels beside a GPU that is busy were told of by their number once. */
static void test_many_short_kernels_of_a_busy_gpu_are_no_loss(void **state)
{
	for (unsigned i = 0; i < 2000; i++)
		kernel("cuLaunchKernel", 5 * i, 5 * i + 100, 5);
	conclude(10110);
	assert_has(told, "Nothing is wrong: most of the time is: GPU runs kernels.");
	assert_has_not(run.text, "launching,");
}

/* ---- facts --------------------------------------------------------------------------------- */

static void test_small_copies_in_rows_are_a_fact_without_a_gain(void **state)
{
	small_copies(10, 4, 20);
	conclude(10000);
	assert_has(run.text, "\n1,,,,,40,4242,,,,small_copies,small copies that could be one\n");
	assert_has(run.text,
	           "40 copies below 64 KiB came in 10 rows of 4 or more in one direction "
	           "with no other call between them: 600.00 us in all calls but the first");
}

static void test_few_rows_short_rows_and_little_time_are_no_fact(void **state)
{
	small_copies(9, 4, 20);
	conclude(10000);
	assert_has_not(run.text, "small_copies");
	tear_down(state);
	set_up(state);
	small_copies(100, 3, 20);
	conclude(100000);
	assert_has_not(run.text, "small_copies");
	tear_down(state);
	set_up(state);
	small_copies(10, 4, 20);
	conclude(1000000); /* 0.06 % of it */
	assert_has_not(run.text, "small_copies");
}

static void test_what_bounds_a_busy_gpu_is_what_why_says(void **state)
{
	metrics(12, 2, 84, 90, 30);
	conclude(3000000);
	assert_has(run.text, "\n1,,,,,30,,0,,,bound,"
	                     "what bounds kernels: its memory (DRAM bandwidth 84 %)\n");
	assert_has(run.text,
	           "GPU 0: busy 90 %; while it was busy: tensor cores 12 %, FP32 pipe 2 %, "
	           "DRAM 84 %, SM active 90 %; 30 samples");
	assert_has(run.text, "\n1,try,\"move less");
	assert_has_not(run.text, "metrics of GPUs were not recorded");
}

static void test_idle_tensor_cores_are_told(void **state)
{
	metrics(0, 70, 5, 97, 30);
	conclude(3000000);
	assert_has(run.text, "its FP32 pipes, while the tensor cores are idle (FP32 pipe 70 %)");
	assert_has(run.text, "matrices in TF32");
}

static void test_a_moment_of_metrics_tells_nothing(void **state)
{
	metrics(12, 2, 84, 90, 19);
	conclude(1900000);
	assert_has_not(run.text, "bound,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_what_why_would_change_is_a_row),
		TEST(test_the_whole_account_is_there),
		TEST(test_many_small_lines_of_an_account_take_no_time),
		TEST(test_a_busy_gpu_has_nothing_to_change),
		TEST(test_without_work_it_says_so),
		TEST(test_many_short_kernels_of_a_busy_gpu_are_no_loss),
		TEST(test_small_copies_in_rows_are_a_fact_without_a_gain),
		TEST(test_few_rows_short_rows_and_little_time_are_no_fact),
		TEST(test_what_bounds_a_busy_gpu_is_what_why_says),
		TEST(test_idle_tensor_cores_are_told),
		TEST(test_a_moment_of_metrics_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
