// SPDX-License-Identifier: MIT
/* How long targets may keep cuscope waiting. */
#include "unit.h"

#include "probe/account.h"

#define MS  1000000ull
#define SEC 1000000000ull

/* How much of a time somebody waits who is asked whenever that is allowed, and always takes `ms`.
 */
static double share_of(uint64_t ms, uint64_t seconds)
{
	struct account account = { 0 };
	uint64_t now = 100 * SEC, end = now + seconds * SEC, waited = 0;

	while (now < end) {
		if (account_is_over(&account, now)) {
			now += 20 * MS;
			continue;
		}
		now += ms * MS;
		waited += ms * MS;
		account_charge(&account, ms * MS, now);
	}
	return (double)waited / (double)(seconds * SEC);
}

static void test_who_always_waits_gets_a_tenth(void **state)
{
	assert_true(share_of(490, 600) < 0.12);
	assert_true(share_of(1, 600) < 0.12);
	assert_true(share_of(1990, 600) < 0.12);
}

/* A bad disk: 20 ms a page. */
static void test_two_hundred_slow_pages_are_waited_for_at_once(void **state)
{
	struct account account = { 0 };
	uint64_t now = 100 * SEC;

	for (int i = 0; i < 200; i++) {
		now += 20 * MS;
		assert_false(account_charge(&account, 20 * MS, now));
		assert_false(account_is_over(&account, now));
	}
}

static void test_five_slow_pages_a_second_are_for_ever(void **state)
{
	struct account account = { 0 };

	for (uint64_t now = 100 * SEC; now < 5000 * SEC; now += 200 * MS)
		assert_false(account_charge(&account, 20 * MS, now));
}

static void test_who_is_over_comes_back_when_half_has_gone(void **state)
{
	struct account account = { 0 };
	uint64_t now = 100 * SEC;

	assert_false(account_charge(&account, ACCOUNT_MOST_NS, now));
	assert_true(account_charge(&account, MS, now));
	assert_false(account_charge(&account, MS, now)); /* told once */
	assert_true(account_is_over(&account, now + 19 * SEC));
	assert_false(account_is_over(&account, now + 21 * SEC));
	assert_false(account_is_empty(&account, now + 21 * SEC));
	assert_true(account_is_empty(&account, now + 60 * SEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_always_waits_gets_a_tenth),
		cmocka_unit_test(test_two_hundred_slow_pages_are_waited_for_at_once),
		cmocka_unit_test(test_five_slow_pages_a_second_are_for_ever),
		cmocka_unit_test(test_who_is_over_comes_back_when_half_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
