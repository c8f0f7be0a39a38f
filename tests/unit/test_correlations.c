// SPDX-License-Identifier: MIT
/* Marks on calls and work that are there for any number of them. */
#include "analysis/correlations.h"

#include "unit.h"

static void test_marks_are_kept_for_each_call_of_each_process(void **state)
{
	struct correlations *set = correlations_new();

	assert_true(correlations_mark(set, 0, 1, CORRELATION_CALL));
	assert_true(correlations_mark(set, 0, 1, CORRELATION_WORK));
	assert_true(correlations_mark(set, 0, 2, CORRELATION_MET));
	assert_true(correlations_mark(set, 5, 1, CORRELATION_WORK));
	assert_int_equal(correlations_marks(set, 0, 1), CORRELATION_CALL | CORRELATION_WORK);
	assert_int_equal(correlations_marks(set, 0, 2), CORRELATION_MET);
	assert_int_equal(correlations_marks(set, 0, 3), 0);
	assert_int_equal(correlations_marks(set, 5, 1), CORRELATION_WORK);
	assert_int_equal(correlations_marks(set, 6, 1), 0);
	assert_int_equal(correlations_marks(set, 5, UINT64_MAX), 0);
	correlations_free(set);
}

static void test_millions_of_calls_are_kept(void **state)
{
	struct correlations *set = correlations_new();
	const uint64_t n = 5000000;

	for (uint64_t i = 1; i <= n; i += 3)
		assert_true(correlations_mark(set, (uint32_t)(i % 8), i, CORRELATION_WORK));
	for (uint64_t i = 1; i <= n; i++)
		assert_int_equal(correlations_marks(set, (uint32_t)(i % 8), i),
		                 i % 3 == 1 ? CORRELATION_WORK : 0);
	correlations_free(set);
}

/* A damaged file, or one made to harm, can have any numbers. */
static void test_numbers_far_apart_fill_it_and_no_more(void **state)
{
	struct correlations *set = correlations_new();
	uint64_t kept = 0;

	for (uint64_t i = 1; i < 1000000; i++)
		kept += correlations_mark(set, (uint32_t)i, i * 0x9e3779b97f4a7c15ull,
		                          CORRELATION_CALL);
	assert_in_range(kept, 100000, 262144);
	assert_int_equal(correlations_marks(set, 1, 0x9e3779b97f4a7c15ull), CORRELATION_CALL);
	assert_false(correlations_mark(set, 1, 12345678901, CORRELATION_CALL));
	correlations_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks_are_kept_for_each_call_of_each_process),
		cmocka_unit_test(test_millions_of_calls_are_kept),
		cmocka_unit_test(test_numbers_far_apart_fill_it_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
