// SPDX-License-Identifier: MIT
/* The nearest name to one that was misspelt. */
#include "unit.h"

#include "base/array.h"
#include "base/parse.h"

static const char *const names[] = { "trace",    "probes", "doctor", "min-duration",
	                             "duration", NULL,     "all" };

static const char *near(const char *typed)
{
	return suggest(typed, names, ARRAY_SIZE(names));
}

static void assert_near(const char *typed, const char *name)
{
	if (!near(typed))
		fail_msg("nothing is near '%s'", typed);
	assert_string_equal(near(typed), name);
}

static void test_one_letter_wrong_missing_or_too_many(void **state)
{
	assert_near("trade", "trace");
	assert_near("trce", "trace");
	assert_near("traces", "trace");
	assert_near("probe", "probes");
	assert_near("al", "all");
}

static void test_the_name_itself(void **state)
{
	assert_near("doctor", "doctor");
}

static void test_swapped_neighbours_count_once(void **state)
{
	assert_near("rtace", "trace");
	/* two swaps are two edits of six; four would be too many */
	assert_near("odctro", "doctor");
}

static void test_the_nearest_of_several(void **state)
{
	assert_near("durations", "duration");
	assert_near("mn-duration", "min-duration");
}

static void test_longer_names_may_differ_more(void **state)
{
	assert_near("mim-durasjon", "min-duration");
}

static void test_nothing_where_more_than_a_third_would_change(void **state)
{
	assert_null(near("xyz"));
	assert_null(near("tracing"));
	assert_null(near("prxxxs"));
	assert_null(near(""));
	assert_null(suggest("trace", names, 0));
}

static void test_words_without_end_are_near_to_nothing(void **state)
{
	char typed[1000], name[64], longest[65];
	const char *one = name, *too_long = longest;

	memset(typed, 'a', sizeof(typed) - 1);
	typed[sizeof(typed) - 1] = '\0';
	assert_null(near(typed));
	/* the longest names that are compared */
	memset(name, 'a', 63);
	name[63] = '\0';
	typed[62] = '\0';
	assert_ptr_equal(suggest(typed, &one, 1), name);
	memset(longest, 'a', 64);
	longest[64] = '\0';
	assert_null(suggest(typed, &too_long, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_letter_wrong_missing_or_too_many),
		cmocka_unit_test(test_the_name_itself),
		cmocka_unit_test(test_swapped_neighbours_count_once),
		cmocka_unit_test(test_the_nearest_of_several),
		cmocka_unit_test(test_longer_names_may_differ_more),
		cmocka_unit_test(test_nothing_where_more_than_a_third_would_change),
		cmocka_unit_test(test_words_without_end_are_near_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
