// SPDX-License-Identifier: MIT
/* Rules of findings on waits and polls. */
#include "finding_events.h"

/* A round of the loop: a launch, a wait of 50 us from 20 us on, and then the next launch, 30 us
 * after the wait: its return, 35 us after the wait, is when there is something to do again. */
static void loop_with(const char *wait, const char *before, const char *after)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		double at = round * ROUND_US;

		launch_round(round);
		if (before)
			see(copy_at(before, at + 6, DIRECTION_D2H, 4));
		see(call_at(wait, at + 20, 50));
		if (after)
			see(call_at(after, at + 80, 1));
	}
	launch_round(ROUNDS);
}

static void test_waiting_for_nothing_costs_until_there_is_work_again(void **state)
{
	const struct finding *finding;

	loop_with("cudaDeviceSynchronize", NULL, NULL);
	finding = found("needless_sync");
	assert_non_null(finding);
	assert_int_equal(finding->count, 138);
	assert_int_equal(finding->lost_ns, 138 * 35000);
	assert_has(finding->evidence, "138 waits for the device or a stream, 6.900 ms long");
	assert_string_equal(finding->example.function->name, "cudaDeviceSynchronize");
}

static void test_no_more_is_lost_than_was_waited(void **state)
{
	for (unsigned round = 0; round <= ROUNDS; round++) {
		launch_round(round);
		see(call_at("cudaStreamSynchronize", round * ROUND_US + 20, 12));
	}
	assert_int_equal(found("needless_sync")->lost_ns, 138 * 12000);
}

static void test_waiting_for_results_is_needed(void **state)
{
	loop_with("cudaStreamSynchronize", "cudaMemcpyAsync", NULL);
	assert_null(found("needless_sync"));
}

static void test_a_copy_back_by_another_thread_is_one(void **state)
{
	for (unsigned round = 0; round <= ROUNDS; round++) {
		launch_round(round);
		see_in(2, copy_at("cudaMemcpyAsync", round * ROUND_US + 6, DIRECTION_D2H, 4));
		see(call_at("cudaStreamSynchronize", round * ROUND_US + 20, 50));
	}
	assert_null(found("needless_sync"));
}

static void test_waiting_to_measure_is_needed(void **state)
{
	loop_with("cudaDeviceSynchronize", NULL, "cudaEventElapsedTime");
	assert_null(found("needless_sync"));
}

static void test_waiting_for_one_event_is_meant(void **state)
{
	loop_with("cudaEventSynchronize", NULL, NULL);
	assert_null(found("needless_sync"));
}

static void test_managed_memory_may_be_read_without_a_call(void **state)
{
	see(alloc_at("cudaMallocManaged", 0, 0x7000, 4096));
	loop_with("cudaDeviceSynchronize", NULL, NULL);
	assert_null(found("needless_sync"));
}

static void test_waiting_while_the_program_starts_is_no_loop(void **state)
{
	for (unsigned round = 0; round < 60; round++) {
		launch_round(round);
		see(call_at("cudaDeviceSynchronize", round * ROUND_US + 20, 50));
	}
	for (unsigned round = 60; round < 400; round++)
		launch_round(round);
	assert_null(found("needless_sync"));
}

/* `n` polls in a row, 2 us apart, 1 us each. */
static void poll(unsigned n, double begin_us)
{
	for (unsigned i = 0; i < n; i++)
		see(call_at("cudaEventQuery", begin_us + 2 * i, 1));
}

static void test_polls_in_a_row_cost_from_the_first_to_the_last(void **state)
{
	const struct finding *finding;

	launch_round(0);
	poll(20, 100);
	launch_round(2);
	poll(30, 300);
	finding = found("polling");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2);
	assert_int_equal(finding->lost_ns, 39000 + 59000);
	assert_int_equal(finding->example.begin_ns, US(300));
	assert_has(finding->evidence, "50 polls of events or streams in 2 rows");
}

static void test_a_few_polls_are_a_look(void **state)
{
	for (unsigned round = 0; round < 20; round++) {
		launch_round(round);
		poll(15, round * ROUND_US + 10);
	}
	assert_null(found("polling"));
	assert_null(why_not_judged("polling"));
}

static void test_without_polls_nothing_is_known_of_them(void **state)
{
	launch_round(0);
	assert_string_equal(why_not_judged("polling"),
	                    "no poll was recorded, which takes --all-calls");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_waiting_for_nothing_costs_until_there_is_work_again),
		TEST(test_no_more_is_lost_than_was_waited),
		TEST(test_waiting_for_results_is_needed),
		TEST(test_a_copy_back_by_another_thread_is_one),
		TEST(test_waiting_to_measure_is_needed),
		TEST(test_waiting_for_one_event_is_meant),
		TEST(test_managed_memory_may_be_read_without_a_call),
		TEST(test_waiting_while_the_program_starts_is_no_loop),
		TEST(test_polls_in_a_row_cost_from_the_first_to_the_last),
		TEST(test_a_few_polls_are_a_look),
		TEST(test_without_polls_nothing_is_known_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
