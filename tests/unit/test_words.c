// SPDX-License-Identifier: MIT
/* Texts that go on in the next rows of a table. */
#include "support.h"

#include "table/table_text.h"

static struct buf line;

static int tear_down(void **state)
{
	buf_free(&line);
	line = (struct buf){ 0 };
	return 0;
}

static void test_a_line_ends_at_the_last_blank_that_fits(void **state)
{
	const char *text = "one two three";

	assert_true(words_line(&text, 8, &line));
	assert_string_equal(line.data, "one two");
	assert_false(words_line(&text, 8, &line));
	assert_string_equal(line.data, "three");
}

static void test_a_word_that_is_too_long_has_a_line_of_its_own(void **state)
{
	const char *text = "incomprehensible it is";

	assert_true(words_line(&text, 8, &line));
	assert_string_equal(line.data, "incomprehensible");
	assert_false(words_line(&text, 8, &line));
	assert_string_equal(line.data, "it is");
}

static void test_a_unit_stays_with_its_number(void **state)
{
	const char *text = "busy for 12.5 % of it";

	assert_true(words_line(&text, 14, &line));
	assert_string_equal(line.data, "busy for");
	assert_false(words_line(&text, 14, &line));
	assert_string_equal(line.data, "12.5 % of it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_line_ends_at_the_last_blank_that_fits, tear_down),
		cmocka_unit_test_teardown(test_a_word_that_is_too_long_has_a_line_of_its_own,
		                          tear_down),
		cmocka_unit_test_teardown(test_a_unit_stays_with_its_number, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
