// SPDX-License-Identifier: MIT
/* Time in bins that grow with the trace. */
#include "unit.h"

#include "analysis/time_bins.h"

#define COLUMNS 10

static double columns[COLUMNS * CATEGORY_COUNT];

static double at(size_t column, enum category category)
{
	return columns[column * CATEGORY_COUNT + category];
}

static double sum_of(enum category category)
{
	double sum = 0;

	for (size_t i = 0; i < COLUMNS; i++)
		sum += at(i, category);
	return sum;
}

static void assert_about(double value, double wanted, double off)
{
	if (value < wanted - off || value > wanted + off)
		fail_msg("%g is not %g (+- %g)", value, wanted, off);
}

static void test_time_is_in_the_columns_that_it_lies_in(void **state)
{
	struct time_bins *bins = time_bins_new(40);
	size_t row = time_bins_row(bins);

	time_bins_add(bins, row, CATEGORY_KERNEL, 1000, 1100); /* the first tenth */
	time_bins_add(bins, row, CATEGORY_SYNC, 1450, 1650);   /* half, one, half */
	time_bins_add(bins, row, CATEGORY_KERNEL, 1999, 2000);
	time_bins_read(bins, row, 1000, 2000, COLUMNS, columns);
	assert_about(at(0, CATEGORY_KERNEL), 100, 35);
	assert_about(at(1, CATEGORY_KERNEL), 0, 35);
	assert_about(at(4, CATEGORY_SYNC), 50, 35);
	assert_about(at(5, CATEGORY_SYNC), 100, 35);
	assert_about(at(6, CATEGORY_SYNC), 50, 35);
	assert_about(at(9, CATEGORY_KERNEL), 1, 0.001);
	assert_about(sum_of(CATEGORY_KERNEL), 101, 0.001);
	assert_about(sum_of(CATEGORY_SYNC), 200, 0.001);
	time_bins_free(bins);
}

static void test_an_hour_and_a_millisecond_take_the_same_memory(void **state)
{
	struct time_bins *bins = time_bins_new(40);
	size_t row = time_bins_row(bins);
	uint64_t hour = 3600ull * 1000000000;

	time_bins_add(bins, row, CATEGORY_KERNEL, 5000, 6000);
	time_bins_add(bins, row, CATEGORY_KERNEL, hour - 1000, hour);
	time_bins_add(bins, row, CATEGORY_SYNC, 0, hour);
	time_bins_read(bins, row, 0, hour, COLUMNS, columns);
	assert_about(at(0, CATEGORY_KERNEL), 1000, 0.001);
	assert_about(at(9, CATEGORY_KERNEL), 1000, 0.001);
	for (size_t i = 0; i < COLUMNS; i++)
		assert_about(at(i, CATEGORY_SYNC), (double)hour / COLUMNS, (double)hour / 1000);
	time_bins_free(bins);
}

static void test_bins_grow_to_the_left(void **state)
{
	struct time_bins *bins = time_bins_new(40);
	size_t row = time_bins_row(bins);

	time_bins_add(bins, row, CATEGORY_KERNEL, 1000000, 1001000);
	time_bins_add(bins, row, CATEGORY_SYNC, 1000, 1001000); /* began long before, ended last */
	time_bins_read(bins, row, 1000, 1001000, COLUMNS, columns);
	assert_about(at(9, CATEGORY_KERNEL), 1000, 0.001);
	assert_about(at(0, CATEGORY_SYNC), 100000, 35000);
	assert_about(sum_of(CATEGORY_SYNC), 1000000, 0.01);
	time_bins_free(bins);
}

static void test_rows_are_apart(void **state)
{
	struct time_bins *bins = time_bins_new(40);
	size_t one = time_bins_row(bins), two;

	time_bins_add(bins, one, CATEGORY_KERNEL, 1000, 1100);
	two = time_bins_row(bins); /* made when there is something already */
	time_bins_add(bins, two, CATEGORY_KERNEL, 500000, 500200);
	time_bins_read(bins, two, 1000, 500200, COLUMNS, columns);
	assert_about(sum_of(CATEGORY_KERNEL), 200, 0.001);
	time_bins_read(bins, one, 1000, 500200, COLUMNS, columns);
	assert_about(sum_of(CATEGORY_KERNEL), 100, 0.001);
	time_bins_free(bins);
}

static void test_times_that_cannot_be_true_are_ignored(void **state)
{
	struct time_bins *bins = time_bins_new(40);
	size_t row = time_bins_row(bins);

	time_bins_add(bins, row, CATEGORY_KERNEL, 1000, 1100);
	time_bins_add(bins, row, CATEGORY_SYNC, 1000, UINT64_MAX);
	time_bins_add(bins, row, CATEGORY_SYNC, UINT64_MAX - 5, UINT64_MAX - 1);
	time_bins_add(bins, row, CATEGORY_SYNC, UINT64_MAX / 2, UINT64_MAX / 2 + 1);
	time_bins_read(bins, row, 1000, 1100, COLUMNS, columns);
	assert_about(sum_of(CATEGORY_KERNEL), 100, 0.001);
	assert_about(sum_of(CATEGORY_SYNC), 0, 0.001);
	time_bins_free(bins);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_is_in_the_columns_that_it_lies_in),
		cmocka_unit_test(test_an_hour_and_a_millisecond_take_the_same_memory),
		cmocka_unit_test(test_bins_grow_to_the_left),
		cmocka_unit_test(test_rows_are_apart),
		cmocka_unit_test(test_times_that_cannot_be_true_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
