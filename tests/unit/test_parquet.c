// SPDX-License-Identifier: MIT
/* Parquet's encodings, read back by decoders of their own, and the files that are made of them. */
#include "output/parquet/parquet_encode.h"
#include "output/parquet/parquet_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/array.h"
#include "failing_output.h"

/* ---- decoders ------------------------------------------------------------------------------ */

struct bytes {
	const uint8_t *at, *end;
};

static struct bytes bytes_of(const struct buf *buf)
{
	const uint8_t *data = (const uint8_t *)buf->data;

	return (struct bytes){ data, data + buf->len };
}

static uint8_t take(struct bytes *in)
{
	assert_true(in->at < in->end);
	return *in->at++;
}

static uint64_t take_varint(struct bytes *in)
{
	uint64_t value = 0, byte = 0x80;

	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		byte = take(in);
		value |= (byte & 0x7f) << shift;
	}
	return value;
}

static int64_t take_zigzag(struct bytes *in)
{
	uint64_t value = take_varint(in);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* Number `i` of those that stand bit by bit from `at` on. */
static uint64_t bits_at(const uint8_t *at, size_t i, unsigned bits)
{
	uint64_t value = 0;

	for (unsigned bit = 0; bit < bits; bit++) {
		size_t place = i * bits + bit;

		value |= (uint64_t)(at[place / 8] >> (place % 8) & 1) << bit;
	}
	return value;
}

static size_t take_runs(struct bytes *in, unsigned bits, uint32_t *values, size_t most)
{
	size_t n = 0;

	while (in->at < in->end && n < most) {
		uint64_t head = take_varint(in), count = head & 1 ? head / 2 * 8 : head / 2;
		const uint8_t *at = in->at;

		in->at += head & 1 ? head / 2 * bits : (bits + 7) / 8;
		assert_true(in->at <= in->end);
		for (uint64_t i = 0; i < count && n < most; i++)
			values[n++] = (uint32_t)bits_at(at, head & 1 ? i : 0,
			                                head & 1 ? bits : (bits + 7) / 8 * 8);
	}
	return n;
}

static size_t take_deltas(struct bytes *in, int64_t *values)
{
	uint64_t block = take_varint(in), parts = take_varint(in), n = take_varint(in), i = 1;

	assert_int_equal(block % 128, 0);
	assert_int_equal(block / parts % 32, 0);
	values[0] = take_zigzag(in);
	while (i < n) {
		uint64_t least = (uint64_t)take_zigzag(in);
		const uint8_t *bits = in->at;

		in->at += parts;
		for (uint64_t part = 0; part < parts && i < n; part++) {
			for (uint64_t k = 0; k < block / parts && i < n; k++, i++)
				values[i] = (int64_t)((uint64_t)values[i - 1] + least +
				                      bits_at(in->at, k, bits[part]));
			in->at += block / parts * bits[part] / 8;
			assert_true(in->at <= in->end);
		}
	}
	return n;
}

/* ---- encodings ----------------------------------------------------------------------------- */

static void test_runs_are_as_the_format_shows_them(void **state)
{
	static const uint32_t values[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	AT_END(buf_free) struct buf out = { 0 };

	parquet_add_runs(&out, values, ARRAY_SIZE(values), 3);
	assert_int_equal(out.len, 4);
	assert_memory_equal(out.data, "\x03\x88\xc6\xfa", 4);
}

static void check_runs(const uint32_t *values, size_t n, unsigned bits)
{
	AT_END(buf_free) struct buf out = { 0 };
	uint32_t back[600];
	struct bytes in;

	parquet_add_runs(&out, values, n, bits);
	in = bytes_of(&out);
	assert_int_equal(take_runs(&in, bits, back, n), n);
	assert_memory_equal(back, values, n * sizeof(*values));
	assert_ptr_equal(in.at, in.end);
}

static void test_runs_come_back(void **state)
{
	uint32_t values[600];

	for (unsigned bits = 1; bits <= 32; bits += bits < 20 ? 1 : 4) {
		for (size_t n = 1; n <= ARRAY_SIZE(values); n += n < 40 ? 1 : 53) {
			for (size_t i = 0; i < n; i++) /* runs of all lengths, and none */
				values[i] = (uint32_t)(i * i / 50 * 2654435761u) >> (32 - bits);
			check_runs(values, n, bits);
			memset(values, 0, sizeof(values));
			check_runs(values, n, bits);
		}
	}
}

static void check_deltas(const int64_t *values, size_t n)
{
	AT_END(buf_free) struct buf out = { 0 };
	int64_t back[700];
	struct bytes in;

	parquet_add_deltas(&out, values, n);
	in = bytes_of(&out);
	assert_int_equal(take_deltas(&in, back), n);
	assert_memory_equal(back, values, n * sizeof(*values));
	assert_ptr_equal(in.at, in.end);
}

static void test_deltas_come_back(void **state)
{
	int64_t values[700];

	for (size_t n = 1; n <= ARRAY_SIZE(values); n += n < 140 ? 1 : 31) {
		for (size_t i = 0; i < n; i++)
			values[i] = (int64_t)(i * 6364136223846793005u >> (n % 64));
		check_deltas(values, n);
		for (size_t i = 0; i < n; i++)
			values[i] = i % 3 == 0 ? INT64_MIN : i % 3 == 1 ? INT64_MAX : (int64_t)i;
		check_deltas(values, n);
	}
}

static void test_times_take_few_bytes(void **state)
{
	AT_END(buf_free) struct buf out = { 0 };
	int64_t values[640];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		values[i] = (int64_t)(1000000000000 + 1000 * i + i % 16);
	parquet_add_deltas(&out, values, ARRAY_SIZE(values));
	assert_in_range(out.len, 320, 460);
}

/* ---- files --------------------------------------------------------------------------------- */

static const struct parquet_column columns[] = { { "start", PARQUET_NUMBER, true },
	                                         { "text", PARQUET_TEXT, false },
	                                         { "value", PARQUET_REAL, false } };

struct made {
	struct parquet_packer *packer;
	struct parquet_file *file;
	int fd;
	struct err err;
};

static void begin(struct made *made)
{
	*made = (struct made){ .packer = parquet_packer_new(), .fd = memfd_create("table", 0) };
	made->file = parquet_file_new(columns, ARRAY_SIZE(columns), made->packer);
}

static void end(struct made *made)
{
	parquet_file_free(made->file);
	parquet_packer_free(made->packer);
	close(made->fd);
}

static void add(struct made *made, int64_t start, const char *text)
{
	parquet_file_number(made->file, 0, start);
	if (text)
		parquet_file_text(made->file, 1, text, strlen(text));
	else
		parquet_file_null(made->file, 1);
	parquet_file_null(made->file, 2);
	parquet_file_row(made->file);
}

/* The file, whose ends are what they must be; the caller frees it. */
static uint8_t *read_back(struct made *made, size_t *len, size_t *footer)
{
	uint8_t *data;
	uint32_t bytes;

	*len = (size_t)parquet_file_bytes(made->file);
	data = malloc(*len);
	assert_int_equal(pread(made->fd, data, *len + 1, 0), *len);
	assert_memory_equal(data, "PAR1", 4);
	assert_memory_equal(data + *len - 4, "PAR1", 4);
	memcpy(&bytes, data + *len - 8, sizeof(bytes));
	*footer = *len - 8 - bytes;
	assert_in_range(*footer, 4, *len);
	return data;
}

static void test_a_file_without_rows_is_a_file(void **state)
{
	struct made made;
	size_t len, footer;

	begin(&made);
	assert_int_equal(parquet_file_end(made.file, made.fd, &made.err), 0);
	free(read_back(&made, &len, &footer));
	assert_int_equal(footer, 4);
	end(&made);
}

/* The first page of a file of one row group: its header is followed field by field. */
static void take_page(struct bytes *in, uint8_t *raw, size_t most)
{
	static const uint8_t fields[] = { 0x15, 0x15, 0x15 };
	int64_t values[3];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		assert_int_equal(take(in), fields[i]);
		values[i] = take_zigzag(in);
	}
	assert_int_equal(values[0], 0); /* a page of data */
	assert_int_equal(take(in), 0x2c);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(take(in), 0x15);
		take_zigzag(in);
	}
	assert_int_equal(take(in), 0);
	assert_int_equal(take(in), 0);
	assert_in_range(values[1], 1, most);
	assert_int_equal(ZSTD_decompress(raw, most, in->at, (size_t)values[2]), values[1]);
	in->at += values[2];
}

static void test_a_page_has_the_values(void **state)
{
	struct made made;
	uint8_t *data, raw[8192];
	int64_t back[700];
	size_t len, footer;
	struct bytes in, page = { raw, raw + sizeof(raw) };

	begin(&made);
	for (int64_t i = 0; i < 700; i++)
		add(&made, i * i, NULL);
	assert_int_equal(parquet_file_end(made.file, made.fd, &made.err), 0);
	data = read_back(&made, &len, &footer);
	in = (struct bytes){ data + 4, data + footer };
	take_page(&in, raw, sizeof(raw));
	assert_int_equal(take_deltas(&page, back), 700);
	for (int64_t i = 0; i < 700; i++)
		assert_int_equal(back[i], i * i);
	free(data);
	end(&made);
}

static void test_what_is_written_is_held_no_more(void **state)
{
	struct made made;
	uint64_t before;

	begin(&made);
	for (int64_t i = 0; i < 100000; i++)
		add(&made, i * i * i, i % 2 ? "odd" : NULL);
	assert_in_range(parquet_file_held(made.file).packed, 10000, 2000000);
	assert_in_range(parquet_file_held(made.file).raw, 1000, 200000);
	assert_int_equal(parquet_file_held_rows(made.file), 100000);
	assert_int_equal(parquet_file_bytes(made.file), 0);
	assert_int_equal(parquet_file_write(made.file, made.fd, &made.err), 0);
	assert_int_equal(parquet_file_held(made.file).packed, 0);
	assert_int_equal(parquet_file_held(made.file).raw, 0);
	assert_int_equal(parquet_file_held_rows(made.file), 0);
	before = parquet_file_bytes(made.file);
	assert_in_range(before, 10000, 2000000);
	assert_int_equal(parquet_file_write(made.file, made.fd, &made.err), 0);
	assert_int_equal(parquet_file_bytes(made.file), before); /* no row group of no rows */
	assert_int_equal(parquet_file_rows(made.file), 100000);
	end(&made);
}

static void test_few_texts_stand_in_a_dictionary(void **state)
{
	static const char *const texts[] = { "a text of a kernel's name", "and another one" };
	struct made made;

	begin(&made);
	for (int64_t i = 0; i < 50000; i++)
		add(&made, 0, texts[i * i / 7 % 2]);
	assert_int_equal(parquet_file_end(made.file, made.fd, &made.err), 0);
	assert_in_range(parquet_file_bytes(made.file), 100, 50000 / 8);
	end(&made);
}

static void test_a_null_where_none_may_be_is_told(void **state)
{
	struct made made;

	begin(&made);
	parquet_file_null(made.file, 0);
	parquet_file_null(made.file, 1);
	parquet_file_null(made.file, 2);
	parquet_file_row(made.file);
	assert_int_equal(parquet_file_end(made.file, made.fd, &made.err), -EINVAL);
	assert_non_null(strstr(made.err.text, "start"));
	end(&made);
}

static void test_a_full_disk_is_told(void **state)
{
	FILE *out = tmpfile();
	struct made made;

	begin(&made);
	for (int64_t i = 0; i < 10000; i++)
		add(&made, i * i * i, NULL);
	limit_file_size(1000);
	assert_int_equal(parquet_file_end(made.file, fileno(out), &made.err), -EFBIG);
	unlimit_file_size();
	fclose(out);
	end(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_are_as_the_format_shows_them),
		cmocka_unit_test(test_runs_come_back),
		cmocka_unit_test(test_deltas_come_back),
		cmocka_unit_test(test_times_take_few_bytes),
		cmocka_unit_test(test_a_file_without_rows_is_a_file),
		cmocka_unit_test(test_a_page_has_the_values),
		cmocka_unit_test(test_what_is_written_is_held_no_more),
		cmocka_unit_test(test_few_texts_stand_in_a_dictionary),
		cmocka_unit_test(test_a_null_where_none_may_be_is_told),
		cmocka_unit_test(test_a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
