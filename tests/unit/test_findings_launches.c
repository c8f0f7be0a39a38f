// SPDX-License-Identifier: MIT
/* Short kernels, launch-bound threads, sequences, and allocation in the loop. */
#include "finding_events.h"

#include "report/findings/repeats.h"

/* Launches of 5 us every 10 us, whose kernels begin 4 us after the launch's begin and take `ns`:
 * the GPU is idle between them, and waits for each launch. */
static void short_loop(unsigned n, double kernel_us, double call_us)
{
	for (unsigned i = 0; i < n; i++) {
		double at = 10.0 * i;
		uint64_t call =
			see(lasting(launch_at("cuLaunchKernel", at, the_kernel()), call_us));

		ran(kernel_of(the_kernel()), call, at + 4, kernel_us);
	}
}

static void test_short_kernels_cost_the_idle_time_before_them(void **state)
{
	const struct finding *finding;

	short_loop(300, 2, 5);
	finding = found("short_kernels");
	assert_non_null(finding);
	assert_int_equal(finding->count, 300);
	assert_int_equal(finding->lost_ns, 299 * 8000); /* from 6 us to 14 us, and so on */
	assert_has(finding->evidence, "300 of 300 kernels ran for 10 us or less");
	assert_has(finding->evidence, "2.00 us on average, their launches 5.00 us; before 299 of");
	assert_has(finding->evidence, "repeat a sequence of 1 launch");
	assert_has(finding->suggestion, "CUDA graph");
	assert_null(found("launch_calls")); /* this rule knows better */
}

static void test_kernels_shorter_than_their_launch_are_short(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		double at = 100.0 * i;
		uint64_t call = see(lasting(launch_at("cuLaunchKernel", at, the_kernel()), 40));

		ran(kernel_of(the_kernel()), call, at + 4, 20);
	}
	assert_int_equal(found("short_kernels")->count, 300);
}

static void test_few_short_kernels_are_nothing(void **state)
{
	short_loop(199, 2, 5);
	assert_null(found("short_kernels"));
}

static void test_long_kernels_are_not_short(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		uint64_t call = see(launch_at("cuLaunchKernel", 100.0 * i, the_kernel()));

		ran(kernel_of(the_kernel()), call, 100.0 * i + 4, 20);
	}
	assert_null(found("short_kernels"));
}

static void test_launches_made_ahead_cost_nothing(void **state)
{
	uint64_t calls[300];

	for (unsigned i = 0; i < 300; i++)
		calls[i] = see(lasting(launch_at("cuLaunchKernel", 2.0 * i, the_kernel()), 1));
	for (unsigned i = 0; i < 300; i++)
		ran(kernel_of(the_kernel()), calls[i], 1000 + 5.0 * i, 2);
	assert_null(found("short_kernels"));
}

static void test_long_gaps_have_other_causes(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		uint64_t call = see(launch_at("cuLaunchKernel", 2000.0 * i, the_kernel()));

		ran(kernel_of(the_kernel()), call, 2000.0 * i + 4, 2);
	}
	assert_null(found("short_kernels"));
}

static void test_what_runs_beside_short_kernels_fills_the_gaps_between_them(void **state)
{
	short_loop(300, 2, 5);
	ran(kernel_of(the_kernel()), 0, 1003, 2000); /* from the 100th gap, 996 to 1004, on */
	assert_int_equal(found("short_kernels")->lost_ns, 99 * 8000 + 7000);
}

static void test_kernels_of_graphs_are_launched_together_already(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		uint64_t call = see(call_at("cudaGraphLaunch", 100.0 * i, 9));

		ran(kernel_of(the_kernel()), call, 100.0 * i + 4, 2);
	}
	assert_null(found("short_kernels"));
}

/* Launches for 40 % of the time, and a wait, without GPU times. */
static void launch_often(unsigned n, double call_us, double wait_us)
{
	double at = 0;

	for (unsigned i = 0; i < n; i++) {
		see(lasting(launch_at("cuLaunchKernel", at, the_kernel()), call_us));
		at += 2.5 * call_us;
	}
	see(call_at("cudaDeviceSynchronize", at, wait_us));
}

static void test_many_launches_without_a_wait_are_told_from_calls(void **state)
{
	const struct finding *finding;

	launch_often(2000, 4, 10);
	finding = found("launch_calls");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2000);
	assert_int_equal(finding->lost_ns, 2000 * 4000);
	assert_has(finding->evidence,
	           "2000 launches of 4.00 us each, 8.000 ms together, while all threads "
	           "waited for the GPU for no more than 10.00 us");
}

static void test_a_program_that_waits_for_the_gpu_is_not(void **state)
{
	launch_often(2000, 4, 5000);
	assert_null(found("launch_calls"));
}

static void test_another_thread_that_waits_for_the_gpu_waits_for_all(void **state)
{
	launch_often(2000, 4, 10);
	see_in(2, call_at("cudaStreamSynchronize", 0, 5000));
	assert_null(found("launch_calls"));
}

static void test_a_sequence_is_told_with_its_launches(void **state)
{
	for (unsigned i = 0; i < 2000; i++) {
		struct call call = launch_at("cuLaunchKernel", 10.0 * i, the_kernel());

		call.args.grid[0] = i % 12;
		see(call);
	}
	assert_has(found("launch_calls")->evidence,
	           "; 99 % of the launches of its busiest thread repeat a sequence of 12 launches");
}

static void test_launches_that_wait_for_room_are_waiting(void **state)
{
	launch_often(2000, 60, 10);
	assert_null(found("launch_calls"));
}

/* ---- sequences ----------------------------------------------------------------------------- */

static void test_a_sequence_is_as_long_as_its_period(void **state)
{
	struct repeats *repeats = repeats_new();
	uint64_t repeated;

	for (unsigned i = 0; i < 1000; i++)
		repeats_add(repeats, i % 12);
	assert_int_equal(repeats_distance(repeats, &repeated), 12);
	assert_int_equal(repeated, 1000 - 12 - REPEATS_LENGTH + 1);
	repeats_free(repeats);
}

static void test_what_never_comes_again_does_not_repeat(void **state)
{
	struct repeats *repeats = repeats_new();
	uint64_t repeated;

	for (unsigned i = 0; i < 20000; i++)
		repeats_add(repeats, i);
	assert_int_equal(repeats_distance(repeats, &repeated), 0);
	repeats_free(repeats);
}

/* ---- allocation ---------------------------------------------------------------------------- */

static void test_allocating_in_the_loop_costs_its_calls(void **state)
{
	const struct finding *finding;

	for (unsigned round = 0; round < ROUNDS; round++) {
		launch_round(round);
		see(alloc_at("cudaMalloc", round * ROUND_US + 20, 0x7000, 4096)); /* 10 us */
		see(free_at("cudaFree", round * ROUND_US + 50, 0x7000));
	}
	finding = found("allocation");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2 * STEADY_ROUNDS);
	assert_int_equal(finding->lost_ns, 2 * STEADY_ROUNDS * 10000);
	assert_has(finding->evidence, "274 calls that allocate or free");
	assert_has(finding->evidence, "at 137 places between launches");
}

static void test_allocating_while_the_program_starts_is_no_loop(void **state)
{
	for (unsigned round = 0; round < 4 * ROUNDS; round++) {
		launch_round(round);
		if (round < ROUNDS / 2)
			see(alloc_at("cudaMalloc", round * ROUND_US + 20, 0x7000 + round, 4096));
	}
	assert_null(found("allocation"));
}

static void test_memory_of_a_pool_is_cheap(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		launch_round(round);
		see(alloc_at("cudaMallocAsync", round * ROUND_US + 20, 0x7000, 4096));
		see(free_at("cudaFreeAsync", round * ROUND_US + 50, 0x7000));
	}
	assert_null(found("allocation"));
}

static void test_freeing_everything_at_the_end_is_no_loop(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		launch_round(round);
	for (unsigned i = 0; i < 500; i++)
		see(free_at("cudaFree", ROUNDS * ROUND_US + 20 * i, 0x7000 + i));
	assert_null(found("allocation"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_short_kernels_cost_the_idle_time_before_them),
		TEST(test_kernels_shorter_than_their_launch_are_short),
		TEST(test_few_short_kernels_are_nothing),
		TEST(test_long_kernels_are_not_short),
		TEST(test_launches_made_ahead_cost_nothing),
		TEST(test_long_gaps_have_other_causes),
		TEST(test_what_runs_beside_short_kernels_fills_the_gaps_between_them),
		TEST(test_kernels_of_graphs_are_launched_together_already),
		TEST(test_many_launches_without_a_wait_are_told_from_calls),
		TEST(test_a_program_that_waits_for_the_gpu_is_not),
		TEST(test_another_thread_that_waits_for_the_gpu_waits_for_all),
		TEST(test_a_sequence_is_told_with_its_launches),
		TEST(test_launches_that_wait_for_room_are_waiting),
		TEST(test_a_sequence_is_as_long_as_its_period),
		TEST(test_what_never_comes_again_does_not_repeat),
		TEST(test_allocating_in_the_loop_costs_its_calls),
		TEST(test_allocating_while_the_program_starts_is_no_loop),
		TEST(test_memory_of_a_pool_is_cheap),
		TEST(test_freeing_everything_at_the_end_is_no_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
