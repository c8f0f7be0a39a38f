// SPDX-License-Identifier: MIT
#include "unit.h"

#include "analysis/busy.h"

static void test_overlaps_are_busy_once(void **state)
{
	struct busy busy = { 0 };

	busy_add(&busy, 10, 20);
	busy_add(&busy, 15, 30); /* overlaps the end */
	busy_add(&busy, 40, 50);
	busy_add(&busy, 5, 60); /* around all */
	assert_int_equal(busy_ns(&busy), 55);
	busy_add(&busy, 60, 70); /* touches */
	busy_add(&busy, 80, 80); /* nothing */
	assert_int_equal(busy_ns(&busy), 65);
}

static void test_busy_time_of_many_pieces_adds_up(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	assert_int_equal(busy_ns(&busy), 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlaps_are_busy_once),
		cmocka_unit_test(test_busy_time_of_many_pieces_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
