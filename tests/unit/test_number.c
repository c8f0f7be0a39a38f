// SPDX-License-Identifier: MIT
/* Floating point numbers that become integers. */
#include "unit.h"

#include <math.h>

#include "base/number.h"

static void test_a_number_that_fits_loses_its_fraction(void **state)
{
	assert_int_equal(number_u64(0), 0);
	assert_int_equal(number_u64(2.9), 2);
	assert_int_equal(number_rounded(2.5), 3);
	assert_int_equal(number_u64(0x1p63), 1ull << 63);
}

static void test_one_that_does_not_is_the_nearest(void **state)
{
	assert_int_equal(number_u64(-1), 0);
	assert_int_equal(number_u64(-INFINITY), 0);
	assert_int_equal(number_u64(0x1p64), UINT64_MAX);
	assert_int_equal(number_u64(1e300), UINT64_MAX);
	assert_int_equal(number_rounded(INFINITY), UINT64_MAX);
}

static void test_what_is_no_number_is_nothing(void **state)
{
	assert_int_equal(number_u64(NAN), 0);
	assert_int_equal(number_rounded(NAN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_number_that_fits_loses_its_fraction),
		cmocka_unit_test(test_one_that_does_not_is_the_nearest),
		cmocka_unit_test(test_what_is_no_number_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
