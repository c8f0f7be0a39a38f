// SPDX-License-Identifier: MIT
/* How long a GPU was busy when pieces of work overlap and come late. */
#include "unit.h"

#include "analysis/busy.h"

static void test_overlaps_are_busy_once(void **state)
{
	struct busy busy = { 0 };

	busy_add(&busy, 10, 20);
	busy_add(&busy, 15, 30); /* overlaps the end */
	busy_add(&busy, 40, 50);
	busy_add(&busy, 5, 60); /* around all */
	assert_int_equal(busy_ns(&busy), 55);
	busy_add(&busy, 60, 70); /* touches */
	busy_add(&busy, 80, 80); /* nothing */
	assert_int_equal(busy_ns(&busy), 65);
	busy_free(&busy);
}

static void test_busy_time_of_many_pieces_adds_up(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	assert_int_equal(busy_ns(&busy), 3000);
	busy_free(&busy);
}

static void test_one_that_lasts_longer_than_a_thousand_others_counts_once(void **state)
{
	struct busy busy = { .most = BUSY_PIECES_OF_GPU };

	for (uint64_t i = 1; i <= 1000; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	busy_add(&busy, 5, 10100); /* ends after them all */
	assert_int_equal(busy_ns(&busy), 10095);
	busy_free(&busy);
}

static void test_what_begins_before_pieces_that_were_let_go_counts_after_them(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 0; i < BUSY_PIECES + 2; i++) /* the first two are let go */
		busy_add(&busy, i * 10, i * 10 + 3);
	busy_add(&busy, 0, 1000);
	assert_int_equal(busy_ns(&busy), 3 + 3 + (1000 - 13));
	busy_free(&busy);
}

static uint64_t told[8];
static size_t n_told;

static void tell(void *data, uint64_t begin_ns, uint64_t end_ns)
{
	told[n_told++] = begin_ns;
	told[n_told++] = end_ns;
}

static void test_pieces_are_told_in_order_once_nothing_can_join_them(void **state)
{
	struct busy busy = { .gone = tell };

	busy_add(&busy, 10, 20);
	busy_add(&busy, 40, 50);
	busy_add(&busy, 45, 60);
	assert_int_equal(n_told, 0);
	busy_finish(&busy);
	assert_int_equal(n_told, 4);
	assert_int_equal(told[0], 10);
	assert_int_equal(told[1], 20);
	assert_int_equal(told[2], 40);
	assert_int_equal(told[3], 60);
	assert_int_equal(busy_ns(&busy), 30);
	busy_free(&busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlaps_are_busy_once),
		cmocka_unit_test(test_busy_time_of_many_pieces_adds_up),
		cmocka_unit_test(test_one_that_lasts_longer_than_a_thousand_others_counts_once),
		cmocka_unit_test(test_what_begins_before_pieces_that_were_let_go_counts_after_them),
		cmocka_unit_test(test_pieces_are_told_in_order_once_nothing_can_join_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
