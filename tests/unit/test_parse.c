// SPDX-License-Identifier: MIT
/* Durations, sizes and numbers as users write them. */
#include "unit.h"

#include "base/array.h"
#include "base/parse.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

/* ---- durations ----------------------------------------------------------------------------- */

static void assert_duration(const char *text, uint64_t ns)
{
	uint64_t value = UNTOUCHED;

	if (!parse_duration_ns(text, &value))
		fail_msg("'%s' is refused", text);
	assert_int_equal(value, ns);
}

static void assert_no_duration(const char *text)
{
	uint64_t value = UNTOUCHED;

	if (parse_duration_ns(text, &value))
		fail_msg("'%s' is accepted", text);
	assert_int_equal(value, UNTOUCHED);
}

static void test_durations_have_units(void **state)
{
	assert_duration("7ns", 7);
	assert_duration("10us", 10000);
	assert_duration("10\xc2\xb5s", 10000);
	assert_duration("1.5ms", 1500000);
	assert_duration("2s", 2000000000);
	assert_duration("3m", 180000000000);
	assert_duration("3min", 180000000000);
	assert_duration("1h", 3600000000000);
	assert_duration("10 MS", 10000000);
}

static void test_durations_without_a_unit_are_seconds(void **state)
{
	assert_duration("2", 2000000000);
	assert_duration(".5", 500000000);
	assert_duration("0", 0);
}

static void test_durations_end_at_285_years(void **state)
{
	assert_duration("9e9s", 9000000000000000000);
	assert_no_duration("9.1e9s");
	assert_no_duration("1e300h");
	assert_no_duration("1e999");
}

static void test_what_is_no_duration_is_refused(void **state)
{
	static const char *const bad[] = { "",     "s",     "10x",  "-1s", "+1s", " 1s",
		                           "1s ",  "1 2",   "0x10", "nan", "inf", ".",
		                           "1..5", "1.5.2", "1,5s", "10u", "1s2" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_no_duration(bad[i]);
}

/* ---- sizes --------------------------------------------------------------------------------- */

static void assert_bytes(const char *text, uint64_t bytes)
{
	uint64_t value = UNTOUCHED;

	if (!parse_bytes(text, &value))
		fail_msg("'%s' is refused", text);
	assert_int_equal(value, bytes);
}

static void test_sizes_are_powers_of_1024(void **state)
{
	assert_bytes("4096", 4096);
	assert_bytes("12B", 12);
	assert_bytes("64k", 65536);
	assert_bytes("64KiB", 65536);
	assert_bytes("8MB", 8 << 20);
	assert_bytes("1.5GB", 3ull << 29);
	assert_bytes("2 tib", 2ull << 40);
}

static void test_what_is_no_size_is_refused(void **state)
{
	static const char *const bad[] = { "", "k", "1kk", "-4k", "1KiBs", "64 k b", "9e18k" };
	uint64_t value = UNTOUCHED;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse_bytes(bad[i], &value))
			fail_msg("'%s' is accepted", bad[i]);
	}
	assert_int_equal(value, UNTOUCHED);
}

/* ---- shares and numbers -------------------------------------------------------------------- */

static void test_shares_may_carry_their_sign(void **state)
{
	double percent = 0;

	assert_true(parse_percent("5", &percent));
	assert_true(percent == 5);
	assert_true(parse_percent("2.5%", &percent));
	assert_true(percent == 2.5);
	assert_true(parse_percent("10000%", &percent));
}

static void test_shares_are_more_than_nothing(void **state)
{
	double percent = 7;

	assert_false(parse_percent("0", &percent));
	assert_false(parse_percent("0%", &percent));
	assert_false(parse_percent("-5%", &percent));
	assert_false(parse_percent("10001%", &percent));
	assert_false(parse_percent("5%%", &percent));
	assert_false(parse_percent("%", &percent));
	assert_true(percent == 7);
}

static void test_numbers_are_decimal_and_end_at_their_limit(void **state)
{
	uint64_t number = 0;

	assert_true(parse_number("0", 10, &number));
	assert_int_equal(number, 0);
	assert_true(parse_number("010", 10, &number));
	assert_int_equal(number, 10);
	assert_true(parse_number("18446744073709551615", UINT64_MAX, &number));
	assert_true(number == UINT64_MAX);
}

static void test_what_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "11", "-1", "+1", " 1", "1 ", "1x", "x", "0x1", "1.", "18446744073709551616"
	};
	uint64_t number = UNTOUCHED;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse_number(bad[i], 10, &number))
			fail_msg("'%s' is accepted", bad[i]);
	}
	assert_int_equal(number, UNTOUCHED);
}

/* ---- process ids --------------------------------------------------------------------------- */

static void test_process_ids_are_added_to_those_before(void **state)
{
	size_t count = 0;
	int *pids = NULL;

	assert_true(parse_pids("12", &pids, &count));
	assert_true(parse_pids("345,6", &pids, &count));
	assert_int_equal(count, 3);
	assert_int_equal(pids[0], 12);
	assert_int_equal(pids[1], 345);
	assert_int_equal(pids[2], 6);
	free(pids);
}

static void test_a_bad_list_of_process_ids_adds_nothing(void **state)
{
	static const char *const bad[] = { "",     ",",  "1,", ",1",  "1,,2", "1,x",
		                           "1, 2", "-1", "0",  "1 2", "1;2",  "99999999999" };
	size_t count = 0;
	int *pids = NULL;

	assert_true(parse_pids("12", &pids, &count));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse_pids(bad[i], &pids, &count))
			fail_msg("'%s' is accepted", bad[i]);
		assert_int_equal(count, 1);
	}
	assert_int_equal(pids[0], 12);
	free(pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations_have_units),
		cmocka_unit_test(test_durations_without_a_unit_are_seconds),
		cmocka_unit_test(test_durations_end_at_285_years),
		cmocka_unit_test(test_what_is_no_duration_is_refused),
		cmocka_unit_test(test_sizes_are_powers_of_1024),
		cmocka_unit_test(test_what_is_no_size_is_refused),
		cmocka_unit_test(test_shares_may_carry_their_sign),
		cmocka_unit_test(test_shares_are_more_than_nothing),
		cmocka_unit_test(test_numbers_are_decimal_and_end_at_their_limit),
		cmocka_unit_test(test_what_is_no_number_is_refused),
		cmocka_unit_test(test_process_ids_are_added_to_those_before),
		cmocka_unit_test(test_a_bad_list_of_process_ids_adds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
