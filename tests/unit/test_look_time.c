// SPDX-License-Identifier: MIT
/* How long looks at what a user's processes have mapped may take. */
#include "unit.h"

#include "probe/account.h"
#include "probe/helper.h"
#include "probe/person.h"

#define MS 1000000ull

static void test_a_user_has_half_a_second_of_listing(void **state)
{
	const uint64_t person = 1001;

	assert_false(look_time_was_over(LOOK_AT_MAPS));
	look_time_charge(LOOK_AT_MAPS, person, 450 * MS);
	assert_false(look_time_is_over(LOOK_AT_MAPS, person));
	look_time_charge(LOOK_AT_MAPS, person, 100 * MS);
	assert_true(look_time_is_over(LOOK_AT_MAPS, person));
	assert_true(look_time_was_over(LOOK_AT_MAPS));
}

static void test_others_and_other_kinds_have_their_own(void **state)
{
	look_time_charge(LOOK_AT_MAPS, 1002, 60000 * MS);
	assert_true(look_time_is_over(LOOK_AT_MAPS, 1002));
	assert_false(look_time_is_over(LOOK_AT_MAPS, 1003));
	assert_false(look_time_is_over(LOOK_INTO_FILES, 1002));
	assert_false(look_time_is_over(LOOK_FOR_JUMPS, 1002));
}

static void test_root_and_who_is_gone_have_no_limit(void **state)
{
	look_time_charge(LOOK_AT_MAPS, PERSON_ROOT, 60000 * MS);
	look_time_charge(LOOK_AT_MAPS, PERSON_UNKNOWN, 60000 * MS);
	assert_false(look_time_is_over(LOOK_AT_MAPS, PERSON_ROOT));
	assert_false(look_time_is_over(LOOK_AT_MAPS, PERSON_UNKNOWN));
}

static void test_accounts_of_many_users_are_forgotten_when_empty(void **state)
{
	struct accounts accounts = { 0 };
	uint64_t now = 1000000 * MS;

	account_charge(accounts_of(&accounts, 7, now), ACCOUNT_MOST_NS + 1, now);
	for (uint64_t person = 1000; person < 3000; person++)
		assert_non_null(accounts_of(&accounts, person, now));
	assert_true(account_is_over(accounts_of(&accounts, 7, now), now));
	accounts_free(&accounts);
}

static void test_time_on_a_processor_is_counted(void **state)
{
	uint64_t begin_ns = helper_busy_ns();

	for (volatile int i = 0; i < 5000000; i++)
		;
	assert_true(helper_busy_ns() > begin_ns + MS / 10);
}

/* Tables of two million functions are read in 0.1 s; the capture stands still no longer than 2 s.
 */
static void test_symbols_have_two_seconds(void **state)
{
	look_time_charge(LOOK_AT_SYMBOLS, 1004, 1900 * MS);
	assert_false(look_time_is_over(LOOK_AT_SYMBOLS, 1004));
	look_time_charge(LOOK_AT_SYMBOLS, 1004, 200 * MS);
	assert_true(look_time_is_over(LOOK_AT_SYMBOLS, 1004));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_has_half_a_second_of_listing),
		cmocka_unit_test(test_symbols_have_two_seconds),
		cmocka_unit_test(test_others_and_other_kinds_have_their_own),
		cmocka_unit_test(test_root_and_who_is_gone_have_no_limit),
		cmocka_unit_test(test_accounts_of_many_users_are_forgotten_when_empty),
		cmocka_unit_test(test_time_on_a_processor_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
