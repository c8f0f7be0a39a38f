// SPDX-License-Identifier: MIT
/* How many files with hooks each user may have. */
#include "unit.h"

#include "probe/shares.h"

static unsigned files_of(struct shares *shares, uid_t owner)
{
	unsigned n = 0;

	while (n < 2 * SHARE_USERS_FILES && !shares_take_file(shares, owner))
		n++;
	return n;
}

static void test_one_user_does_not_fill_the_list_of_files(void **state)
{
	struct shares shares = { 0 };

	assert_int_equal(files_of(&shares, 1000), SHARE_USER_FILES);
	assert_non_null(strstr(shares_take_file(&shares, 1000), "of one user"));
	assert_null(shares_take_file(&shares, 1001));
	shares_free(&shares);
}

static void test_all_users_leave_some_to_root(void **state)
{
	struct shares shares = { 0 };

	for (uid_t user = 1000; user < 1010; user++)
		files_of(&shares, user);
	assert_int_equal(shares.files_of_users, SHARE_USERS_FILES);
	assert_non_null(strstr(shares_take_file(&shares, 2000), "other than root"));
	assert_null(shares_take_file(&shares, 0));
	shares_free(&shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_user_does_not_fill_the_list_of_files),
		cmocka_unit_test(test_all_users_leave_some_to_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
