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

/* Shares of a kernel are parts of it, whatever a file says. */
static void test_rows_do_not_begin_anew(void **state)
{
	struct stalls_use *use = stalls_use_new();
	const struct process process = { .id = 1 };
	const struct kernel kernel = { .id = 1, .name = "tick()" };
	size_t n;
	struct stall_row *rows;

	for (uint64_t i = 0; i < 3; i++) {
		const struct stall stall = {
			.kernel = &kernel, .reason = "membar", .offset = i, .samples = 1ull << 63
		};

		stalls_use_add(use, &(struct event){ .type = EVENT_STALL,
		                                     .process = &process,
		                                     .stall = &stall });
	}
	rows = stalls_use_reasons(use, &n);
	assert_int_equal(n, 1);
	assert_true(rows[0].samples == UINT64_MAX && rows[0].of_kernel == UINT64_MAX);
	free(rows);
	stalls_use_free(use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_rest_of_a_window_is_of_that_window),
		cmocka_unit_test(test_sums_do_not_begin_anew),
		cmocka_unit_test(test_rows_do_not_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
