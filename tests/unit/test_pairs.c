// SPDX-License-Identifier: MIT
#include "output/pairs.h"

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
	struct half *half = pairs_add(pairs, 0, 1, true);

	half->met = true;
	pairs_remove(pairs_add(pairs, 0, 2, true));
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

/* The table does not grow: a half leaves when its place is needed, long after. */
static void test_the_older_half_leaves_for_a_newer(void **state)
{
	struct pairs *pairs = new_pairs();
	uint64_t next = 1;

	while (!left && next < 10000000)
		pairs_add(pairs, 0, next++, true);
	assert_int_equal(last_left, 1);
	assert_true(next > 50000);
	pairs_free(pairs);
}

/* It grows where activities come late, up to a bound; what waits is found again. */
static void test_more_wait_where_activities_come_late(void **state)
{
	struct pairs *pairs = new_pairs();
	uint64_t next = 1;

	pairs_expect_late(pairs);
	for (; !left && next < 10000000; next++)
		((struct mine *)pairs_add(pairs, 7, next, true))->value = (int)next;
	assert_true(next > 200000 && next < 1000000);
	for (uint64_t i = last_left + 1; i < next; i++)
		assert_int_equal(((struct mine *)pairs_find(pairs, 7, i))->value, i);
	pairs_free(pairs);
}

static void test_calls_that_ask_for_work(void **state)
{
	struct kernel *kernel = new_kernel("k", true);
	struct call call = launch_at("cuLaunchKernel", 0, kernel), other;

	assert_false(call_asks_for_work(&call)); /* without a number nothing can be its work */
	call.correlation = 1;
	assert_true(call_asks_for_work(&call));
	for (uint32_t flag = CALL_NESTED; flag <= CALL_FAILED; flag <<= 1) {
		other = call;
		other.flags = flag;
		assert_int_equal(call_asks_for_work(&other), flag == CALL_NO_RETURN);
	}
	other = alloc_at("cudaMalloc", 0, 1, 1);
	other.correlation = 1;
	assert_false(call_asks_for_work(&other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_half_waits_for_the_other),
		cmocka_unit_test(test_a_half_that_met_its_other_does_not_leave),
		cmocka_unit_test(test_what_nobody_came_for_leaves_at_the_end),
		cmocka_unit_test(test_the_older_half_leaves_for_a_newer),
		cmocka_unit_test(test_more_wait_where_activities_come_late),
		cmocka_unit_test(test_calls_that_ask_for_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
