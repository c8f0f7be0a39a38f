// SPDX-License-Identifier: MIT
/* The glob that the kernel runs means what fnmatch means by it. */
#include "unit.h"

#include <fnmatch.h>

#include "base/array.h"
#include "probe/name_glob.h"

static bool matches(const char *text, const char *name)
{
	struct wire_glob glob;

	assert_true(name_glob_compile(text, &glob));
	return name_glob_matches(&glob, name);
}

static void agree(const char *text, const char *name)
{
	bool expected = fnmatch(text, name, 0) == 0;

	if (matches(text, name) != expected)
		fail_msg("'%s' on '%s': should be %d", text, name, expected);
}

static void test_names_are_matched_whole(void **state)
{
	assert_true(matches("python3", "python3"));
	assert_false(matches("python3", "python3.11"));
	assert_false(matches("python3", "python"));
	assert_true(matches("", ""));
	assert_false(matches("", "a"));
	assert_true(matches("*", ""));
	assert_true(matches("py*3*1", "python3.11"));
	assert_true(matches("*.py", "train.py"));
	assert_false(matches("?", ""));
}

static void test_it_is_what_fnmatch_says(void **state)
{
	static const char *const globs[] = {
		"[a-c]x",
		"[!a-c]x",
		"[^a-c]x",
		"[]]x",
		"[]a]x",
		"[[:alpha:]]x",
		"[[:digit:]_]*",
		"[",
		"[a",
		"[]",
		"[!]",
		"[a\\]b]x",
		"\\*",
		"a\\",
		"\\",
		"a[.-]x",
		"[a-]x",
		"**a**",
		"[[.a.]]x",
		"[[=a=]]x",
		"[z-a]x",
		"[[:alpha:]",
		"[[:nothing:]]x",
		"a*[0-9]?",
		"[*?]x",
		"\\[a]",
	};
	static const char *const names[] = {
		"",   "a",  "ax",  "bx",        "]x",    "[",  "[a",         "[]", "[!]",
		"*",  "\\", "a\\", "-x",        "a.x",   "1x", "_x",         "zx", "abc01",
		"*x", "?x", "[a]", "\xc3\xa4x", "\xffx", ":x", "[[:alpha:]", "a",
	};

	for (size_t g = 0; g < ARRAY_SIZE(globs); g++) {
		for (size_t n = 0; n < ARRAY_SIZE(names); n++)
			agree(globs[g], names[n]);
	}
}

static void test_random_ones_as_well(void **state)
{
	static const char letters[] = "ab*?*ab[]!-\\1:";
	unsigned seed = 1;

	for (int round = 0; round < 200000; round++) {
		char text[16] = "", name[12] = "";

		for (unsigned i = 0, n = rand_r(&seed) % 9; i < n; i++)
			text[i] = letters[rand_r(&seed) % (sizeof(letters) - 1)];
		for (unsigned i = 0, n = rand_r(&seed) % 8; i < n; i++)
			name[i] = letters[rand_r(&seed) % (sizeof(letters) - 1)];
		agree(text, name);
	}
}

static void test_long_names_cross_the_words(void **state)
{
	char text[300], name[300];

	for (int len = 60; len <= 255; len++) {
		memset(text, '?', (size_t)len);
		memset(name, 'x', (size_t)len);
		text[len] = name[len] = '\0';
		assert_true(matches(text, name));
		name[len - 1] = '\0';
		assert_false(matches(text, name));
		text[0] = '*';
		assert_true(matches(text, name));
	}
}

static void test_more_places_than_a_name_has_are_refused(void **state)
{
	char text[300];
	struct wire_glob glob;

	memset(text, 'x', sizeof(text));
	text[256] = '\0';
	assert_false(name_glob_compile(text, &glob));
	text[255] = '\0';
	assert_true(name_glob_compile(text, &glob));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_matched_whole),
		cmocka_unit_test(test_it_is_what_fnmatch_says),
		cmocka_unit_test(test_random_ones_as_well),
		cmocka_unit_test(test_long_names_cross_the_words),
		cmocka_unit_test(test_more_places_than_a_name_has_are_refused),
	};

	return cmocka_run_group_tests_name("name_glob", tests, NULL, NULL);
}
