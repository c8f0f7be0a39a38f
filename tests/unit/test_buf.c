// SPDX-License-Identifier: MIT
/* Strings that grow, and numbers, sizes and durations in them. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

#include "base/array.h"

/* Each test begins with an empty buffer in *state. */
static int make(void **state)
{
	static struct buf buf;

	*state = &buf;
	return 0;
}

static int empty(void **state)
{
	buf_free(*state);
	return 0;
}

static void expect(struct buf *buf, const char *text)
{
	assert_string_equal(buf->data, text);
	assert_int_equal(buf->len, strlen(text));
	buf_reset(buf);
}

static void test_zeroed_buffer_is_empty(void **state)
{
	struct buf *buf = *state;

	assert_null(buf->data);
	buf_reset(buf);
	assert_int_equal(buf->len, 0);
	buf_add(buf, "", 0);
	expect(buf, "");
}

static void test_pieces_are_appended(void **state)
{
	struct buf *buf = *state;

	buf_puts(buf, "one");
	buf_putc(buf, ' ');
	buf_add(buf, "two words", 3);
	buf_printf(buf, " %d", 3);
	expect(buf, "one two 3");
}

static void test_zero_bytes_are_kept(void **state)
{
	struct buf *buf = *state;

	buf_add(buf, "a\0b", 3);
	assert_int_equal(buf->len, 3);
	assert_memory_equal(buf->data, "a\0b", 4);
}

static void test_grows_over_many_additions(void **state)
{
	struct buf *buf = *state;

	for (int i = 0; i < 100000; i++)
		buf_putc(buf, (char)('a' + i % 26));
	assert_int_equal(buf->len, 100000);
	assert_int_equal(buf->data[99999], 'a' + 99999 % 26);
	assert_int_equal(buf->data[100000], '\0');
}

static void test_printf_longer_than_the_room_is_whole(void **state)
{
	struct buf *buf = *state;
	char word[5001];

	memset(word, 'x', 5000);
	word[5000] = '\0';
	for (int len = 120; len < 5000; len += 61) {
		buf_puts(buf, "<");
		buf_printf(buf, "%.*s>", len, word);
		assert_int_equal(buf->len, len + 2);
		assert_int_equal(buf->data[len + 1], '>');
		buf_free(buf);
	}
}

static void test_reset_keeps_memory_and_free_does_not(void **state)
{
	struct buf *buf = *state;

	buf_puts(buf, "text");
	buf_reset(buf);
	assert_int_equal(buf->len, 0);
	assert_string_equal(buf->data, "");
	assert_true(buf->cap > 0);
	buf_free(buf);
	assert_null(buf->data);
	assert_int_equal(buf->cap, 0);
}

static void test_numbers_agree_with_printf(void **state)
{
	static const unsigned long long values[] = {
		0, 1, 9, 10, 99, 1234567890, LLONG_MAX, 1ull << 63, ULLONG_MAX,
	};
	struct buf *buf = *state;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(text, sizeof(text), "%llu", values[i]);
		buf_u64(buf, values[i]);
		expect(buf, text);
		snprintf(text, sizeof(text), "%lld", (long long)values[i]);
		buf_s64(buf, (long long)values[i]);
		expect(buf, text);
		snprintf(text, sizeof(text), "0x%llx", values[i]);
		buf_hex(buf, values[i]);
		expect(buf, text);
	}
}

/* ---- JSON strings ---------------------------------------------------------------------------- */

static void test_json_string_has_quotes(void **state)
{
	buf_json_string(*state, "cuInit");
	expect(*state, "\"cuInit\"");
	buf_json_string(*state, "");
	expect(*state, "\"\"");
}

static void test_json_string_escapes_quotes_and_backslashes(void **state)
{
	buf_json_string(*state, "a\"b\\c");
	expect(*state, "\"a\\\"b\\\\c\"");
}

static void test_json_string_escapes_control_characters(void **state)
{
	buf_json_string(*state, "a\nb\x01\x1f\x7f");
	expect(*state, "\"a\\u000ab\\u0001\\u001f\\u007f\"");
}

static void test_json_string_keeps_utf8(void **state)
{
	buf_json_string(*state, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	expect(*state, "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

static void test_json_string_replaces_what_is_not_utf8(void **state)
{
	static const struct {
		const char *text, *json;
	} bad[] = {
		{ "\x80", "\"\\ufffd\"" },                                  /* continuation alone */
		{ "\xc3", "\"\\ufffd\"" },                                  /* cut short */
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },                       /* cut short */
		{ "\xc0\xaf", "\"\\ufffd\\ufffd\"" },                       /* overlong '/' */
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },            /* surrogate */
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" }, /* over 0x10ffff */
		{ "\xff", "\"\\ufffd\"" },
		{ "\xc3(", "\"\\ufffd(\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		buf_json_string(*state, bad[i].text);
		expect(*state, bad[i].json);
	}
}

/* ---- units ----------------------------------------------------------------------------------- */

static void test_bytes_have_binary_units(void **state)
{
	static const struct {
		unsigned long long bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.00 KiB" },
		{ 1536, "1.50 KiB" },
		{ 1ull << 20, "1.00 MiB" },
		{ 5ull << 30, "5.00 GiB" },
		{ 1ull << 40, "1.00 TiB" },
		{ 1ull << 50, "1.00 PiB" },
		{ ULLONG_MAX, "16384.00 PiB" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		buf_bytes(*state, cases[i].bytes);
		expect(*state, cases[i].text);
	}
}

static void test_durations_have_the_fitting_unit(void **state)
{
	static const struct {
		unsigned long long ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },       { 999, "999 ns" },       { 1000, "1.00 us" },
		{ 1340, "1.34 us" }, { 2001000, "2.001 ms" }, { 3200000000ull, "3.200 s" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		buf_duration(*state, cases[i].ns);
		expect(*state, cases[i].text);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, empty)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_zeroed_buffer_is_empty),
		TEST(test_pieces_are_appended),
		TEST(test_zero_bytes_are_kept),
		TEST(test_grows_over_many_additions),
		TEST(test_printf_longer_than_the_room_is_whole),
		TEST(test_reset_keeps_memory_and_free_does_not),
		TEST(test_numbers_agree_with_printf),
		TEST(test_json_string_has_quotes),
		TEST(test_json_string_escapes_quotes_and_backslashes),
		TEST(test_json_string_escapes_control_characters),
		TEST(test_json_string_keeps_utf8),
		TEST(test_json_string_replaces_what_is_not_utf8),
		TEST(test_bytes_have_binary_units),
		TEST(test_durations_have_the_fitting_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
