// SPDX-License-Identifier: MIT
/* Rules of findings on copies and sets. */
#include "finding_events.h"

static void test_synchronous_copies_cost_the_time_of_their_calls(void **state)
{
	const struct finding *finding;

	see(lasting(copy_at("cudaMemcpy", 0, DIRECTION_H2D, 4096), 100));
	see_in(7, lasting(copy_at("cudaMemcpy", 200, DIRECTION_D2H, 1 << 20), 300));
	see(call_at("cudaMalloc", 990, 10));
	finding = found("sync_copies");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2);
	assert_true(finding->lost_known);
	assert_int_equal(finding->lost_ns, 400000);
	assert_int_equal(finding->span_ns, 1000000);
	assert_int_equal(finding->example.tid, 7); /* the longest */
	assert_int_equal(finding->example.begin_ns, US(200));
	assert_string_equal(finding->evidence,
	                    "2 synchronous copies of 1.00 MiB, 1 to the device, 1 to the host: "
	                    "400.00 us in the calls");
}

static void test_the_gpus_part_of_synchronous_copies_is_told(void **state)
{
	uint64_t copy = see(lasting(copy_at("cudaMemcpy", 0, DIRECTION_H2D, 4096), 100));

	ran(copy_of(DIRECTION_H2D, ACTIVITY_MEMORY_PAGEABLE, 4096), copy, 10, 40);
	assert_has(found("sync_copies")->evidence, "of which the GPU copied for 40.00 us");
}

static void test_copies_that_do_not_make_the_host_wait_are_none(void **state)
{
	struct call failed = copy_at("cudaMemcpy", 500, DIRECTION_H2D, 4096);
	struct call nested = copy_at("cuMemcpyHtoD_v2", 600, DIRECTION_H2D, 4096);

	fail_call(&failed, 1);
	nested.flags |= CALL_NESTED;
	see(lasting(copy_at("cudaMemcpyAsync", 0, DIRECTION_H2D, 4096), 100));
	see(lasting(copy_at("cudaMemcpy", 200, DIRECTION_D2D, 4096), 100));
	see(lasting(copy_at("cudaMemcpy", 400, DIRECTION_H2H, 4096), 100));
	see(failed);
	see(nested);
	assert_null(found("sync_copies"));
}

static void test_what_costs_less_than_a_hundredth_is_not_told(void **state)
{
	see(lasting(copy_at("cudaMemcpy", 0, DIRECTION_H2D, 4096), 9));
	see(call_at("cudaMalloc", 990, 10));
	assert_null(found("sync_copies"));
}

static void test_without_durations_copies_are_not_judged(void **state)
{
	info.returns = false;
	assert_string_equal(why_not_judged("sync_copies"),
	                    "needs the durations of calls, which were not recorded");
}

static void set_memory(const char *function, enum activity_memory memory, double begin_us)
{
	struct activity activity = { .kind = ACTIVITY_SET, .bytes = 256, .destination = memory };
	struct call call = call_at(function, begin_us, 50);

	call.args.bytes = 256;
	ran(activity, see(call), begin_us + 10, 20);
}

static void test_sets_of_managed_memory_make_the_host_wait(void **state)
{
	const struct finding *finding;

	set_memory("cudaMemset", ACTIVITY_MEMORY_MANAGED, 0);
	set_memory("cudaMemset", ACTIVITY_MEMORY_PINNED, 100);
	set_memory("cudaMemset", ACTIVITY_MEMORY_DEVICE, 200);
	set_memory("cudaMemsetAsync", ACTIVITY_MEMORY_MANAGED, 300);
	finding = found("sync_sets");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2);
	assert_int_equal(finding->lost_ns, 100000);
}

static void test_sets_of_device_memory_do_not(void **state)
{
	set_memory("cudaMemset", ACTIVITY_MEMORY_DEVICE, 0);
	assert_null(found("sync_sets"));
}

static void test_sets_cannot_be_judged_from_calls_alone(void **state)
{
	see(call_at("cudaMemset", 0, 50));
	assert_string_equal(why_not_judged("sync_sets"), "needs GPU times");
}

static void copy_async(enum activity_memory memory, double begin_us)
{
	uint64_t call =
		see(lasting(copy_at("cudaMemcpyAsync", begin_us, DIRECTION_H2D, 1 << 20), 80));

	ran(copy_of(DIRECTION_H2D, memory, 1 << 20), call, begin_us + 20, 60);
}

static void test_asynchronous_copies_of_pageable_memory_cost_their_calls(void **state)
{
	const struct finding *finding;

	copy_async(ACTIVITY_MEMORY_PAGEABLE, 0);
	copy_async(ACTIVITY_MEMORY_PINNED, 100);
	copy_async(ACTIVITY_MEMORY_PAGEABLE, 200);
	finding = found("pageable_copies");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2);
	assert_int_equal(finding->lost_ns, 160000);
	assert_string_equal(finding->evidence,
	                    "asynchronous copies of pageable memory, 2 to the device, 0 to the "
	                    "host, 2.00 MiB: 160.00 us in the calls, while the GPU copied for "
	                    "120.00 us");
}

static void test_copies_of_pinned_memory_are_none(void **state)
{
	copy_async(ACTIVITY_MEMORY_PINNED, 0);
	assert_null(found("pageable_copies"));
}

static void test_synchronous_copies_of_pageable_memory_are_told_once(void **state)
{
	uint64_t call = see(lasting(copy_at("cudaMemcpy", 0, DIRECTION_H2D, 4096), 80));

	ran(copy_of(DIRECTION_H2D, ACTIVITY_MEMORY_PAGEABLE, 4096), call, 20, 60);
	assert_null(found("pageable_copies"));
	assert_non_null(found("sync_copies"));
}

static void test_activities_long_after_their_calls_find_them(void **state)
{
	uint64_t calls[100];

	for (unsigned i = 0; i < 100; i++)
		calls[i] =
			see(lasting(copy_at("cudaMemcpyAsync", i * 100, DIRECTION_H2D, 1024), 80));
	for (unsigned i = 0; i < 100; i++)
		ran(copy_of(DIRECTION_H2D, ACTIVITY_MEMORY_PAGEABLE, 1024), calls[i], i * 100 + 20,
		    60);
	assert_int_equal(found("pageable_copies")->count, 100);
}

/* `n` copies in a row in each round of the loop, 10 us each. */
static void rows_of_copies(unsigned n, uint64_t bytes, bool mixed)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		launch_round(round);
		for (unsigned i = 0; i < n; i++)
			see(copy_at("cudaMemcpyAsync", round * ROUND_US + 10 * (i + 1),
			            mixed && i & 1 ? DIRECTION_D2H : DIRECTION_H2D, bytes));
	}
	launch_round(ROUNDS); /* ends the last row */
}

static void test_small_copies_in_rows_cost_all_but_the_first(void **state)
{
	const struct finding *finding;

	rows_of_copies(5, 4096, false);
	finding = found("small_copies");
	assert_non_null(finding);
	/* rows end at launches 64 to 201, after 63 to 200 rounds */
	assert_int_equal(finding->count, 138 * 4);
	assert_int_equal(finding->lost_ns, 138 * 4 * 10000);
	assert_has(finding->evidence, "690 copies below 64 KiB came in 138 rows");
}

static void test_three_small_copies_are_no_row(void **state)
{
	rows_of_copies(3, 4096, false);
	assert_null(found("small_copies"));
}

static void test_large_copies_are_no_small_ones(void **state)
{
	rows_of_copies(5, 64 << 10, false);
	assert_null(found("small_copies"));
}

static void test_copies_of_changing_direction_are_no_row(void **state)
{
	rows_of_copies(5, 4096, true);
	assert_null(found("small_copies"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_synchronous_copies_cost_the_time_of_their_calls),
		TEST(test_the_gpus_part_of_synchronous_copies_is_told),
		TEST(test_copies_that_do_not_make_the_host_wait_are_none),
		TEST(test_what_costs_less_than_a_hundredth_is_not_told),
		TEST(test_without_durations_copies_are_not_judged),
		TEST(test_sets_of_managed_memory_make_the_host_wait),
		TEST(test_sets_of_device_memory_do_not),
		TEST(test_sets_cannot_be_judged_from_calls_alone),
		TEST(test_asynchronous_copies_of_pageable_memory_cost_their_calls),
		TEST(test_copies_of_pinned_memory_are_none),
		TEST(test_synchronous_copies_of_pageable_memory_are_told_once),
		TEST(test_activities_long_after_their_calls_find_them),
		TEST(test_small_copies_in_rows_cost_all_but_the_first),
		TEST(test_three_small_copies_are_no_row),
		TEST(test_large_copies_are_no_small_ones),
		TEST(test_copies_of_changing_direction_are_no_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
