// SPDX-License-Identifier: MIT
/* Samples of why kernels wait, added up. */
#include "unit.h"

#include "analysis/stalls_use.h"

static void add(struct stalls_use *use, uint32_t process_id, uint64_t begin_ns, uint64_t dropped)
{
	const struct process process = { .id = process_id };
	const struct stall stall = {
		.begin_ns = begin_ns, .end_ns = begin_ns + 20, .dropped = dropped, .cost_ns = 5
	};
	const struct event event = { .type = EVENT_STALL, .process = &process, .stall = &stall };

	stalls_use_add(use, &event);
}

static void test_the_rest_of_a_window_is_of_that_window(void **state)
{
	struct stalls_use *use = stalls_use_new();

	add(use, 1, 100, 1);
	add(use, 2, 110, 1);
	add(use, 1, 100, 1);
	add(use, 2, 110, 1);
	assert_int_equal(stalls_use_all(use)->windows, 2);
	assert_int_equal(stalls_use_all(use)->ns, 40);
	assert_int_equal(stalls_use_all(use)->cost_ns, 10);
	assert_int_equal(stalls_use_all(use)->dropped, 4);
	stalls_use_free(use);
}

static void test_sums_do_not_begin_anew(void **state)
{
	struct stalls_use *use = stalls_use_new();

	add(use, 1, 100, UINT64_MAX - 1);
	add(use, 1, 100, 100);
	assert_true(stalls_use_all(use)->dropped == UINT64_MAX);
	stalls_use_free(use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_rest_of_a_window_is_of_that_window),
		cmocka_unit_test(test_sums_do_not_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
