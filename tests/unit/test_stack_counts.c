// SPDX-License-Identifier: MIT
/* How many stacks are whole, and why the others are not, in words and for programs. */
#include "support.h"

#include "analysis/stack_counts.h"

static const struct process process = { .pid = 42 };

static void add(struct stack_counts *counts, enum stack_end end, bool python_cut, unsigned times)
{
	const struct stack stack = { .end = end, .python_cut = python_cut };
	const struct call call = { .stack = &stack };
	const struct event event = { .type = EVENT_CALL, .process = &process, .call = &call };

	while (times--)
		stack_counts_event(counts, &event);
}

static void add_sample(struct stack_counts *counts, enum sample_kind kind, enum blocked blocked)
{
	const struct sample sample = { .kind = kind, .blocked = blocked };
	const struct event event = { .type = EVENT_SAMPLE, .process = &process, .sample = &sample };

	stack_counts_event(counts, &event);
}

static void assert_text(const struct stack_counts *counts, const char *expected)
{
	struct buf text = { 0 };

	buf_puts(&text, "");
	stack_counts_text(counts, &text);
	assert_string_equal(text.data, expected);
	buf_free(&text);
}

static void test_nothing_is_said_of_no_stacks(void **state)
{
	struct stack_counts counts = { 0 };
	const struct call call = { 0 };
	const struct event event = { .type = EVENT_CALL, .process = &process, .call = &call };

	stack_counts_event(&counts, &event);
	assert_int_equal(stack_counts_all(&counts), 0);
	assert_text(&counts, "");
}

static void test_whole_ones_are_all(void **state)
{
	struct stack_counts counts = { 0 };

	add(&counts, STACK_WHOLE, false, 3);
	assert_text(&counts, "all 3 stacks are whole");
}

static void test_each_reason_has_its_number(void **state)
{
	struct stack_counts counts = { 0 };

	add(&counts, STACK_WHOLE, false, 1);
	add(&counts, STACK_WHOLE, true, 2);
	add(&counts, STACK_TOO_DEEP, false, 1);
	add(&counts, STACK_NO_RULE, true, 3); /* cut, and so counted once */
	assert_int_equal(stack_counts_all(&counts), 7);
	assert_text(&counts, "1 of 7 stacks is whole; 1 is deeper than is kept; 3 end at a place "
	                     "without an unwind rule; 2 lack frames of Python");
}

static void test_those_by_frame_pointers_reach_their_begin(void **state)
{
	struct stack_counts counts = { 0 };

	add(&counts, STACK_BY_POINTERS, false, 6);
	assert_text(&counts, "6 of 6 stacks reach their begin; 6 rely on frame pointers where code "
	                     "has no unwind tables");
	add(&counts, STACK_WHOLE, false, 1);
	add(&counts, STACK_BAD, false, 1);
	assert_text(&counts, "7 of 8 stacks reach their begin; 1 ends at a frame that led nowhere; "
	                     "6 rely on frame pointers where code has no unwind tables");
	assert_int_equal(stack_counts_whole(&counts), 1);
}

static void test_sums_of_blocked_times_need_no_stack(void **state)
{
	struct stack_counts counts = { 0 };

	add_sample(&counts, SAMPLE_CPU, BLOCKED_UNKNOWN);
	add_sample(&counts, SAMPLE_OFF_CPU, BLOCKED_WOKEN);
	add_sample(&counts, SAMPLE_OFF_CPU, BLOCKED_BRIEF);
	add_sample(&counts, SAMPLE_OFF_CPU, BLOCKED_SKIPPED);
	assert_text(&counts, "0 of 2 stacks are whole; 2 are not known");
}

static void test_programs_are_told_the_same(void **state)
{
	struct stack_counts counts = { 0 };
	struct json json = { .out = &(struct buf){ 0 } };

	add(&counts, STACK_WHOLE, false, 2);
	add(&counts, STACK_BAD, false, 1);
	json_open(&json, NULL, '{');
	stack_counts_json(&counts, &json);
	json_close(&json, '}');
	assert_string_equal(json.out->data, "{\"whole\":2,\"cut\":{\"a frame that led nowhere\":1},"
	                                    "\"python_cut\":0,\"without\":0}");
	buf_free(json.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_said_of_no_stacks),
		cmocka_unit_test(test_whole_ones_are_all),
		cmocka_unit_test(test_each_reason_has_its_number),
		cmocka_unit_test(test_those_by_frame_pointers_reach_their_begin),
		cmocka_unit_test(test_sums_of_blocked_times_need_no_stack),
		cmocka_unit_test(test_programs_are_told_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
