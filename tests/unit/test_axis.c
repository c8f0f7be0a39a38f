// SPDX-License-Identifier: MIT
/* Marks and labels on the axes of pictures. */
#include "unit.h"

#include "output/svg/svg.h"

static void assert_bytes(uint64_t bytes, const char *expected)
{
	struct buf out = { 0 };

	axis_add_bytes(&out, bytes);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void assert_mark(uint64_t ns, uint64_t exact, const char *expected)
{
	struct buf out = { 0 };

	axis_add_ns(&out, ns, exact);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void assert_ns(uint64_t ns, const char *expected)
{
	assert_mark(ns, 0, expected);
}

static void test_labels_have_no_decimals_that_say_nothing(void **state)
{
	assert_bytes(0, "0 B");
	assert_bytes(512, "512 B");
	assert_bytes(1 << 20, "1 MiB");
	assert_bytes(3ull << 29, "1.5 GiB");
	assert_bytes(UINT64_MAX, "16384 PiB");
	assert_ns(0, "0");
	assert_ns(250000000, "250 ms");
	assert_ns(59900000000, "59.9 s");
	assert_ns(7200000000000, "2 h");
}

static void test_long_times_have_two_units(void **state)
{
	assert_ns(90000000000, "1 min 30 s");
	assert_ns(4200000000000, "1 h 10 min");
	assert_ns(3599900000000, "1 h");
	assert_ns(36 * 3600000000000, "1 d 12 h");
}

static void test_marks_of_an_axis_are_exact_to_its_step(void **state)
{
	assert_mark(5000000000000, 1000000000, "1:23:20");
	assert_mark(5000200000000, 200000000, "1:23:20.2");
	assert_mark(125000000000, 5000000000, "2:05");
	assert_mark(4200000000000, 600000000000, "1 h 10 min");
	assert_mark(20000001000, 1000, "20.000001 s");
	assert_mark(920000000, 20000000, "920 ms");
}

static void test_steps_of_bytes_are_powers_of_two(void **state)
{
	assert_int_equal(axis_step_bytes(1, 6), 1);
	assert_int_equal(axis_step_bytes(1000, 6), 256);
	assert_int_equal(axis_step_bytes(3ull << 30, 6), 1ull << 30);
	assert_int_equal(axis_step_bytes(UINT64_MAX, 6), 1ull << 62);
}

static void test_steps_of_time_are_those_of_clocks(void **state)
{
	assert_int_equal(axis_step_ns(95, 10), 10);
	assert_int_equal(axis_step_ns(1900000, 10), 200000);
	assert_int_equal(axis_step_ns(10500000000, 10), 2000000000);
	assert_int_equal(axis_step_ns(100000000000, 10), 15000000000);
	assert_int_equal(axis_step_ns(8 * 3600000000000, 10), 3600000000000);
	assert_int_equal(axis_step_ns(40 * 86400000000000, 10), 7 * 86400000000000);
	assert_true(axis_step_ns(UINT64_MAX, 10) > 0);
}

static void test_there_are_never_more_marks_than_asked_for(void **state)
{
	for (uint64_t most = 1; most < 1ull << 61; most = most * 3 / 2 + 1) {
		assert_true(most / axis_step_ns(most, 10) < 10);
		assert_true(most / axis_step_bytes(most, 6) < 6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_have_no_decimals_that_say_nothing),
		cmocka_unit_test(test_long_times_have_two_units),
		cmocka_unit_test(test_marks_of_an_axis_are_exact_to_its_step),
		cmocka_unit_test(test_steps_of_bytes_are_powers_of_two),
		cmocka_unit_test(test_steps_of_time_are_those_of_clocks),
		cmocka_unit_test(test_there_are_never_more_marks_than_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
