// SPDX-License-Identifier: MIT
/* Average, deviation, median and the like of many values. */
#include "unit.h"

#include <math.h>

#include "analysis/spread.h"
#include "base/array.h"

static void assert_near(double value, double expected, double relative)
{
	if (fabs(value - expected) > relative * fabs(expected))
		fail_msg("%.17g is not %.17g", value, expected);
}

static struct spread of(const uint64_t *values, size_t n)
{
	struct spread spread = { 0 };

	for (size_t i = 0; i < n; i++)
		spread_add(&spread, values[i]);
	return spread;
}

static void test_an_empty_one_is_all_zeros(void **state)
{
	struct spread spread = { 0 };

	assert_true(spread_average(&spread) == 0);
	assert_true(spread_deviation(&spread) == 0);
	assert_true(spread_median(&spread) == 0);
	assert_int_equal(spread_percentile(&spread, 0.99), 0);
}

static void test_a_few_values(void **state)
{
	struct spread spread = of((uint64_t[]){ 9, 2, 4, 4, 4, 5, 5, 7 }, 8);

	assert_int_equal(spread.count, 8);
	assert_int_equal(spread.sum, 40);
	assert_int_equal(spread.min, 2);
	assert_int_equal(spread.max, 9);
	assert_true(spread_average(&spread) == 5);
	assert_near(spread_deviation(&spread), sqrt(32.0 / 7), 1e-15);
	assert_true(spread_median(&spread) == 4.5);
	assert_int_equal(spread_percentile(&spread, 0.99), 9);
	spread_free(&spread);
}

static void test_one_value_deviates_by_nothing(void **state)
{
	struct spread spread = of((uint64_t[]){ 7 }, 1);

	assert_true(spread_deviation(&spread) == 0);
	assert_true(spread_median(&spread) == 7);
	spread_free(&spread);
}

static void test_deviation_is_exact_where_values_are_large_and_close(void **state)
{
	struct spread spread = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		spread_add(&spread, (1ull << 53) + i % 3);
	/* 334 zeros, 333 ones, 333 twos: the average is 0.999, the squares sum to 666.999 */
	assert_near(spread_deviation(&spread), sqrt(666.999 / 999), 1e-12);
	spread_free(&spread);
}

static void test_median_is_exact_up_to_the_limit_and_near_beyond(void **state)
{
	struct spread spread = { 0 };

	for (uint64_t i = 0; i < SPREAD_EXACT; i++)
		spread_add(&spread, 1000000 + i);
	assert_true(spread_is_exact(&spread));
	assert_true(spread_median(&spread) == 1000000 + SPREAD_EXACT / 2 - 0.5);
	spread_add(&spread, 2000000);
	assert_false(spread_is_exact(&spread));
	assert_near(spread_median(&spread), 1000512, SKETCH_ERROR);
	assert_int_equal(spread.count, SPREAD_EXACT + 1);
	spread_free(&spread);
}

static void fill(struct spread *spread, uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		spread_add(spread, from + i);
}

/* Both parts small, either one large, both large: the whole is that of all values together. */
static void test_two_make_one(void **state)
{
	static const uint64_t sizes[][2] = { { 0, 5 },       { 5, 0 },     { 10, 20 },
		                             { 600, 600 },   { 2000, 10 }, { 10, 2000 },
		                             { 2000, 3000 }, { 0, 2000 } };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct spread a = { 0 }, b = { 0 }, all = { 0 };

		fill(&a, 5000, sizes[i][0]);
		fill(&b, 100, sizes[i][1]);
		fill(&all, 5000, sizes[i][0]);
		fill(&all, 100, sizes[i][1]);
		spread_take(&a, &b);
		assert_int_equal(a.count, all.count);
		assert_int_equal(a.sum, all.sum);
		assert_int_equal(a.min, all.min);
		assert_int_equal(a.max, all.max);
		assert_true(spread_deviation(&a) == spread_deviation(&all));
		assert_true(spread_median(&a) == spread_median(&all));
		assert_int_equal(b.count, 0);
		spread_free(&a);
		spread_free(&all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_one_is_all_zeros),
		cmocka_unit_test(test_a_few_values),
		cmocka_unit_test(test_one_value_deviates_by_nothing),
		cmocka_unit_test(test_deviation_is_exact_where_values_are_large_and_close),
		cmocka_unit_test(test_median_is_exact_up_to_the_limit_and_near_beyond),
		cmocka_unit_test(test_two_make_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
