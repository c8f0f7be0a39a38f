// SPDX-License-Identifier: MIT
/* How many files with hooks each user may have. */
#include "unit.h"

#include "probe/hook_numbers.h"

static unsigned files_of(struct shares *shares, uid_t owner)
{
	unsigned n = 0;

	while (n < 2 * SHARE_USERS_FILES && !shares_take_file(shares, owner))
		n++;
	return n;
}

static void test_one_user_does_not_fill_the_list_of_files(void **state)
{
	struct shares shares = shares_init();

	assert_int_equal(files_of(&shares, 1000), SHARE_USER_FILES);
	assert_non_null(strstr(shares_take_file(&shares, 1000), "of one user"));
	assert_null(shares_take_file(&shares, 1001));
	shares_free(&shares);
}

static void test_all_users_leave_some_to_root(void **state)
{
	struct shares shares = shares_init();

	for (uid_t user = 1000; user < 1010; user++)
		files_of(&shares, user);
	assert_int_equal(shares.files.taken_by_others, SHARE_USERS_FILES);
	assert_non_null(strstr(shares_take_file(&shares, 2000), "other than root"));
	assert_null(shares_take_file(&shares, 0));
	shares_free(&shares);
}

static void test_a_file_has_all_its_hooks_or_none(void **state)
{
	struct shares shares = shares_init();
	const char *why;

	for (unsigned i = 0; i < SHARE_USER / SHARE_FILE - 1; i++)
		assert_int_equal(shares_take(&shares, 1000, 2 * SHARE_FILE, &why), SHARE_FILE);
	assert_non_null(strstr(why, "one file"));
	assert_int_equal(shares_take(&shares, 1000, SHARE_FILE - 1, &why), SHARE_FILE - 1);
	assert_null(why);
	assert_int_equal(shares_take(&shares, 1000, 2, &why), 0);
	assert_non_null(strstr(why, "of one user"));
	assert_int_equal(shares_take(&shares, 1001, 2, &why), 2);
	assert_int_equal(shares_take(&shares, 1000, 1, &why), 1);
	shares_free(&shares);
}

static void take(struct shares *shares, uid_t owner, size_t hooks)
{
	const char *why;

	for (size_t left = hooks, n; left; left -= n) {
		n = left < SHARE_FILE ? left : SHARE_FILE;
		assert_int_equal(shares_take(shares, owner, n, &why), n);
	}
}

static void test_one_user_is_no_crowd_for_others(void **state)
{
	struct shares shares = shares_init();

	take(&shares, 1000, SHARE_USER);
	take(&shares, 1001, 1000);
	take(&shares, 0, 1000);
	files_of(&shares, 1000);
	files_of(&shares, 1002); /* that is both most of what they may have */
	assert_true(shares_are_crowded(&shares, 1000));
	assert_false(shares_are_crowded(&shares, 1001));
	assert_false(shares_are_crowded(&shares, 0));
	shares_free(&shares);
}

static void test_many_are_a_crowd_for_everybody(void **state)
{
	struct shares shares = shares_init();

	for (uid_t user = 1000; user < 1008; user++)
		take(&shares, user, 1000);
	assert_true(shares_are_crowded(&shares, 1000)); /* of what all users may have */
	assert_false(shares_are_crowded(&shares, 0));
	take(&shares, 0, 1000);
	assert_true(shares_are_crowded(&shares, 0));
	shares_free(&shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_user_does_not_fill_the_list_of_files),
		cmocka_unit_test(test_all_users_leave_some_to_root),
		cmocka_unit_test(test_a_file_has_all_its_hooks_or_none),
		cmocka_unit_test(test_one_user_is_no_crowd_for_others),
		cmocka_unit_test(test_many_are_a_crowd_for_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
