// SPDX-License-Identifier: MIT
/* Which calls failed, how often, first and last. */
#include "support.h"

#include "analysis/errors.h"

static struct consumer *errors;

static int set_up(void **state)
{
	errors = errors_new();
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(errors);
	return 0;
}

static void fail_at(const char *function, double at_us, int code, uint32_t tid, uint32_t flags)
{
	struct call call = call_at(function, at_us, 1);
	struct event event = call_event(the_process(), tid, &call);

	fail_call(&call, code);
	call.flags |= flags;
	feed(errors, &event);
}

static void test_errors_are_counted_by_function_and_code(void **state)
{
	const struct error_row *rows;
	size_t n;

	fail_at("cudaMalloc", 10, 2, 7, 0);
	fail_at("cudaFree", 20, 1, 8, 0);
	fail_at("cudaMalloc", 30, 2, 9, 0);
	fail_at("cudaMalloc", 40, 700, 9, 0);
	rows = errors_rows(errors, &n);
	assert_int_equal(n, 3);
	assert_string_equal(rows[0].function->name, "cudaMalloc");
	assert_int_equal(rows[0].code, 2);
	assert_int_equal(rows[0].count, 2);
	assert_int_equal(rows[0].first_ns, US(11));
	assert_int_equal(rows[0].last_ns, US(31));
	assert_int_equal(rows[0].tid, 7); /* of the first */
	assert_string_equal(rows[1].function->name, "cudaFree");
	assert_int_equal(rows[2].code, 700);
}

static void test_what_did_not_fail_or_failed_inside_is_no_row(void **state)
{
	struct call call = call_at("cudaStreamQuery", 1, 1);
	struct event event = call_event(the_process(), 1, &call);
	size_t n;

	call.result = 600; /* not ready: a poll, without CALL_FAILED */
	feed(errors, &event);
	fail_at("cuMemAlloc_v2", 2, 2, 1, CALL_NESTED);
	errors_rows(errors, &n);
	assert_int_equal(n, 0);
}

static void test_copies_of_a_library_share_a_row(void **state)
{
	struct function other = *the_function("cudaMalloc");
	struct call call = call_at("cudaMalloc", 10, 1);
	struct event event = call_event(the_process(), 5, &call);
	const struct error_row *rows;
	size_t n;

	other.id = 60;
	other.lib = "app";
	fail_call(&call, 2);
	feed(errors, &event);
	call.function = &other;
	event.time_ns = US(50);
	feed(errors, &event);
	rows = errors_rows(errors, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].count, 2);
	assert_int_equal(rows[0].first_ns, US(11));
	assert_int_equal(rows[0].last_ns, US(50));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_errors_are_counted_by_function_and_code),
		TEST(test_what_did_not_fail_or_failed_inside_is_no_row),
		TEST(test_copies_of_a_library_share_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
