// SPDX-License-Identifier: MIT
/* The longest calls of a trace. */
#include "support.h"

#include "analysis/slowest.h"

static void see(struct consumer *slowest, struct call call)
{
	struct event event = call_event(the_process(), 4243, &call);

	feed(slowest, &event);
}

static void test_the_longest_calls_stay_longest_first(void **state)
{
	static const double durations[] = { 5, 90, 3, 40, 41, 7, 60, 1, 39 };
	struct consumer *slowest = slowest_new(4);
	const struct slow_call *rows;
	size_t n;

	for (size_t i = 0; i < 9; i++)
		see(slowest, call_at("cudaMalloc", 100.0 * (double)i, durations[i]));
	rows = slowest_rows(slowest, &n);
	assert_int_equal(n, 4);
	assert_int_equal(call_duration_ns(&rows[0].call), 90000);
	assert_int_equal(call_duration_ns(&rows[1].call), 60000);
	assert_int_equal(call_duration_ns(&rows[2].call), 41000);
	assert_int_equal(call_duration_ns(&rows[3].call), 40000);
	consumer_free(slowest);
}

static void test_of_equal_calls_the_earlier_stay(void **state)
{
	struct consumer *slowest = slowest_new(2);
	const struct slow_call *rows;
	size_t n;

	for (int i = 0; i < 5; i++)
		see(slowest, call_at("cudaMalloc", 100.0 * i, 5));
	rows = slowest_rows(slowest, &n);
	assert_int_equal(rows[0].call.begin_ns, US(0));
	assert_int_equal(rows[1].call.begin_ns, US(100));
	consumer_free(slowest);
}

static void test_inner_and_endless_calls_are_left_out(void **state)
{
	struct consumer *slowest = slowest_new(10);
	struct call nested = call_at("cuMemAlloc_v2", 1, 100);
	struct call endless = call_at("cudaDeviceSynchronize", 2, 100);
	size_t n;

	nested.flags |= CALL_NESTED;
	never_ends(&endless, CALL_UNFINISHED);
	see(slowest, nested);
	see(slowest, endless);
	slowest_rows(slowest, &n);
	assert_int_equal(n, 0);
	assert_int_equal(slowest_unfinished(slowest), 1);
	consumer_free(slowest);
}

static void test_texts_are_kept_after_their_event(void **state)
{
	struct consumer *slowest = slowest_new(1);
	char text[] = "kernel_a";
	struct call call = call_at("cuModuleGetFunction", 1, 100);
	size_t n;

	call.text = text;
	see(slowest, call);
	text[0] = 'x';
	assert_string_equal(slowest_rows(slowest, &n)->call.text, "kernel_a");
	consumer_free(slowest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_longest_calls_stay_longest_first),
		cmocka_unit_test(test_of_equal_calls_the_earlier_stay),
		cmocka_unit_test(test_inner_and_endless_calls_are_left_out),
		cmocka_unit_test(test_texts_are_kept_after_their_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
