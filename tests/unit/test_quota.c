// SPDX-License-Identifier: MIT
/* Who may have how many: a process, its user, all but root, all. */
#include "unit.h"

#include "base/quota.h"

#define ANN  1000
#define BOB  1001
#define ROOT QUOTA_ROOT
#define GONE UINT64_MAX /* as PERSON_UNKNOWN */

static struct quota quota;

static int begin(void **state)
{
	quota = (struct quota){ .process = { 2, "a process" },
		                .user = { 4, "a user" },
		                .others = { 7, "all but root" },
		                .all = { 10, "all" } };
	return 0;
}

static int end(void **state)
{
	quota_free(&quota);
	return 0;
}

static void test_each_limit_refuses_with_its_sentence(void **state)
{
	assert_null(quota_take(&quota, ANN, 1, 2));
	assert_string_equal(quota_take(&quota, ANN, 1, 1), "a process");
	assert_null(quota_take(&quota, ANN, 2, 2));
	assert_string_equal(quota_take(&quota, ANN, 3, 1), "a user");
	assert_null(quota_take(&quota, BOB, 4, 2));
	assert_string_equal(quota_take(&quota, BOB, 5, 2), "all but root");
	assert_null(quota_take(&quota, ROOT, 6, 2));
	assert_null(quota_take(&quota, ROOT, 7, 2));
	assert_string_equal(quota_take(&quota, ROOT, 8, 1), "all");
	assert_string_equal(quota_take(&quota, ROOT, 0, SIZE_MAX), "all");
	assert_int_equal(quota.refused, 5);
	assert_int_equal(quota.taken, 10);
}

static void test_three_times_as_many_as_are_free(void **state)
{
	unsigned ann = 0, bob = 0, root = 0;

	while (quota_take_beside(&quota, ANN, 16))
		ann++;
	while (quota_take_beside(&quota, BOB, 16))
		bob++;
	assert_int_equal(ann, 12);
	assert_int_equal(bob, 3);
	while (quota_take_beside(&quota, ROOT, 16))
		root++;
	assert_int_equal(root, 1);
	assert_int_equal(quota.refused, 3);
}

static void test_what_is_refused_is_not_taken(void **state)
{
	assert_non_null(quota_take(&quota, ANN, 1, 3));
	assert_int_equal(quota.taken, 0);
	assert_null(quota.owners);
	assert_string_equal(quota_refuses(&quota, ANN, 1, 3), "a process");
	assert_int_equal(quota.refused, 1); /* asking is not taking */
}

static void test_what_is_given_back_is_there_for_others(void **state)
{
	assert_null(quota_take(&quota, ANN, 1, 2));
	quota_give(&quota, ANN, 1, 1);
	assert_null(quota_refuses(&quota, ANN, 1, 1));
	assert_int_equal(quota_of_user(&quota, ANN), 1);
	quota_give(&quota, ANN, 1, 1);
	assert_null(quota.owners); /* nobody is kept who has nothing */
	assert_int_equal(quota.taken_by_others, 0);
	quota_give(&quota, BOB, 2, 1); /* who has nothing gives nothing */
	assert_int_equal(quota.taken, 0);
}

static void test_root_has_the_limit_of_a_user_where_that_is_said(void **state)
{
	quota.root_too = true;
	assert_null(quota_take(&quota, ROOT, 0, 4));
	assert_string_equal(quota_take(&quota, ROOT, 0, 1), "a user");
}

static void test_what_is_there_already_counts_beyond_the_limits(void **state)
{
	quota_add(&quota, ANN, 1, 9);
	assert_non_null(quota_take(&quota, BOB, 2, 1));
	assert_null(quota_take(&quota, ROOT, 3, 1));
}

static void test_a_process_that_nobody_knows_is_a_user_like_others(void **state)
{
	assert_null(quota_take(&quota, GONE, 1, 2));
	assert_null(quota_take(&quota, GONE, 2, 2));
	assert_string_equal(quota_take(&quota, GONE, 3, 1), "a user");
	assert_true(quota_is_crowded(&quota, GONE));
}

static void test_a_user_is_no_crowd_for_others(void **state)
{
	assert_null(quota_take(&quota, ANN, 1, 2));
	assert_null(quota_take(&quota, ANN, 2, 2));
	assert_true(quota_is_crowded(&quota, ANN));
	assert_false(quota_is_crowded(&quota, BOB));
	assert_null(quota_take(&quota, BOB, 3, 2));
	assert_true(quota_is_crowded(&quota, BOB)); /* both have half of what all but root may */
	assert_false(quota_is_crowded(&quota, ROOT));
	assert_null(quota_take(&quota, ROOT, 4, 2));
	assert_true(quota_is_crowded(&quota, ROOT));
}

static void test_a_limit_without_words_is_one_as_well(void **state)
{
	struct quota places = quota_of_places(10);

	assert_null(quota_take(&places, ANN, 0, 4));
	assert_string_equal(quota_take(&places, ANN, 0, 1), "there is no room");
	assert_null(quota_take(&places, ROOT, 0, 100));
	quota_free(&places);
	assert_int_equal(quota_of_places(1).user.most, 1);
}

static void test_who_has_most_is_known(void **state)
{
	assert_int_equal(quota_most(&quota), ROOT);
	assert_null(quota_take(&quota, ANN, 1, 1));
	assert_null(quota_take(&quota, BOB, 2, 2));
	assert_int_equal(quota_most(&quota), BOB); /* and not his process, which has as much */
	assert_null(quota_take(&quota, ROOT, 3, 2));
	assert_null(quota_take(&quota, ROOT, 4, 1));
	assert_int_equal(quota_most(&quota), ROOT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_limit_refuses_with_its_sentence),
		TEST(test_three_times_as_many_as_are_free),
		TEST(test_what_is_refused_is_not_taken),
		TEST(test_what_is_given_back_is_there_for_others),
		TEST(test_root_has_the_limit_of_a_user_where_that_is_said),
		TEST(test_what_is_there_already_counts_beyond_the_limits),
		TEST(test_a_process_that_nobody_knows_is_a_user_like_others),
		TEST(test_a_user_is_no_crowd_for_others),
		TEST(test_a_limit_without_words_is_one_as_well),
		TEST(test_who_has_most_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
