// SPDX-License-Identifier: MIT
/* Calls and their work, each waiting for the other in a bounded table. */
#include "analysis/pairs.h"

#include "support.h"

struct mine {
	struct half half;
	int value;
};

static unsigned left;
static uint64_t last_left;

static void leave(void *data, const struct half *half)
{
	assert_ptr_equal(data, &left);
	left++;
	last_left = half->correlation;
}

static struct pairs *new_pairs(void)
{
	left = 0;
	return pairs_new(sizeof(struct mine), leave, &left);
}

static void test_a_half_waits_for_the_other(void **state)
{
	struct pairs *pairs = new_pairs();
	struct mine *mine = pairs_add(pairs, 3, 17, true);

	mine->value = 5;
	assert_ptr_equal(pairs_find(pairs, 3, 17), mine);
	assert_int_equal(((struct mine *)pairs_find(pairs, 3, 17))->value, 5);
	assert_null(pairs_find(pairs, 3, 18));
	assert_null(pairs_find(pairs, 4, 17));             /* the same number of another process, */
	assert_null(pairs_find(pairs, 3 + (1 << 16), 17)); /* in the same place, too */
	pairs_free(pairs);
}

static void test_a_half_that_met_its_other_does_not_leave(void **state)
{
	struct pairs *pairs = new_pairs();
	pairs_meet(pairs, pairs_add(pairs, 0, 1, true));
	pairs_remove(pairs, pairs_add(pairs, 0, 2, true));
	pairs_end(pairs);
	assert_int_equal(left, 0);
	assert_null(pairs_find(pairs, 0, 1));
	pairs_free(pairs);
}

static void test_what_nobody_came_for_leaves_at_the_end(void **state)
{
	struct pairs *pairs = new_pairs();

	pairs_add(pairs, 0, 1, true);
	pairs_add(pairs, 0, 2, false);
	pairs_end(pairs);
	assert_int_equal(left, 2);
	pairs_end(pairs);
	assert_int_equal(left, 2);
	pairs_free(pairs);
}

/* Adds calls from 1 on until one has to leave; returns how many there are then. */
static uint64_t fill(struct pairs *pairs)
{
	uint64_t next = 1;

	for (; !left && next < 10000000; next++)
		((struct mine *)pairs_add(pairs, 7, next, true))->value = (int)next;
	return next - 1;
}

static void test_the_oldest_leaves_where_too_many_wait(void **state)
{
	struct pairs *pairs = new_pairs();

	assert_in_range(fill(pairs), 50000, 100000);
	assert_int_equal(last_left, 1);
	pairs_free(pairs);
}

static void test_more_wait_where_activities_come_late(void **state)
{
	struct pairs *pairs = new_pairs();
	uint64_t n;

	pairs_expect_late(pairs, PAIRS_BYTES);
	n = fill(pairs);
	assert_in_range(n, 500000, PAIRS_BYTES / sizeof(struct mine) + 1);
	assert_int_equal(last_left, 1);
	for (uint64_t i = 2; i <= n; i++)
		assert_int_equal(((struct mine *)pairs_find(pairs, 7, i))->value, i);
	pairs_free(pairs);
}

/* Not how many calls were made since counts, but how many wait. */
static void test_a_call_waits_however_many_others_are_made_meanwhile(void **state)
{
	struct pairs *pairs = new_pairs();

	pairs_expect_late(pairs, PAIRS_BYTES);
	pairs_add(pairs, 1, 5, true);
	for (uint64_t i = 6; i < 3000000; i++)
		pairs_meet(pairs, pairs_add(pairs, 1, i, true));
	for (uint64_t i = 3000000; i < 6000000; i++)
		pairs_remove(pairs, pairs_add(pairs, 1, i, true));
	assert_int_equal(left, 0);
	assert_non_null(pairs_find(pairs, 1, 5));
	assert_null(pairs_find(pairs, 1, 4000000));
	pairs_free(pairs);
}

/* More of its work may come: a graph has many nodes. */
static void test_a_call_that_met_its_work_is_kept_while_there_is_room(void **state)
{
	struct pairs *pairs = new_pairs();

	pairs_expect_late(pairs, PAIRS_BYTES);
	for (uint64_t i = 1; i <= 100000; i++)
		pairs_meet(pairs, pairs_add(pairs, 1, i, true));
	for (uint64_t i = 100000; i > 50000; i--)
		assert_non_null(pairs_find(pairs, 1, i));
	pairs_free(pairs);
}

static void test_what_comes_after_its_other_had_to_leave_is_counted(void **state)
{
	struct pairs *pairs = new_pairs();
	uint64_t n = fill(pairs);

	pairs_add(pairs, 7, n + 1, true);
	assert_int_equal(left, 2);
	assert_int_equal(pairs_unjoined(pairs), 0); /* nothing may ever come for them */
	pairs_add(pairs, 7, 1, false);
	assert_int_equal(pairs_unjoined(pairs), 1);
	pairs_add(pairs, 8, 2, false); /* of another process */
	assert_int_equal(pairs_unjoined(pairs), 1);
	pairs_missed(pairs, 7, n + 5); /* never seen */
	assert_int_equal(pairs_unjoined(pairs), 1);
	pairs_missed(pairs, 7, 2);
	assert_int_equal(pairs_unjoined(pairs), 2);
	pairs_free(pairs);
}

/* Work whose calls were not seen does not take the room of calls. */
static void test_activities_do_not_push_out_calls(void **state)
{
	struct pairs *pairs = new_pairs();

	for (uint64_t i = 1; i <= 50000; i++)
		pairs_add(pairs, 1, i, true);
	for (uint64_t i = 1; i <= 200000; i++)
		pairs_add(pairs, 2, i, false);
	assert_true(left > 100000);
	assert_non_null(pairs_find(pairs, 2, 200000));
	for (uint64_t i = 1; i <= 50000; i++)
		assert_non_null(pairs_find(pairs, 1, i));
	pairs_free(pairs);
}

static void test_a_number_that_comes_again_replaces_the_first(void **state)
{
	struct pairs *pairs = new_pairs();

	pairs_add(pairs, 1, 5, true);
	((struct mine *)pairs_add(pairs, 1, 5, true))->value = 2;
	assert_int_equal(left, 1);
	assert_int_equal(((struct mine *)pairs_find(pairs, 1, 5))->value, 2);
	pairs_end(pairs);
	assert_int_equal(left, 2);
	pairs_free(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_half_waits_for_the_other),
		cmocka_unit_test(test_a_half_that_met_its_other_does_not_leave),
		cmocka_unit_test(test_what_nobody_came_for_leaves_at_the_end),
		cmocka_unit_test(test_the_oldest_leaves_where_too_many_wait),
		cmocka_unit_test(test_more_wait_where_activities_come_late),
		cmocka_unit_test(test_a_call_waits_however_many_others_are_made_meanwhile),
		cmocka_unit_test(test_a_call_that_met_its_work_is_kept_while_there_is_room),
		cmocka_unit_test(test_what_comes_after_its_other_had_to_leave_is_counted),
		cmocka_unit_test(test_activities_do_not_push_out_calls),
		cmocka_unit_test(test_a_number_that_comes_again_replaces_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
