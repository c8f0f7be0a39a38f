// SPDX-License-Identifier: MIT
/* When threads begin to matter that targets are woken by. */
#include "capture/wakers.h"

#include "unit.h"

#define A_TENTH (WAKERS_MATTER_NS / 10)

static void test_a_thread_matters_once_when_it_was_waited_for_long_enough(void **state)
{
	struct wakers *wakers = wakers_new();

	for (int i = 0; i < 9; i++) {
		assert_false(wakers_note(wakers, 7, A_TENTH));
		assert_false(wakers_note(wakers, 8, A_TENTH / 2));
	}
	assert_true(wakers_note(wakers, 7, A_TENTH));
	assert_false(wakers_note(wakers, 7, A_TENTH));
	assert_true(wakers_note(wakers, 9, UINT64_MAX));
	assert_false(wakers_note(wakers, 9, UINT64_MAX));
	assert_false(wakers_note(wakers, 8, A_TENTH));
	wakers_free(wakers);
}

static void test_threads_beyond_those_there_is_room_for_make_it_begin_anew(void **state)
{
	struct wakers *wakers = wakers_new();

	assert_false(wakers_note(wakers, 1, WAKERS_MATTER_NS - 1));
	for (uint32_t tid = 2; tid <= 5000; tid++)
		assert_false(wakers_note(wakers, tid, 1));
	assert_false(wakers_note(wakers, 1, 1)); /* it was forgotten */
	assert_true(wakers_note(wakers, 1, WAKERS_MATTER_NS));
	wakers_free(wakers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_matters_once_when_it_was_waited_for_long_enough),
		cmocka_unit_test(test_threads_beyond_those_there_is_room_for_make_it_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
