// SPDX-License-Identifier: MIT
/* Rows that are found by their keys, and by their times. */
#include "unit.h"

#include <stdlib.h>

#include "account/facts.h"
#include "account/keyed.h"

struct row {
	uint32_t key[2];
	uint64_t sum;
};

static void test_rows_stay_in_the_order_in_which_they_came(void **state)
{
	struct keyed keyed = { .row_bytes = sizeof(struct row), .key_bytes = 8 };

	for (uint32_t i = 0; i < 30000; i++) {
		uint32_t key[2] = { i * 7919 % 10000, i % 10000 / 5000 };
		struct row *row = keyed_row(&keyed, key, SIZE_MAX);

		assert_memory_equal(row->key, key, sizeof(key));
		assert_int_equal(row->sum, i / 10000);
		row->sum++;
		assert_int_equal(keyed_number(&keyed, row), i % 10000);
		assert_ptr_equal(keyed_at(&keyed, i % 10000), row);
	}
	assert_int_equal(keyed.n, 10000);
	keyed_empty(&keyed);
	assert_int_equal(((struct row *)keyed_row(&keyed, (uint32_t[]){ 1, 2 }, 1))->sum, 0);
	keyed_free(&keyed);
}

static void test_there_is_no_room_for_more_than_the_most(void **state)
{
	struct keyed keyed = { .row_bytes = sizeof(struct row), .key_bytes = 8 };
	const uint32_t one[2] = { 1, 1 }, other[2] = { 2, 2 };

	assert_non_null(keyed_row(&keyed, one, 1));
	assert_null(keyed_row(&keyed, other, 1));
	assert_non_null(keyed_row(&keyed, one, 1)); /* what is there is found */
	assert_non_null(keyed_row(&keyed, other, 2));
	keyed_free(&keyed);
}

static int highest_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->key[0] < y->key[0]) - (x->key[0] > y->key[0]);
}

static void test_the_rows_that_are_kept_are_found_and_others_come_anew(void **state)
{
	struct keyed keyed = { .row_bytes = sizeof(struct row), .key_bytes = 8 };

	for (uint32_t i = 0; i < 1000; i++)
		((struct row *)keyed_row(&keyed, (uint32_t[]){ i, 0 }, 1000))->sum = i;
	keyed_sort(&keyed, highest_first);
	keyed_keep(&keyed, 600);
	for (uint32_t i = 400; i < 1000; i++)
		assert_int_equal(((struct row *)keyed_row(&keyed, (uint32_t[]){ i, 0 }, 600))->sum,
		                 i);
	assert_null(keyed_row(&keyed, (uint32_t[]){ 399, 0 }, 600));
	for (uint32_t i = 0; i < 400; i++)
		assert_int_equal(((struct row *)keyed_row(&keyed, (uint32_t[]){ i, 0 }, 1000))->sum,
		                 0);
	keyed_free(&keyed);
}

#define TIMES 1000

/* Wherever it was looked for before. */
static void test_times_are_found_from_anywhere(void **state)
{
	struct {
		uint64_t other, time_ns;
	} rows[TIMES];
	size_t near = 0;

	srand(26);
	for (size_t i = 0; i < TIMES; i++)
		rows[i].time_ns = (i ? rows[i - 1].time_ns : 10) + (uint64_t)(rand() % 4);
	for (size_t n = 1; n <= TIMES; n += 333)
		for (size_t i = 0; i < 20000; i++) {
			uint64_t wanted = (uint64_t)rand() % (rows[TIMES - 1].time_ns + 5);
			size_t at = 0;

			while (at < n && rows[at].time_ns <= wanted)
				at++;
			if (i % 3 == 0)
				near = (size_t)rand() % (n + 2);
			assert_int_equal(
				facts_later(&rows->time_ns, sizeof(*rows), n, wanted, &near), at);
			assert_int_equal(near, at);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_stay_in_the_order_in_which_they_came),
		cmocka_unit_test(test_there_is_no_room_for_more_than_the_most),
		cmocka_unit_test(test_the_rows_that_are_kept_are_found_and_others_come_anew),
		cmocka_unit_test(test_times_are_found_from_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
