// SPDX-License-Identifier: MIT
/* Rules of findings on what the host waited for while a GPU had nothing to do. */
#include "finding_events.h"
#include "stack_events.h"

#include "base/array.h"

#define STEPS   40
#define STEP_US 1000.0
#define GAPS    (STEPS - 2) /* that have waits: from the first wait on, and none after the last step \
	                     */

/* In each step: a launch of 5 us, its kernel for 290 us, and then nothing until the next step. */
static void steps(void)
{
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t asked = see(launch_at("cuLaunchKernel", i * STEP_US, the_kernel()));

		ran(kernel_of(the_kernel()), asked, i * STEP_US + 10, 290);
	}
}

/* The thread waited from then on, `us`, the last `runnable_us` of it for a CPU. */
static void waited(double from_us, double us, enum wait_kind wait, double runnable_us)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, us, NULL);
	struct event event;

	sample.blocked = wait == WAIT_CPU ? BLOCKED_PREEMPTED : BLOCKED_WOKEN;
	sample.wait = wait;
	sample.runnable_ns = (uint64_t)(runnable_us * 1000);
	if (runnable_us) {
		sample.rival = "cc1plus";
		sample.rival_pid = 900;
	}
	event = sample_event(the_process(), 1, from_us + us, &sample);
	feed(findings, &event);
}

/* The order is that of their ends. */
static void steps_that_wait(double us, enum wait_kind wait, double runnable_us)
{
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t asked = see(launch_at("cuLaunchKernel", i * STEP_US, the_kernel()));

		ran(kernel_of(the_kernel()), asked, i * STEP_US + 10, 290);
		waited(i * STEP_US + 350, us, wait, runnable_us);
	}
}

static void test_waiting_for_a_disk_is_told_with_its_time(void **state)
{
	const struct finding *finding;

	steps_that_wait(400, WAIT_DISK, 0);
	finding = found("host_waits");
	assert_non_null(finding);
	assert_true(finding->of_device);
	assert_int_equal(finding->device, 0);
	assert_int_equal(finding->count, GAPS);
	assert_true(finding->lost_known);
	assert_int_equal(finding->lost_ns, GAPS * 400000);
	assert_has(finding->evidence, "GPU 0: in its gaps the host waited for the disk for 57 %");
	assert_has(finding->evidence, "15.200 ms of 26.790 ms, in 38 waits");
	assert_has(finding->suggestion, "read ahead");
	assert_null(found("run_queue"));
	assert_null(why_not_judged("host_waits"));
	assert_null(why_not_judged("run_queue"));
}

static void test_each_kind_has_its_own_advice(void **state)
{
	static const struct {
		enum wait_kind wait;
		const char *advice;
	} kinds[] = {
		{ WAIT_NETWORK, "ask for the next piece" },
		{ WAIT_FAULT, "MAP_POPULATE" },
		{ WAIT_LOCK, "more loaders" },
		{ WAIT_PIPE, "more loaders" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		steps_that_wait(400, kinds[i].wait, 0);
		assert_non_null(found("host_waits"));
		assert_has(found("host_waits")->suggestion, kinds[i].advice);
		tear_down(state);
		set_up(state);
	}
}

static void test_waiting_for_a_cpu_names_who_had_it(void **state)
{
	const struct finding *finding;

	steps_that_wait(400, WAIT_CPU, 400);
	finding = found("run_queue");
	assert_non_null(finding);
	assert_int_equal(finding->lost_ns, GAPS * 400000);
	assert_has(finding->evidence, "cc1plus");
	assert_has(finding->suggestion, "taskset");
	assert_null(found("host_waits"));
}

/* From being woken to running, nothing is waited for but a CPU. */
static void test_the_end_of_a_wait_can_be_a_wait_for_a_cpu(void **state)
{
	steps_that_wait(500, WAIT_DISK, 200);
	assert_int_equal(found("host_waits")->lost_ns, GAPS * 300000);
	assert_int_equal(found("run_queue")->lost_ns, GAPS * 200000);
}

static void test_less_than_a_fifth_of_the_gaps_is_not_told(void **state)
{
	steps_that_wait(130, WAIT_DISK, 0); /* of 700 us of each gap */
	assert_null(found("host_waits"));
	assert_null(why_not_judged("host_waits"));
}

static void test_a_sleep_is_what_the_program_wants(void **state)
{
	steps_that_wait(600, WAIT_SLEEP, 0);
	assert_null(found("host_waits"));
	assert_null(found("run_queue"));
}

static void test_waits_of_other_threads_cost_no_gap(void **state)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, 400, NULL);

	sample.blocked = BLOCKED_WOKEN;
	sample.wait = WAIT_DISK;
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t asked = see(launch_at("cuLaunchKernel", i * STEP_US, the_kernel()));
		struct event event = sample_event(the_process(), 2, i * STEP_US + 800, &sample);

		ran(kernel_of(the_kernel()), asked, i * STEP_US + 10, 290);
		feed(findings, &event);
	}
	assert_null(found("host_waits"));
}

static void test_without_waits_neither_is_judged(void **state)
{
	steps();
	assert_null(found("host_waits"));
	assert_string_equal(why_not_judged("host_waits"), "needs record --host-waits");
	assert_string_equal(why_not_judged("run_queue"), "needs record --host-waits");
}

static void test_without_gpu_times_neither_is_judged(void **state)
{
	launch_round(0);
	waited(100, 400, WAIT_DISK, 0);
	assert_string_equal(why_not_judged("host_waits"), "needs GPU times");
	assert_string_equal(why_not_judged("run_queue"), "needs GPU times");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_waiting_for_a_disk_is_told_with_its_time),
		TEST(test_each_kind_has_its_own_advice),
		TEST(test_waiting_for_a_cpu_names_who_had_it),
		TEST(test_the_end_of_a_wait_can_be_a_wait_for_a_cpu),
		TEST(test_less_than_a_fifth_of_the_gaps_is_not_told),
		TEST(test_a_sleep_is_what_the_program_wants),
		TEST(test_waits_of_other_threads_cost_no_gap),
		TEST(test_without_waits_neither_is_judged),
		TEST(test_without_gpu_times_neither_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
