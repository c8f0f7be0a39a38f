// SPDX-License-Identifier: MIT
/* Text for a terminal: made harmless, cut, wrapped. */
#include "support.h"

#include "base/buf.h"
#include "base/text.h"

static void assert_safe(const char *text, const char *expected)
{
	struct buf out = { 0 };

	buf_puts(&out, "");
	text_add_safe(&out, text);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void assert_name(const char *name, size_t columns, const char *expected)
{
	struct buf out = { 0 };

	text_add_name(&out, name, columns);
	assert_string_equal(out.data, expected);
	assert_true(text_columns(out.data) <= columns);
	buf_free(&out);
}

static void test_what_a_terminal_obeys_is_shown_as_numbers(void **state)
{
	assert_safe("plain", "plain");
	assert_safe("a\033[31mb\n", "a\\x1b[31mb\\x0a");
	assert_safe("csi \xc2\x9b", "csi \\xc2\\x9b"); /* the one-character form of ESC [ */
	assert_safe("rtl \xe2\x80\xae", "rtl \\xe2\\x80\\xae");
	assert_safe("none \xef\xbf\xbe",
	            "none \\xef\\xbf\\xbe"); /* U+FFFE: XML has no such character */
	assert_safe("m\xc3\xbc", "m\xc3\xbc");
}

static void test_broken_utf8_is_shown_as_numbers(void **state)
{
	assert_safe("\xff", "\\xff");
	assert_safe("end \xc3", "end \\xc3");
	assert_safe("overlong \xc0\xaf", "overlong \\xc0\\xaf");
	assert_safe("surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80");
}

static void test_columns_count_characters_and_not_bytes(void **state)
{
	assert_int_equal(text_columns("m\xc3\xbcller"), 6);
	assert_int_equal(text_columns("\xe6\xbc\xa2\xe5\xad\x97"), 4);
	assert_int_equal(text_columns("e\xcc\x81"), 1);
}

static void test_a_cut_never_splits_a_character(void **state)
{
	struct buf out = { 0 };

	text_add_cut(&out, "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", 4);
	assert_string_equal(out.data, "\xc3\xbc...");
	buf_reset(&out);
	text_add_cut(&out, "fits", 4);
	assert_string_equal(out.data, "fits");
	buf_reset(&out);
	text_add_cut(&out, "too long", 2);
	assert_string_equal(out.data, "..");
	buf_free(&out);
}

static void test_a_name_that_fits_is_whole(void **state)
{
	assert_name("vectorAdd(float const*, int)", 28, "vectorAdd(float const*, int)");
}

static void test_a_name_gives_way_from_the_inside(void **state)
{
	const char *name = "void at::native::kernel<4, std::array<char*, 3ul> >(int, float)";

	assert_name(name, 60, "void at::native::kernel<4, std::array<...> >(int, float)");
	assert_name(name, 40, "void at::native::kernel<...>(...)");
	assert_name(name, 20, "kernel<...>(...)");
	assert_name(name, 12, "kernel<.....");
}

static void test_brackets_without_content_get_no_dots(void **state)
{
	assert_name("empty_kernel_of_some_length()", 20, "empty_kernel_of_s...");
	assert_name("kernel<>()::operator()(float*) const", 33,
	            "kernel<>()::operator()(...) const");
}

/* How a name gives way, said once more: each level is tried. */
static void shorten_slowly(struct buf *out, const char *name, size_t columns)
{
	for (int level = (int)strlen(name); level > 0; level--) {
		int depth = 0;

		buf_reset(out);
		for (const char *at = name; *at; at++) {
			bool opens = *at == '<' || *at == '(';
			bool closes = *at == ')' || (*at == '>' && (at == name || at[-1] != '-'));

			depth -= closes && depth;
			if (depth < level)
				buf_putc(out, *at);
			if (opens && depth == level - 1 && at[1] != '>' && at[1] != ')')
				buf_puts(out, "...");
			depth += opens;
		}
		if (text_columns(out->data) <= columns)
			return;
	}
}

static void test_names_of_any_form_give_way_in_the_same_way(void **state)
{
	static const char letters[] = "ab<(>)-<(>)";
	struct buf slow = { 0 }, fast = { 0 };
	char name[40] = "";
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		for (size_t at = 0; at < sizeof(name) - 1; at++) {
			seed = seed * 1103515245 + 12345;
			name[at] = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		buf_reset(&fast);
		text_add_name(&fast, name, 25);
		shorten_slowly(&slow, name, 25);
		if (text_columns(slow.data) <= 25)
			assert_string_equal(fast.data, slow.data);
		else
			assert_true(text_columns(fast.data) <= 25);
	}
	buf_free(&slow);
	buf_free(&fast);
}

/* Each level looked at by itself, it would take a quarter of an hour. */
static void test_a_name_of_brackets_alone_takes_no_longer_than_another(void **state)
{
	size_t len = 1 << 20;
	char *name = malloc(len + 1);
	struct buf out = { 0 };

	memset(name, '(', len);
	memset(name + len / 2, ')', len / 2);
	name[0] = 'f';
	name[len] = '\0';
	text_add_name(&out, name, 60);
	assert_true(text_columns(out.data) <= 60);
	assert_int_equal(strncmp(out.data, "f(((", 4), 0);
	buf_free(&out);
	free(name);
}

static void test_a_text_is_cut_to_bytes_between_characters(void **state)
{
	char text[] = "m\xc3\xbcller";

	text_cut_bytes(text, 7);
	assert_string_equal(text, "m\xc3\xbcller");
	text_cut_bytes(text, 5);
	assert_string_equal(text, "m...");
}

static void wrapped(const char *text, size_t columns, const char *expected)
{
	struct buf out = { 0 };

	buf_puts(&out, "not this line, however wide\n");
	buf_puts(&out, text);
	text_wrap_lines(&out, strlen("not this line, however wide\n"), columns);
	assert_string_equal(out.data + strlen("not this line, however wide\n"), expected);
	buf_free(&out);
}

static void test_lines_are_wrapped_between_words(void **state)
{
	wrapped("one two three\nfour\n", 8, "one two\n  three\nfour\n");
	wrapped("one two three", 13, "one two three");
	wrapped("one two three", 0, "one two three");
	wrapped("  in  a table\n", 9, "  in  a\n    table\n");
	wrapped("a cudaErrorMemoryAllocation b\n", 10, "a\n  cudaErrorMemoryAllocation\n  b\n");
	wrapped("\033[1mone two\033[0m three\n", 8, "\033[1mone two\033[0m\n  three\n");
	wrapped("\u00e4\u00f6 \u4e2d\u6587\n\n", 7, "\u00e4\u00f6 \u4e2d\u6587\n\n");
	wrapped("\u00e4\u00f6 \u4e2d\u6587\n", 6, "\u00e4\u00f6\n  \u4e2d\u6587\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_terminal_obeys_is_shown_as_numbers),
		cmocka_unit_test(test_broken_utf8_is_shown_as_numbers),
		cmocka_unit_test(test_columns_count_characters_and_not_bytes),
		cmocka_unit_test(test_a_cut_never_splits_a_character),
		cmocka_unit_test(test_a_name_that_fits_is_whole),
		cmocka_unit_test(test_a_name_gives_way_from_the_inside),
		cmocka_unit_test(test_brackets_without_content_get_no_dots),
		cmocka_unit_test(test_names_of_any_form_give_way_in_the_same_way),
		cmocka_unit_test(test_a_name_of_brackets_alone_takes_no_longer_than_another),
		cmocka_unit_test(test_a_text_is_cut_to_bytes_between_characters),
		cmocka_unit_test(test_lines_are_wrapped_between_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
