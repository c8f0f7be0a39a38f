// SPDX-License-Identifier: MIT
/* Which launches had no work told of. */
#include "support.h"

#include <time.h>

#include "capture/gpu/gpu_records.h"

static void launch(struct unrecorded *u, uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number <= to; number++)
		unrecorded_launched(u, number);
}

static void told(struct unrecorded *u, uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number <= to; number++)
		unrecorded_told(u, number);
}

static void test_what_is_told_of_is_not_left(void **state)
{
	struct unrecorded u = { 0 };

	launch(&u, 1, 1000);
	told(&u, 1, 1000);
	assert_int_equal(unrecorded_end(&u), 0);
	launch(&u, 1, 1000);
	told(&u, 501, 1000); /* in any order */
	told(&u, 1, 499);
	assert_int_equal(unrecorded_end(&u), 1);
}

static void test_several_of_one_launch_are_one(void **state)
{
	struct unrecorded u = { 0 };

	launch(&u, 1, 3);
	for (int i = 0; i < 10; i++) /* a graph's */
		unrecorded_told(&u, 2);
	assert_int_equal(unrecorded_end(&u), 2);
}

static void test_work_may_be_told_before_its_launch(void **state)
{
	struct unrecorded u = { 0 };

	launch(&u, 1, 5);
	unrecorded_told(&u, 7);
	launch(&u, 6, 8);
	told(&u, 1, 6);
	unrecorded_told(&u, 8);
	assert_int_equal(unrecorded_end(&u), 0);
}

static void test_numbers_that_come_late_find_their_place(void **state)
{
	struct unrecorded u = { 0 };

	unrecorded_launched(&u, 5);
	unrecorded_launched(&u, 9);
	unrecorded_launched(&u, 7);
	told(&u, 9, 9);
	told(&u, 7, 7);
	assert_int_equal(unrecorded_end(&u), 1);
}

static void test_work_of_an_unknown_call_is_of_one_of_them(void **state)
{
	struct unrecorded u = { 0 };

	launch(&u, 1, 3);
	unrecorded_told(&u, 0);
	assert_int_equal(unrecorded_end(&u), 2);
	unrecorded_told(&u, 0);
	assert_int_equal(unrecorded_end(&u), 0);
}

static void test_many_are_held_in_a_bound(void **state)
{
	struct unrecorded u = { 0 };

	launch(&u, 1, 1000000);
	assert_true(u.capacity <= (size_t)1 << 18);
	assert_int_equal(unrecorded_end(&u), 1 << 18);
}

/* A number is reserved for work that was told of; agents can have them come in any order. */
static void test_numbers_that_come_very_late_were_told_of(void **state)
{
	struct unrecorded u = { 0 };
	const clock_t begin = clock();

	for (uint64_t number = 1 << 18; number; number--)
		unrecorded_launched(&u, number);
	assert_true((clock() - begin) / CLOCKS_PER_SEC < 2);
	told(&u, 1, (1 << 18) - UNRECORDED_EARLY);
	assert_int_equal(unrecorded_end(&u), UNRECORDED_EARLY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_told_of_is_not_left),
		cmocka_unit_test(test_several_of_one_launch_are_one),
		cmocka_unit_test(test_work_may_be_told_before_its_launch),
		cmocka_unit_test(test_numbers_that_come_late_find_their_place),
		cmocka_unit_test(test_work_of_an_unknown_call_is_of_one_of_them),
		cmocka_unit_test(test_many_are_held_in_a_bound),
		cmocka_unit_test(test_numbers_that_come_very_late_were_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
