// SPDX-License-Identifier: MIT
/* Samples that are kept until gaps of their time are told of. */
#include "stack_events.h"

#include "report/gaps/gap_samples.h"

static struct gap_samples *samples;
static struct told {
	uint64_t cpu_ns, blocked_ns, n;
} told;

static int set_up(void **state)
{
	samples = gap_samples_new();
	return 0;
}

static int tear_down(void **state)
{
	gap_samples_free(samples);
	return 0;
}

static void add(uint32_t thread, enum sample_kind kind, double at_us, double us)
{
	struct sample sample = sample_of(kind, us, stack_of_line(1));

	gap_samples_add(samples, thread, US(at_us), &sample);
}

static void tell(void *data, const struct gap_sampled *sampled)
{
	*(sampled->blocked ? &told.blocked_ns : &told.cpu_ns) += sampled->ns;
	told.n++;
}

static void look(uint32_t thread, double from_us, double to_us)
{
	memset(&told, 0, sizeof(told));
	gap_samples_in(samples, thread, US(from_us), US(to_us), tell, NULL);
}

static void test_a_sample_counts_with_all_that_it_stands_for(void **state)
{
	add(1, SAMPLE_CPU, 50, 1000);
	look(1, 0, 100);
	assert_int_equal(told.n, 1);
	assert_int_equal(told.cpu_ns, 1000000);
}

static void test_the_begin_of_a_time_is_in_it_and_its_end_is_not(void **state)
{
	add(1, SAMPLE_CPU, 100, 10);
	add(1, SAMPLE_CPU, 200, 10);
	look(1, 100, 200);
	assert_int_equal(told.n, 1);
	look(1, 200, 300);
	assert_int_equal(told.n, 1);
	look(1, 101, 200);
	assert_int_equal(told.n, 0);
}

static void test_of_a_blocked_time_counts_what_overlaps(void **state)
{
	add(1, SAMPLE_OFF_CPU, 300, 200); /* 100 to 300 */
	look(1, 0, 150);
	assert_int_equal(told.blocked_ns, 50000);
	look(1, 150, 200);
	assert_int_equal(told.blocked_ns, 50000);
	look(1, 250, 400);
	assert_int_equal(told.blocked_ns, 50000);
	look(1, 0, 400);
	assert_int_equal(told.blocked_ns, 200000);
	look(1, 0, 100);
	assert_int_equal(told.n, 0);
	look(1, 300, 400);
	assert_int_equal(told.n, 0);
}

static void test_a_blocked_time_longer_than_the_run_is_cut(void **state)
{
	struct sample sample = { .kind = SAMPLE_OFF_CPU, .weight_ns = UINT64_MAX };

	gap_samples_add(samples, 1, US(100), &sample);
	look(1, 40, 200);
	assert_int_equal(told.blocked_ns, 60000);
}

static void test_blocked_times_that_overlap_are_not_looked_through(void **state)
{
	struct sample sample = { .kind = SAMPLE_OFF_CPU, .weight_ns = UINT64_MAX };

	for (int i = 0; i < 100; i++)
		gap_samples_add(samples, 1, US(100 + i), &sample);
	look(1, 0, 50);
	assert_int_equal(told.n, 1);
}

static void test_threads_are_apart(void **state)
{
	add(1, SAMPLE_CPU, 50, 1);
	add(2, SAMPLE_CPU, 50, 2);
	look(2, 0, 100);
	assert_int_equal(told.cpu_ns, 2000);
	look(3, 0, 100);
	assert_int_equal(told.n, 0);
}

static void test_earlier_times_are_found_after_later_ones(void **state)
{
	for (int i = 0; i < 10000; i++)
		add(1, SAMPLE_CPU, i, 1);
	for (int i = 9900; i >= 0; i -= 300) {
		look(1, i, i + 100);
		assert_int_equal(told.n, 100);
	}
	look(1, 0, 20000);
	assert_int_equal(told.n, 10000);
}

static void test_the_oldest_are_forgotten_and_that_is_known_before(void **state)
{
	uint64_t forgotten_ns = 0;

	for (uint32_t i = 0; i < 2 * GAP_SAMPLES_KEPT; i++) {
		uint64_t due_ns = gap_samples_due(samples, i % 3);

		if (due_ns) {
			assert_true(due_ns >= forgotten_ns);
			forgotten_ns = due_ns;
		}
		add(i % 3, SAMPLE_CPU, i, 1);
	}
	assert_true(forgotten_ns >= US(GAP_SAMPLES_KEPT - 1000));
	look(0, 0, GAP_SAMPLES_KEPT - 1000);
	assert_int_equal(told.n, 0);
	look(0, GAP_SAMPLES_KEPT + 1000, 2 * GAP_SAMPLES_KEPT);
	assert_in_range(told.n, GAP_SAMPLES_KEPT / 3 - 1000, GAP_SAMPLES_KEPT / 3);
}

static void test_a_thread_whose_samples_are_all_forgotten_has_none(void **state)
{
	add(7, SAMPLE_CPU, 0, 1);
	look(7, 0, 1);
	for (uint32_t i = 0; i < GAP_SAMPLES_KEPT; i++)
		add(1, SAMPLE_CPU, 10 + i, 1);
	look(7, 0, 1e9);
	assert_int_equal(told.n, 0);
	add(7, SAMPLE_CPU, 3e6, 1);
	look(7, 0, 1e9);
	assert_int_equal(told.n, 1);
}

static void test_the_room_of_what_nobody_needs_is_used_again(void **state)
{
	for (uint32_t i = 0; i < 4 * GAP_SAMPLES_KEPT; i++) {
		assert_int_equal(gap_samples_due(samples, i % 3), 0);
		add(i % 3, SAMPLE_CPU, i, 1);
		if (i % 1000 == 999)
			gap_samples_forget(samples, US(i - 500));
	}
	look(1, 4 * GAP_SAMPLES_KEPT - 300, 1e9);
	assert_int_equal(told.n, 100);
	look(1, 0, 4 * GAP_SAMPLES_KEPT - 3000);
	assert_int_equal(told.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_a_sample_counts_with_all_that_it_stands_for),
		TEST(test_the_begin_of_a_time_is_in_it_and_its_end_is_not),
		TEST(test_of_a_blocked_time_counts_what_overlaps),
		TEST(test_a_blocked_time_longer_than_the_run_is_cut),
		TEST(test_blocked_times_that_overlap_are_not_looked_through),
		TEST(test_threads_are_apart),
		TEST(test_earlier_times_are_found_after_later_ones),
		TEST(test_the_oldest_are_forgotten_and_that_is_known_before),
		TEST(test_the_room_of_what_nobody_needs_is_used_again),
		TEST(test_a_thread_whose_samples_are_all_forgotten_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
