// SPDX-License-Identifier: MIT
/* Rows of a page: what is written of them is what they were, however many tracks share the room. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "page/blocks.h"
#include "page/pack.h"
#include "page/wide.h"

/* ---- reading back ---------------------------------------------------------------------------- */

struct reader {
	const unsigned char *at, *end;
};

static uint64_t reader_number(struct reader *reader)
{
	uint64_t value = 0;
	unsigned shift = 0;

	do {
		assert_true(reader->at < reader->end);
		value |= (uint64_t)(*reader->at & 0x7f) << shift;
		shift += 7;
	} while (*reader->at++ & 0x80);
	return value;
}

static int64_t reader_signed(struct reader *reader)
{
	uint64_t value = reader_number(reader);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static int digit_value(char digit)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = digit ? strchr(digits, digit) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* What was packed in such a text; the caller frees it. */
static unsigned char *unpack(const char *text, size_t len, size_t *n)
{
	unsigned char *packed = malloc(len), *bytes = malloc(1 << 22);
	uLongf most = 1 << 22;
	uint32_t bits = 0;
	size_t k = 0;

	for (size_t i = 0; i < len && text[i] != '='; i++) {
		assert_true(digit_value(text[i]) >= 0);
		bits = bits << 6 | (uint32_t)digit_value(text[i]);
		if (i % 4)
			packed[k++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
	}
	assert_int_equal(Z_OK, uncompress(bytes, &most, packed, k));
	free(packed);
	*n = most;
	return bytes;
}

/* All of a file as text; the caller frees it. */
static char *file_text(FILE *file)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t len = getdelim(&text, &room, '\0', file);

	assert_true(len >= 0);
	return text;
}

/* The bytes of the block with that number. */
static unsigned char *block_bytes(const char *data, unsigned number, size_t *n)
{
	char head[64];
	const char *begin, *end;

	snprintf(head, sizeof(head), "<script type=\"text/plain\" id=\"b%u\">", number);
	begin = strstr(data, head);
	assert_non_null(begin);
	begin += strlen(head);
	end = strstr(begin, "</script>\n");
	assert_non_null(end);
	return unpack(begin, (size_t)(end - begin), n);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct page_blocks *blocks_new(void)
{
	struct err err = { 0 };
	struct page_blocks *blocks = page_blocks_new("b", &err);

	assert_non_null(blocks);
	return blocks;
}

static struct page_track *track_new(struct page_blocks *blocks, enum page_shape shape)
{
	struct page_track_options options = { .shape = shape, .title = "a track" };

	return page_track_new(blocks, &options);
}

static void test_numbers_of_any_size(void **state)
{
	static const uint64_t values[] = { 0,         1, 127, 128, 16383, 16384, PAGE_NUMBER_MOST,
		                           UINT64_MAX };
	struct buf out = { 0 };
	struct reader reader;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		page_varint(&out, values[i]);
	page_zigzag(&out, -1);
	page_zigzag(&out, INT64_MIN);
	page_zigzag(&out, INT64_MAX);
	reader = (struct reader){ (unsigned char *)out.data, (unsigned char *)out.data + out.len };
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		assert_true(values[i] == reader_number(&reader));
	assert_true(reader_signed(&reader) == -1);
	assert_true(reader_signed(&reader) == INT64_MIN);
	assert_true(reader_signed(&reader) == INT64_MAX);
	assert_ptr_equal(reader.at, reader.end);
	buf_free(&out);
}

static void test_bytes_of_any_number(void **state)
{
	for (size_t n = 1; n < 70; n++) {
		unsigned char bytes[70], *back;
		struct buf out = { 0 };
		size_t len;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)(i * 37 + n);
		page_pack(&out, &(struct buf){ .data = (char *)bytes, .len = n },
		          (struct page_chance[]){ { n / 3, n / 3 }, { n / 3 * 2, n / 5 } }, 2);
		assert_int_equal(0, out.len % 4);
		back = unpack(out.data, out.len, &len);
		assert_int_equal(n, len);
		assert_memory_equal(bytes, back, n);
		free(back);
		buf_free(&out);
	}
}

/* A call and one within it, which ends first. */
static void test_rows_are_in_order_of_their_begins(void **state)
{
	struct page_blocks *blocks = blocks_new();
	struct page_track *track = track_new(blocks, PAGE_CALL);
	uint32_t inner = page_name(blocks, "inner"), outer = page_name(blocks, "outer");
	struct err err = { 0 };
	struct reader reader;
	unsigned char *bytes;
	uint64_t *row;
	char *data, *meta;
	size_t n;

	row = page_row(blocks, track);
	row[PAGE_AT_BEGIN] = 1500;
	row[PAGE_AT_DURATION] = 100;
	row[PAGE_AT_NAME] = inner;
	row[CALL_DEPTH] = 1;
	row = page_row(blocks, track);
	row[PAGE_AT_BEGIN] = 1000;
	row[PAGE_AT_DURATION] = 1000;
	row[PAGE_AT_NAME] = outer;
	row[CALL_DETAIL] = page_text_add(blocks, track, 77, "size = 4");
	assert_int_equal(0, page_blocks_end(blocks, &err));
	data = file_text(page_blocks_data(blocks));
	meta = file_text(page_blocks_meta(blocks));
	assert_non_null(strstr(meta, "\"begin\":1000,\"end\":2000,\"rows\":2"));
	/* of what is within another the name is told, and no time */
	assert_non_null(strstr(meta, "[1,1,1000,1000]"));
	assert_non_null(strstr(meta, "[0,0,0,0]"));
	bytes = block_bytes(data, 0, &n);
	reader = (struct reader){ bytes, bytes + n };
	assert_int_equal(2, reader_number(&reader));
	assert_int_equal(3, reader_number(&reader)); /* bytes of the column of begins */
	assert_int_equal(0, *reader.at++);           /* from the block's begin on; so many bits */
	assert_int_equal(9, *reader.at++);
	assert_int_equal(500 - 256, *reader.at++); /* all but the highest */
	free(bytes);
	free(data);
	free(meta);
	page_blocks_free(blocks);
}

static void test_a_text_is_there_once_in_a_block(void **state)
{
	struct page_blocks *blocks = blocks_new();
	struct page_track *track = track_new(blocks, PAGE_RANGE);
	struct err err = { 0 };

	page_row(blocks, track);
	assert_int_equal(0, page_text_find(track, 5));
	assert_int_equal(1, page_text_add(blocks, track, 5, "first"));
	for (uint64_t key = 100; key < 1100; key++)
		page_text_add(blocks, track, key, "more");
	assert_int_equal(1, page_text_find(track, 5));
	assert_int_equal(1001, page_text_find(track, 1099));
	assert_int_equal(0, page_blocks_end(blocks, &err));
	page_blocks_free(blocks);
}

/* More than there is room for at once: all of them are in some block, and memory stays. */
static void test_many_tracks_share_the_room(void **state)
{
	enum { TRACKS = 600, ROWS = 1500 };
	struct page_blocks *blocks = blocks_new();
	struct page_track *tracks[TRACKS];
	struct buf text = { 0 };
	struct json json = { .out = &text };
	struct err err = { 0 };
	const char *at;
	uint64_t rows = 0;

	for (size_t i = 0; i < TRACKS; i++)
		tracks[i] = track_new(blocks, PAGE_WORK);
	for (uint64_t k = 0; k < ROWS; k++) {
		for (size_t i = 0; i < TRACKS; i++) {
			uint64_t *row = page_row(blocks, tracks[i]);

			row[PAGE_AT_BEGIN] = k * 1000 + i;
			row[PAGE_AT_DURATION] = 500;
		}
	}
	assert_int_equal(0, page_blocks_end(blocks, &err));
	json_open(&json, NULL, '{');
	page_blocks_json(blocks, &json);
	json_close(&json, '}');
	for (at = text.data; (at = strstr(at, "\"rows\":")); at++)
		rows += strtoull(at + strlen("\"rows\":"), NULL, 10);
	assert_int_equal(TRACKS * ROWS, rows);
	assert_int_equal(0, page_blocks_left_out(blocks));
	buf_free(&text);
	page_blocks_free(blocks);
}

static void test_tracks_and_names_have_a_bound(void **state)
{
	struct page_blocks *blocks = blocks_new();
	struct page_track *track = NULL;
	uint32_t last = 0, before;
	char name[32];

	for (int i = 0; i < 4097; i++)
		track = track_new(blocks, PAGE_STATE);
	assert_null(track);
	memset(page_row(blocks, track), 1, sizeof(uint64_t));
	assert_int_equal(1, page_blocks_left_out(blocks));
	for (int i = 0; i < 70000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		before = last;
		last = page_name(blocks, name);
	}
	assert_int_equal(before, last);
	assert_true(last < 65536);
	assert_int_equal(0, page_name(blocks, "name 0"));
	page_blocks_free(blocks);
}

/* Names of the longest that there are: few of them fill the room. */
static void test_names_have_a_bound_in_bytes(void **state)
{
	struct page_blocks *blocks = blocks_new();
	static char name[8193];
	uint32_t last = 0;

	memset(name, 'x', sizeof(name) - 1);
	for (int i = 0; i < 4000; i++) {
		snprintf(name, 8, "%06d", i);
		name[6] = 'x';
		last = page_name(blocks, name);
	}
	assert_in_range(last, 2000, 2048);
	page_blocks_free(blocks);
}

/* A block that is one moment, and rows that are longer than it all. */
static void test_parts_of_a_block(void **state)
{
	struct page_sums sums = { 0 };
	struct buf text = { 0 };
	struct json json = { .out = &text };

	page_sums_begin(&sums, 100, 100, 1);
	page_sums_add(&sums, (struct page_span){ .begin_ns = 100 });
	page_sums_begin(&sums, 0, 6400, 2);
	page_sums_add(&sums, (struct page_span){ .begin_ns = 0, .ns = 6400, .name = 1 });
	page_sums_add(&sums, (struct page_span){ .begin_ns = 100, .ns = 50, .name = 0 });
	assert_int_equal(100, sums.bins[0].ns);
	assert_int_equal(150, sums.bins[1].ns);
	assert_int_equal(1, sums.bins[1].name);
	json_open(&json, NULL, '{');
	page_sums_json(&sums, &json);
	json_close(&json, '}');
	/* 64 parts that are busy all the time: 255 each, six bits a digit */
	assert_int_equal(85, strspn(text.data + strlen("{\"bins\":\""), "/"));
	buf_reset(&text);
	json = (struct json){ .out = &text };
	page_sums_begin(&sums, 0, UINT64_MAX, 2);
	page_sums_add(&sums, (struct page_span){ .begin_ns = 0, .ns = UINT64_MAX, .name = 1 });
	json_open(&json, NULL, '{');
	page_sums_json(&sums, &json);
	json_close(&json, '}');
	assert_non_null(strstr(text.data, "[1,1,18446744073709551615,18446744073709551615]"));
	buf_free(&text);
	page_sums_free(&sums);
}

/* ---- words ----------------------------------------------------------------------------------- */

static unsigned word_at(const struct buf *words, size_t i)
{
	const unsigned char *at = (const unsigned char *)words->data + 2 * i;

	return at[0] | (unsigned)at[1] << 8;
}

static void add_base64(struct buf *out, const unsigned char *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t bit = 0; bit < 8 * n; bit += 6) {
		unsigned two = bytes[bit / 8] << 8 | (bit / 8 + 1 < n ? bytes[bit / 8 + 1] : 0);

		buf_putc(out, digits[two >> (10 - bit % 8) & 63]);
	}
	while (out->len % 4)
		buf_putc(out, '=');
}

/* Each word that there is, and a byte more. */
static void test_a_wide_block_has_the_same_bytes_and_nothing_that_html_changes(void **state)
{
	static unsigned char bytes[2 * 65536 + 1];
	struct buf packed = { 0 }, words = { 0 };
	size_t n = 0;

	for (unsigned word = 0; word < 65536; word++) {
		bytes[2 * word] = (unsigned char)word;
		bytes[2 * word + 1] = (unsigned char)(word >> 8);
	}
	bytes[sizeof(bytes) - 1] = 7;
	add_base64(&packed, bytes, sizeof(bytes));
	page_wide_block(&words, packed.data, packed.len);
	assert_int_equal(word_at(&words, 0), '1');
	for (size_t i = 1; i < words.len / 2; i++) {
		unsigned word = word_at(&words, i);

		assert_true(word && word != '\r' && word != '<');
		assert_false(word >= 0xd800 && word <= 0xdfff);
		if (word == PAGE_WIDE_MARK)
			word = word_at(&words, ++i) ^ PAGE_WIDE_OTHER;
		assert_int_equal(word & 0xff, bytes[n++]);
		assert_int_equal(word >> 8, n < sizeof(bytes) ? bytes[n] : 0);
		n++;
	}
	assert_int_equal(n, sizeof(bytes) + 1);
	buf_free(&packed);
	buf_free(&words);
}

/* A piece may end within a character, which comes whole with the next. */
static void test_wide_text_is_the_same_characters(void **state)
{
	static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80<\xff"
				   "b";
	static const unsigned expected[] = { 'a', 0xe4, 0x20ac, 0xd83d, 0xde00, '<', 0xfffd, 'b' };

	for (size_t first = 0; first < sizeof(text) - 1; first++) {
		struct buf words = { 0 };
		size_t taken = page_wide_add(&words, text, first);

		assert_true(taken <= first && first - taken < 4);
		assert_int_equal(page_wide_add(&words, text + taken, sizeof(text) - 1 - taken),
		                 sizeof(text) - 1 - taken);
		assert_int_equal(words.len, sizeof(expected) / 2);
		for (size_t i = 0; i < words.len / 2; i++)
			assert_int_equal(word_at(&words, i), expected[i]);
		buf_free(&words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_of_any_size),
		cmocka_unit_test(test_bytes_of_any_number),
		cmocka_unit_test(test_rows_are_in_order_of_their_begins),
		cmocka_unit_test(test_a_text_is_there_once_in_a_block),
		cmocka_unit_test(test_many_tracks_share_the_room),
		cmocka_unit_test(test_tracks_and_names_have_a_bound),
		cmocka_unit_test(test_names_have_a_bound_in_bytes),
		cmocka_unit_test(test_parts_of_a_block),
		cmocka_unit_test(
			test_a_wide_block_has_the_same_bytes_and_nothing_that_html_changes),
		cmocka_unit_test(test_wide_text_is_the_same_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
