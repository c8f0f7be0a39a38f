// SPDX-License-Identifier: MIT
/* The longest of many, and those that are alike. */
#include "unit.h"

#include "base/array.h"
#include "table/longest.h"

struct row {
	int length, number;
};

static int longer(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return (a->length < b->length) - (a->length > b->length);
}

static struct longest longest;

static void start(size_t most)
{
	longest_init(&longest, sizeof(struct row), most, longer);
}

static void keep(int length, int number)
{
	longest_keep(&longest, &(struct row){ length, number });
}

static void assert_rows(const int *lengths, size_t n)
{
	size_t n_rows;
	const struct row *rows = longest_rows(&longest, &n_rows);

	assert_int_equal(n_rows, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(rows[i].length, lengths[i]);
}

static void test_the_first_in_order_are_kept_and_more_can_follow(void **state)
{
	start(3);
	for (int i = 0; i < 100; i++)
		keep(i * 37 % 100, i);
	assert_rows((int[]){ 99, 98, 97 }, 3);
	keep(98, 0);
	keep(200, 0);
	keep(5, 0);
	assert_rows((int[]){ 200, 99, 98 }, 3);
	longest_free(&longest);
}

static void test_of_equal_rows_the_earlier_stay(void **state)
{
	const struct row *rows;
	size_t n;

	start(3);
	for (int i = 0; i < 9; i++)
		keep(i == 4 ? 8 : 7, i);
	rows = longest_rows(&longest, &n);
	assert_int_equal(rows[0].number, 4);
	assert_int_equal(rows[1].number, 0);
	assert_int_equal(rows[2].number, 1);
	longest_free(&longest);
}

static void test_what_has_to_go_is_handed_back(void **state)
{
	const struct row *gone;

	start(1);
	assert_null(longest_keep(&longest, &(struct row){ 1, 1 }));
	assert_false(longest_wants(&longest, &(struct row){ 1, 2 }));
	gone = longest_keep(&longest, &(struct row){ 2, 2 });
	assert_int_equal(gone->number, 1);
	assert_null(longest_keep(&longest, &(struct row){ 1, 3 }));
	longest_free(&longest);
}

static void test_none_may_be_asked_for(void **state)
{
	size_t n;

	start(0);
	keep(1, 1);
	longest_rows(&longest, &n);
	assert_int_equal(n, 0);
	longest_free(&longest);
}

static bool same_number(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return a->number == b->number;
}

static void test_rows_that_are_alike_are_one_with_their_number(void **state)
{
	struct row rows[] = { { 9, 1 }, { 8, 2 }, { 7, 1 }, { 6, 3 }, { 5, 2 }, { 4, 1 } };
	uint64_t counts[6];

	assert_int_equal(longest_group(rows, 6, sizeof(*rows), same_number, counts), 3);
	assert_int_equal(rows[0].length, 9);
	assert_int_equal(rows[1].length, 8);
	assert_int_equal(rows[2].length, 6);
	assert_int_equal(counts[0], 3);
	assert_int_equal(counts[1], 2);
	assert_int_equal(counts[2], 1);
}

/* Else a million rows would be compared with a million. */
static void test_only_the_first_groups_are_looked_at(void **state)
{
	static struct row rows[3 * LONGEST_GROUPED];
	static uint64_t counts[3 * LONGEST_GROUPED];
	size_t n = ARRAY_SIZE(rows);

	for (size_t i = 0; i < n; i++)
		rows[i].number = (int)(i % (n / 2));
	assert_int_equal(longest_group(rows, n, sizeof(*rows), same_number, counts),
	                 2 * LONGEST_GROUPED);
	assert_int_equal(counts[0], 2);
	assert_int_equal(counts[LONGEST_GROUPED - 1], 2);
	assert_int_equal(counts[LONGEST_GROUPED], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_in_order_are_kept_and_more_can_follow),
		cmocka_unit_test(test_of_equal_rows_the_earlier_stay),
		cmocka_unit_test(test_what_has_to_go_is_handed_back),
		cmocka_unit_test(test_none_may_be_asked_for),
		cmocka_unit_test(test_rows_that_are_alike_are_one_with_their_number),
		cmocka_unit_test(test_only_the_first_groups_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
