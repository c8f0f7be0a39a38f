// SPDX-License-Identifier: MIT
/* Who gets memory for what targets make cuscope keep. */
#include "unit.h"

#include "base/budget.h"

#define EACH 100000u
#define ALL  250000u

static int make(void **state)
{
	*state = budget_new(EACH, ALL);
	return 0;
}

static int destroy(void **state)
{
	budget_free(*state);
	return 0;
}

static void test_each_has_its_limit(void **state)
{
	struct budget *budget = *state;

	assert_true(budget_take(budget, 1, EACH - 1));
	assert_false(budget_take(budget, 1, 2));
	assert_true(budget_take(budget, 1, 1));
	assert_false(budget_take(budget, 1, SIZE_MAX));
	assert_true(budget_take(budget, 2, EACH));
	assert_int_equal(budget_refused(budget), 2);
	assert_int_equal(budget_used(budget), 2 * EACH);
}

static void test_all_together_have_one(void **state)
{
	struct budget *budget = *state;

	assert_true(budget_take(budget, 1, EACH));
	assert_true(budget_take(budget, 2, EACH));
	assert_false(budget_take(budget, 3, EACH));
	assert_true(budget_take(budget, 3, ALL - 2 * EACH));
	assert_int_equal(budget_used(budget), ALL);
}

static void test_a_small_part_is_everybodys_own(void **state)
{
	struct budget *budget = *state;

	budget_take(budget, 1, EACH);
	budget_take(budget, 2, EACH);
	budget_take(budget, 3, ALL - 2 * EACH);
	assert_true(budget_take(budget, 4, BUDGET_SMALL));
	assert_false(budget_take(budget, 4, 1));
	budget_give(budget, 4, BUDGET_SMALL);
	assert_true(budget_take(budget, 4, BUDGET_SMALL));
	assert_int_equal(budget_used(budget), ALL);
}

/* Else a thousand processes with a small part each would be a limit of their own. */
static void test_the_small_parts_are_bounded_too(void **state)
{
	struct budget *budget = *state;
	uint32_t got = 0;

	budget_take(budget, 1, EACH);
	budget_take(budget, 2, EACH);
	budget_take(budget, 3, ALL - 2 * EACH);
	for (uint32_t owner = 10; owner < 10000; owner++)
		got += budget_take(budget, owner, BUDGET_SMALL);
	assert_true(got <= BUDGET_OWNERS);
	assert_true(got > BUDGET_OWNERS / 2);
}

static void test_what_is_given_back_can_be_taken_again(void **state)
{
	struct budget *budget = *state;

	for (int i = 0; i < 1000; i++) {
		assert_true(budget_take(budget, 1, EACH));
		budget_give(budget, 1, EACH);
	}
	assert_int_equal(budget_used(budget), 0);
	assert_int_equal(budget_refused(budget), 0);
}

static void test_what_an_owner_leaves_behind_counts_for_all(void **state)
{
	struct budget *budget = *state;

	budget_take(budget, 1, EACH);
	budget_end(budget, 1);
	assert_int_equal(budget_used(budget), EACH);
	assert_true(budget_take(budget, 1, EACH)); /* another process with that pid */
	budget_end(budget, 1);
	assert_false(budget_take(budget, 1, EACH));
	budget_give(budget, 9, EACH); /* of one that is gone */
	assert_int_equal(budget_used(budget), EACH);
}

static void test_who_was_refused_is_told_once(void **state)
{
	struct budget *budget = *state;
	uint32_t owner = 0;
	enum budget_limit all = BUDGET_LIMIT_ALL;

	assert_false(budget_news(budget, &owner, &all));
	budget_take(budget, 7, EACH + 1);
	budget_take(budget, 7, EACH + 1);
	assert_true(budget_news(budget, &owner, &all));
	assert_int_equal(owner, 7);
	assert_int_equal(all, BUDGET_LIMIT_OWN);
	assert_false(budget_news(budget, &owner, &all));
	budget_take(budget, 1, EACH);
	budget_take(budget, 2, EACH);
	budget_take(budget, 3, EACH);
	assert_true(budget_news(budget, &owner, &all));
	assert_int_equal(owner, 3);
	assert_int_equal(all, BUDGET_LIMIT_ALL);
}

static void test_those_who_are_not_named_are_counted(void **state)
{
	struct budget *budget = *state;
	uint32_t owner;
	enum budget_limit all;

	for (uint32_t i = 1; i <= 100; i++) {
		budget_take(budget, i, EACH + 1);
		budget_take(budget, i, EACH + 1);
	}
	for (uint32_t i = 1; i <= 64; i++)
		assert_true(budget_news(budget, &owner, &all));
	assert_false(budget_news(budget, &owner, &all));
	assert_int_equal(budget_unnamed(budget), 36);
	assert_int_equal(budget_unnamed(NULL), 0);
}

#define ANN  100 /* whose owners are a hundred from here on */
#define BOB  200
#define GONE 999

static uint64_t person_of(uint32_t owner)
{
	return owner == GONE ? BUDGET_UNKNOWN : owner / 100;
}

/* As long as they live, and when they have ended: names of kernels are kept. */
static void test_one_person_leaves_room_for_another(void **state)
{
	for (int ended = 0; ended < 2; ended++) {
		struct budget *budget = budget_new(EACH, ALL);
		enum budget_limit limit;
		uint32_t owner;

		budget_of_persons(budget, person_of);
		assert_true(budget_take(budget, ANN, EACH));
		assert_true(budget_take(budget, ANN + 1, ALL / 8 * 5 - EACH));
		if (ended) {
			budget_end(budget, ANN);
			budget_end(budget, ANN + 1);
		}
		assert_false(budget_take(budget, ANN + 2, BUDGET_SMALL + 1));
		assert_true(budget_news(budget, &owner, &limit));
		assert_int_equal(owner, ANN + 2);
		assert_int_equal(limit, BUDGET_LIMIT_PERSON);
		assert_true(budget_take(budget, GONE, ALL / 8));
		assert_false(budget_take(budget, GONE, BUDGET_SMALL));
		assert_true(budget_take(budget, BOB, ALL / 4));
		budget_give(budget, ANN, EACH);
		assert_true(budget_take(budget, ANN + 3, EACH / 2));
		assert_true(budget_take(budget, 7, EACH / 2)); /* root has what is there */
		budget_free(budget);
	}
}

static void test_one_person_has_a_part_of_the_small_parts(void **state)
{
	struct budget *budget = budget_new(EACH, ALL);
	uint32_t got = 0;

	budget_of_persons(budget, person_of);
	budget_take(budget, 1, EACH);
	budget_take(budget, 2, EACH);
	budget_take(budget, 3, ALL - 2 * EACH);
	for (uint32_t owner = ANN; owner < BOB; owner++)
		got += budget_take(budget, owner, BUDGET_SMALL);
	assert_int_equal(got, BUDGET_OWNERS / 4);
	assert_true(budget_take(budget, BOB, BUDGET_SMALL));
	budget_give(budget, ANN, BUDGET_SMALL);
	assert_true(budget_take(budget, ANN + 99, BUDGET_SMALL));
	budget_free(budget);
}

/* As pids are given anew: of ten thousand owners and more, one person's or of everybody. */
static uint64_t one_person_of(uint32_t owner)
{
	return owner < 100000 ? 1 : 2;
}

static uint64_t any_person_of(uint32_t owner)
{
	return owner % 20 ? owner % 20 : BUDGET_UNKNOWN;
}

/* What so many owners keep that leave something behind, which is never given back. */
static size_t left_behind(struct budget *budget, uint32_t owners, bool ended, size_t bytes)
{
	size_t kept = 0;

	for (uint32_t owner = 1; owner <= owners; owner++) {
		for (size_t n = 0; n < BUDGET_SMALL / bytes; n++)
			kept += budget_take(budget, owner, bytes) ? bytes : 0;
		if (ended)
			budget_end(budget, owner);
	}
	return kept;
}

static void test_what_is_never_given_back_has_a_bound(void **state)
{
	const size_t all = 16 << 20, small = (size_t)BUDGET_OWNERS * BUDGET_SMALL;

	for (int ended = 0; ended < 2; ended++) {
		struct budget *budget = budget_new(all / 2, all);
		size_t kept;

		budget_of_persons(budget, one_person_of);
		kept = left_behind(budget, ended ? 10000 : 50000, ended, BUDGET_SMALL);
		assert_in_range(kept, all / 8 * 5, all / 8 * 5 + small / 4);
		/* the same pids once more */
		assert_int_equal(left_behind(budget, ended ? 10000 : 0, ended, 1024), 0);
		for (size_t n = 0; n < all / 4; n += 4096)
			assert_true(budget_take(budget, 100000, 4096));
		budget_free(budget);

		budget = budget_new(all / 2, all);
		budget_of_persons(budget, any_person_of);
		kept = left_behind(budget, ended ? 10000 : 50000, ended, BUDGET_SMALL / 8);
		assert_in_range(kept, all, all + small);
		budget_free(budget);
	}
}

static void test_what_ended_owners_left_of_small_parts_can_be_given_back(void **state)
{
	struct budget *budget = *state;

	budget_take(budget, 1, EACH);
	budget_take(budget, 2, EACH);
	budget_take(budget, 3, ALL - 2 * EACH);
	for (int i = 0; i < 3; i++) {
		for (uint32_t owner = 10; owner < 10 + BUDGET_OWNERS; owner++) {
			assert_true(budget_take(budget, owner, BUDGET_SMALL));
			budget_end(budget, owner);
		}
		assert_false(budget_take(budget, 5, 1));
		for (uint32_t owner = 10; owner < 10 + BUDGET_OWNERS; owner++)
			budget_give(budget, owner, BUDGET_SMALL);
	}
	assert_int_equal(budget_used(budget), ALL);
}

static void test_an_owner_that_began_at_another_time_is_another(void **state)
{
	struct budget *budget = *state;

	budget_began(budget, 1, 77);
	assert_true(budget_take(budget, 1, EACH));
	budget_began(budget, 1, 77);
	budget_began(budget, 1, 0); /* not known */
	assert_false(budget_take(budget, 1, 1));
	budget_began(budget, 1, 78);
	assert_true(budget_take(budget, 1, EACH));
	assert_int_equal(budget_used(budget), 2 * EACH);
}

static void test_none_is_without_limits(void **state)
{
	assert_true(budget_take(NULL, 1, SIZE_MAX));
	budget_give(NULL, 1, 5);
	budget_end(NULL, 1);
	assert_int_equal(budget_refused(NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_has_its_limit),
		TEST(test_all_together_have_one),
		TEST(test_a_small_part_is_everybodys_own),
		TEST(test_the_small_parts_are_bounded_too),
		TEST(test_what_is_given_back_can_be_taken_again),
		TEST(test_what_an_owner_leaves_behind_counts_for_all),
		TEST(test_who_was_refused_is_told_once),
		TEST(test_those_who_are_not_named_are_counted),
		cmocka_unit_test(test_one_person_leaves_room_for_another),
		cmocka_unit_test(test_one_person_has_a_part_of_the_small_parts),
		cmocka_unit_test(test_what_is_never_given_back_has_a_bound),
		TEST(test_what_ended_owners_left_of_small_parts_can_be_given_back),
		TEST(test_an_owner_that_began_at_another_time_is_another),
		TEST(test_none_is_without_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
