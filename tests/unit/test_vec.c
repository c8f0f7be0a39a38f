// SPDX-License-Identifier: MIT
/* Arrays that grow by one element at a time. */
#include "unit.h"

#include <malloc.h>

#include "base/vec.h"

static void test_there_is_always_room_for_one_more(void **state)
{
	uint64_t *list = NULL;

	for (size_t n = 0; n < 5000; n++) {
		list = vec_room(list, n, sizeof(*list));
		assert_true(malloc_usable_size(list) >= (n + 1) * sizeof(*list));
		list[n] = n;
	}
	for (size_t n = 0; n < 5000; n++)
		assert_int_equal(list[n], n);
	free(list);
}

static void test_what_was_emptied_is_filled_again(void **state)
{
	static const size_t counts[] = { 100, 0, 3, 2, 9, 8, 7, 16, 15, 17, 0, 1, 64 };
	uint64_t *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		n = n < counts[i] ? n : counts[i];
		while (n < counts[i]) {
			list = vec_room(list, n, sizeof(*list));
			assert_true(malloc_usable_size(list) >= (n + 1) * sizeof(*list));
			list[n++] = i;
		}
	}
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_is_always_room_for_one_more),
		cmocka_unit_test(test_what_was_emptied_is_filled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
