// SPDX-License-Identifier: MIT
/* Gaps between the launches of a thread. */
#include "support.h"

#include "report/launches/launch_gaps.h"

static struct launch_gaps *gaps;

static int set_up(void **state)
{
	gaps = launch_gaps_new();
	return 0;
}

static int tear_down(void **state)
{
	launch_gaps_free(gaps);
	return 0;
}

static void see_of(uint32_t tid, struct call call)
{
	struct event event = call_event(the_process(), tid, &call);

	launch_gaps_event(gaps, &event);
}

static void see(struct call call)
{
	see_of(1, call);
}

static struct call launch(double at_us)
{
	return launch_at("cuLaunchKernel", at_us, NULL); /* takes 5 us */
}

static void test_a_gap_is_from_the_end_of_a_launch_to_the_next(void **state)
{
	struct gap_row *const *rows;
	size_t n;

	see(launch(0));
	see(launch(10));  /* 5 */
	see(launch(35));  /* 20 */
	see(launch(140)); /* 100 */
	rows = launch_gaps_rows(gaps, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0]->launches, 4);
	assert_int_equal(rows[0]->launch_ns, 20000);
	assert_int_equal(rows[0]->gaps.count, 3);
	assert_int_equal(rows[0]->gaps.sum, 125000);
	assert_int_equal(spread_percentile(&rows[0]->gaps, 0.5), 20000);
	assert_int_equal(spread_percentile(&rows[0]->gaps, 0.99), 100000);
}

static void test_the_longest_gaps_tell_what_the_thread_did(void **state)
{
	struct call nested = call_at("cuMemcpyHtoD_v2", 112, 8);
	const struct gap *longest;
	size_t n;

	nested.flags |= CALL_NESTED;
	see(call_at("cudaMalloc", 0, 50)); /* before the first launch: of no gap */
	see(launch(100));
	see(nested);
	see(copy_at("cudaMemcpy", 111, DIRECTION_H2D, 1)); /* 10 us */
	see(copy_at("cudaMemcpy", 125, DIRECTION_H2D, 1));
	see(call_at("cudaDeviceSynchronize", 140, 50));
	see(launch(205));
	see(launch(211));
	longest = launch_gaps_longest(gaps, &n);
	assert_int_equal(n, 2);
	assert_int_equal(longest[0].begin_ns, US(105));
	assert_int_equal(longest[0].end_ns, US(205));
	assert_int_equal(longest[0].cuda_ns, 70000); /* 30 us not in CUDA */
	assert_int_equal(longest[0].n_calls, 2);
	assert_string_equal(longest[0].call[0].function->name, "cudaDeviceSynchronize");
	assert_int_equal(longest[0].call[0].ns, 50000);
	assert_string_equal(longest[0].call[1].function->name, "cudaMemcpy");
	assert_int_equal(longest[0].call[1].calls, 2);
	assert_int_equal(longest[0].call[1].ns, 20000);
	assert_int_equal(longest[1].n_calls, 0);
	assert_int_equal(longest[1].end_ns - longest[1].begin_ns, 1000);
}

static void test_ten_longest_of_all_threads_stay(void **state)
{
	const struct gap *longest;
	size_t n;

	for (int i = 0; i < 30; i++) {
		see_of(1, launch(1000 * i));
		see_of(2, launch(1000 * i + i + 10));
	}
	longest = launch_gaps_longest(gaps, &n);
	assert_int_equal(n, GAPS_LONGEST);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(longest[i].tid, 2);
		assert_int_equal(longest[i].end_ns - longest[i].begin_ns, 996000);
		assert_int_equal(longest[i].begin_ns, US(1000 * i + i + 15));
	}
}

static void test_functions_beyond_those_told_apart_are_counted(void **state)
{
	static const char *const names[] = { "cudaMalloc",      "cudaFree",
		                             "cudaMemcpy",      "cudaMemset",
		                             "cudaSetDevice",   "cuInit",
		                             "cuCtxCreate_v2",  "cudaStreamCreate",
		                             "cudaEventRecord", "cudaMallocHost" };
	const struct gap *longest;
	size_t n;

	see(launch(0));
	for (size_t i = 0; i < 10; i++)
		see(call_at(names[i], 10 + 10 * (double)i, 1 + (double)i));
	see(launch(200));
	longest = launch_gaps_longest(gaps, &n);
	assert_int_equal(longest[0].n_calls, GAP_CALLS);
	assert_int_equal(longest[0].other_calls, 2);
	assert_int_equal(longest[0].other_ns, 19000);
	assert_int_equal(longest[0].cuda_ns, 55000);
}

static void test_failed_and_captured_launches_are_no_launches(void **state)
{
	struct call failed = launch(10), captured = launch(20);
	struct gap_row *const *rows;
	size_t n;

	fail_call(&failed, 1);
	captured.flags |= CALL_CAPTURED;
	see(launch(0));
	see(failed);
	see(captured);
	see(launch(50));
	rows = launch_gaps_rows(gaps, &n);
	assert_int_equal(rows[0]->launches, 2);
	assert_int_equal(rows[0]->gaps.sum, 45000);
	assert_int_equal(rows[0]->cuda_ns, 10000);
}

static void test_graph_launches_are_launches(void **state)
{
	struct gap_row *const *rows;
	size_t n;

	see(launch(0));
	see(call_at("cudaGraphLaunch", 10, 5));
	rows = launch_gaps_rows(gaps, &n);
	assert_int_equal(rows[0]->launches, 2);
	assert_int_equal(rows[0]->gaps.max, 5000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void test_a_tid_that_is_given_out_again_ends_no_gap(void **state)
{
	const struct thread thread = { .comm = "worker" };
	struct gap_row *const *rows;
	size_t n;

	see(launch(0));
	launch_gaps_event(gaps, &(struct event){ .type = EVENT_THREAD,
	                                         .process = the_process(),
	                                         .tid = 1,
	                                         .thread = &thread });
	see(launch(5000));
	rows = launch_gaps_rows(gaps, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0]->gaps.count + rows[1]->gaps.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_gap_is_from_the_end_of_a_launch_to_the_next),
		TEST(test_a_tid_that_is_given_out_again_ends_no_gap),
		TEST(test_the_longest_gaps_tell_what_the_thread_did),
		TEST(test_ten_longest_of_all_threads_stay),
		TEST(test_functions_beyond_those_told_apart_are_counted),
		TEST(test_failed_and_captured_launches_are_no_launches),
		TEST(test_graph_launches_are_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
