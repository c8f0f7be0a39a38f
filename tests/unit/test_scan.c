// SPDX-License-Identifier: MIT
/* Reading a command line before argp does: options, values, mistakes. */
#include "unit.h"

#include "cli/option.h"

static const struct option_row child_rows[] = { { .title = "Targets:", .order = 1 },
	                                        { "pid", 'p', "PID", "" },
	                                        { "all", .help = "" },
	                                        { "all-calls", 0, "each", "", .optional = true } };
static const struct option_group child = { OPTION_ROWS(child_rows) };
static const struct option_part parts[] = { { &child, 0 }, { 0 } };
static const struct option_row rows[] = { { "verbose", 'v', .help = "" },
	                                  { "duration", 0, "TIME", "" },
	                                  { "secret", .help = NULL } };
static const struct option_group group = { OPTION_ROWS(rows), .parts = parts };

static struct unknown_option unknown;

/* `line` is split at its blanks. */
static bool scan(const char *line, bool command)
{
	char *copy = strdup(line), *rest = copy, *argv[16] = { "cuscope" };
	int argc = 1;
	bool good;

	while ((argv[argc] = strsep(&rest, " ")))
		argc++;
	good = scan_options(&group, argc, argv, command, &unknown);
	free(copy);
	return good;
}

static void assert_good(const char *line)
{
	if (!scan(line, false))
		fail_msg("'%s': --%s is unknown", line, unknown.typed);
}

static void assert_unknown(const char *line, const char *typed, const char *near)
{
	assert_false(scan(line, false));
	assert_string_equal(unknown.typed, typed);
	if (near)
		assert_string_equal(unknown.near, near);
	else
		assert_null(unknown.near);
}

static void test_options_that_exist(void **state)
{
	assert_good("--verbose --all -p 1 --pid 2 --duration=3s -v");
	assert_good("--help --usage --version");
}

static void test_the_beginning_of_a_name_will_do(void **state)
{
	assert_good("--verb --dur 3s");
	assert_good("--al"); /* two begin so: argp says that it is ambiguous */
}

static void test_an_unknown_option_has_the_nearest_name(void **state)
{
	assert_unknown("--durration 3s", "durration", "duration");
	assert_unknown("-v --alll", "alll", "all");
	assert_unknown("--hepl", "hepl", "help");
	assert_unknown("--xyzzy", "xyzzy", NULL);
	assert_good("--secret");
	assert_unknown("--secreet", "secreet", NULL); /* what --help does not show */
}

static void test_a_value_is_no_part_of_a_name(void **state)
{
	assert_unknown("--durration=3s", "durration", "duration");
}

static void test_a_value_may_look_like_an_option(void **state)
{
	assert_good("--duration --what");
	assert_good("-p --what");
	assert_good("-vp --what");
	assert_unknown("-p1 --what", "what", NULL);
	assert_unknown("--duration=1 --what", "what", NULL);
	assert_unknown("-v --what", "what", NULL);
}

static void test_a_value_that_may_be_left_out_is_not_the_next_word(void **state)
{
	assert_unknown("--all-calls --what", "what", NULL);
	assert_true(scan("--all-calls ./app --what", true));
	assert_good("--all-calls=each");
}

static void test_what_follows_two_dashes_is_not_looked_at(void **state)
{
	assert_good("-v -- --what");
	assert_unknown("--duration -- --what", "what", NULL); /* there they are its value */
}

static void test_words_are_stepped_over(void **state)
{
	assert_unknown("file - --what", "what", NULL);
}

static void test_a_commands_own_options_are_not_looked_at(void **state)
{
	assert_true(scan("-v ./app --what", true));
	assert_false(scan("-v --what ./app", true));
	assert_true(scan("-p 1 ./app --what", true));
	assert_true(scan("- --what", true));
}

static void test_a_very_long_option_is_cut(void **state)
{
	char line[300] = "--";

	memset(line + 2, 'x', sizeof(line) - 3);
	assert_false(scan(line, false));
	assert_int_equal(strlen(unknown.typed), sizeof(unknown.typed) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_that_exist),
		cmocka_unit_test(test_the_beginning_of_a_name_will_do),
		cmocka_unit_test(test_an_unknown_option_has_the_nearest_name),
		cmocka_unit_test(test_a_value_is_no_part_of_a_name),
		cmocka_unit_test(test_a_value_may_look_like_an_option),
		cmocka_unit_test(test_a_value_that_may_be_left_out_is_not_the_next_word),
		cmocka_unit_test(test_what_follows_two_dashes_is_not_looked_at),
		cmocka_unit_test(test_words_are_stepped_over),
		cmocka_unit_test(test_a_commands_own_options_are_not_looked_at),
		cmocka_unit_test(test_a_very_long_option_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
