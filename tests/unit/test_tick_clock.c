// SPDX-License-Identifier: MIT
/* Ticks in CLOCK_MONOTONIC. */
#include "unit.h"

#include <time.h>

#include "agent/tick_clock.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void test_now_is_now(void **state)
{
	struct tick_clock *clock = tick_clock_new();
	uint64_t before, ticks, after, ns;

	for (int i = 0; i < 50; i++) {
		before = now_ns();
		ticks = tick_clock_ticks();
		after = now_ns();
		tick_clock_look(clock);
		assert_true(tick_clock_ns(clock, ticks, &ns));
		assert_in_range(ns, before - tick_clock_error_ns(clock),
		                after + tick_clock_error_ns(clock));
	}
	assert_in_range(tick_clock_error_ns(clock), 1, 1000000);
	tick_clock_free(clock);
}

static void test_there_is_no_time_outside_of_the_readings(void **state)
{
	struct tick_clock *clock = tick_clock_new();
	uint64_t first = tick_clock_ticks(), ns;

	tick_clock_add(clock, first + 1000, UINT64_MAX / 2, 5);
	assert_false(tick_clock_ns(clock, 0, &ns));
	assert_false(tick_clock_ns(clock, first + 1001, &ns));
	assert_false(tick_clock_ns(clock, UINT64_MAX, &ns));
	assert_true(tick_clock_ns(clock, first + 1000, &ns));
	assert_int_equal(ns, UINT64_MAX / 2);
	tick_clock_free(clock);
}

/* A kernel that corrects its clock, and more readings than are kept. */
static void test_order_stays_whatever_the_kernel_corrects(void **state)
{
	struct tick_clock *clock = tick_clock_new();
	uint64_t ticks = tick_clock_ticks(), ns = now_ns(), last = 0, at;
	const uint64_t from = ticks;
	uint64_t middle = 0, middle_ns = 0;

	for (int i = 0; i < 20000; i++) {
		ticks += 60000000;
		ns += (i < 10000 ? 20000000 : 20020000) + (i % 7) * 10;
		if (i == 9000) {
			middle = ticks;
			middle_ns = ns;
		}
		tick_clock_add(clock, ticks, ns, 20);
		assert_true(tick_clock_ns(clock, ticks, &at));
		assert_int_equal(at, ns);
		assert_true(tick_clock_ns(clock, ticks - 1000, &at));
	}
	assert_true(tick_clock_ns(clock, middle, &at));
	assert_in_range(at, middle_ns - 10000, middle_ns + 10000);
	for (at = from; at < ticks; at += 7654321) {
		assert_true(tick_clock_ns(clock, at, &ns));
		assert_true(ns >= last);
		last = ns;
	}
	tick_clock_free(clock);
}

static void test_a_reading_that_does_not_go_on_is_left_out(void **state)
{
	struct tick_clock *clock = tick_clock_new();
	uint64_t ticks = tick_clock_ticks() + 1000, ns = now_ns() + 1000, at;

	tick_clock_add(clock, ticks, ns, 1);
	tick_clock_add(clock, ticks, ns + 5, 1);
	tick_clock_add(clock, ticks + 5, ns, 1);
	tick_clock_add(clock, ticks + 10, ns + 10, 1);
	assert_true(tick_clock_ns(clock, ticks + 5, &at));
	assert_int_equal(at, ns + 5);
	tick_clock_free(clock);
}

/* Ticks of a third of a ns up to 1,000 ns, as a division would have it. */
static void test_times_lie_on_the_line_between_two_readings(void **state)
{
	static const uint64_t lengths[][2] = { { 3000000007, 1000000000 },
		                               { 1000, 255999 },
		                               { 1000, 256000 },
		                               { 20, 20000 },
		                               { 7, 3 },
		                               { 1ull << 40, 1 } };

	for (size_t i = 0; i < 6; i++) {
		uint64_t ticks = lengths[i][0], ns = lengths[i][1], at;
		uint64_t from = UINT64_MAX / 4, from_ns = UINT64_MAX / 8;
		struct tick_clock *clock = tick_clock_new();

		tick_clock_add(clock, from, from_ns, 1);
		tick_clock_add(clock, from + ticks, from_ns + ns, 1);
		for (uint64_t k = 0; k <= ticks; k += 1 + ticks / 999) {
			assert_true(tick_clock_ns(clock, from + k, &at));
			assert_int_equal(at - from_ns,
			                 (uint64_t)((unsigned __int128)k * ns / ticks));
		}
		tick_clock_free(clock);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_now_is_now),
		cmocka_unit_test(test_there_is_no_time_outside_of_the_readings),
		cmocka_unit_test(test_order_stays_whatever_the_kernel_corrects),
		cmocka_unit_test(test_a_reading_that_does_not_go_on_is_left_out),
		cmocka_unit_test(test_times_lie_on_the_line_between_two_readings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
