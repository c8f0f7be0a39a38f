// SPDX-License-Identifier: MIT
/* Searches of arrays that are sorted. */
#include "unit.h"

#include "base/array.h"

static size_t below(const unsigned *list, size_t n, unsigned limit)
{
	return ARRAY_BEFORE(n, i, list[i] < limit);
}

static void test_the_elements_before_a_limit_are_counted(void **state)
{
	static const unsigned list[] = { 1, 3, 3, 3, 7, 9 };

	assert_int_equal(below(list, ARRAY_SIZE(list), 0), 0);
	assert_int_equal(below(list, ARRAY_SIZE(list), 3), 1);
	assert_int_equal(below(list, ARRAY_SIZE(list), 4), 4);
	assert_int_equal(below(list, ARRAY_SIZE(list), 9), 5);
	assert_int_equal(below(list, ARRAY_SIZE(list), 10), 6);
	assert_int_equal(below(NULL, 0, 10), 0);
}

static void test_of_each_size_every_place_is_found(void **state)
{
	unsigned list[40];

	for (unsigned i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = 2 * i;
	for (size_t n = 0; n <= ARRAY_SIZE(list); n++)
		for (unsigned limit = 0; limit <= 2 * n; limit++)
			assert_int_equal(below(list, n, limit), (limit + 1) / 2);
}

static void test_no_element_behind_the_end_is_looked_at(void **state)
{
	unsigned looks = 0;

	assert_int_equal(ARRAY_BEFORE(1000, i, (looks++, assert_in_range(i, 0, 999), true)), 1000);
	assert_in_range(looks, 1, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_elements_before_a_limit_are_counted),
		cmocka_unit_test(test_of_each_size_every_place_is_found),
		cmocka_unit_test(test_no_element_behind_the_end_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
