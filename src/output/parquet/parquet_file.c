// SPDX-License-Identifier: MIT
#include "output/parquet/parquet_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "output/parquet/parquet_dictionary.h"
#include "output/parquet/parquet_encode.h"

#define PAGE_ROWS       8192u
#define PAGE_TEXT_BYTES (1u << 20)
#define LEVEL           1  /* of zstd: the encodings leave it little */
#define STATISTICS_TEXT 64 /* bytes of a text */

static const char magic[] = { 'P', 'A', 'R', '1' };

/* Parquet's numbers. */
enum { TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTES = 6 };
enum { REQUIRED = 0, OPTIONAL = 1 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DELTA = 5, ENCODING_DICTIONARY = 8 };
enum { CODEC_ZSTD = 6 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { CONVERTED_UTF8 = 0, LOGICAL_STRING = 1 };

struct parquet_packer {
	ZSTD_CCtx *zstd;
	uint32_t places[PAGE_ROWS]; /* in a dictionary; definition levels */
	struct buf raw;             /* a page */
	struct buf packed;
};

/* Least and largest. */
struct range_of_texts {
	struct buf least, largest;
	bool any, none; /* none: a text was too long */
};

struct column {
	struct parquet_column is;
	/* The page under way: */
	uint32_t rows;
	uint32_t values;  /* of these rows: no NULLs */
	uint8_t *present; /* a bit a row; NULL: no row had a value so far */
	int64_t *numbers;
	struct buf texts; /* each after its length, as PLAIN has it */
	/* The row group under way: */
	struct buf pages;
	size_t unpacked; /* bytes of these, with their headers */
	struct dictionary dictionary;
	bool without_dictionary; /* from now on: too many values differ */
	bool has_dictionary;     /* pages refer to it */
	uint32_t encodings;      /* bits */
	uint64_t nulls;
	int64_t least, largest;
	bool any; /* a number was told */
	struct range_of_texts range;
};

struct parquet_file {
	struct parquet_packer *packer;
	struct column *columns;
	size_t n;
	uint64_t rows, group_rows;
	uint64_t at;       /* in the file */
	struct buf groups; /* of the footer */
	uint64_t n_groups;
	const char *null_in; /* a column that has none */
};

/* ---- packers ------------------------------------------------------------------------------- */

struct parquet_packer *parquet_packer_new(void)
{
	struct parquet_packer *packer = xcalloc(1, sizeof(*packer));

	packer->zstd = ZSTD_createCCtx();
	if (!packer->zstd)
		abort(); /* as when memory is out */
	ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
	return packer;
}

void parquet_packer_free(struct parquet_packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->zstd);
	buf_free(&packer->raw);
	buf_free(&packer->packed);
	free(packer);
}

static void pack(struct parquet_packer *packer, const struct buf *raw)
{
	size_t len;

	buf_reset(&packer->packed);
	buf_reserve(&packer->packed, ZSTD_compressBound(raw->len));
	len = ZSTD_compress2(packer->zstd, packer->packed.data, ZSTD_compressBound(raw->len),
	                     raw->len ? raw->data : "", raw->len);
	if (ZSTD_isError(len))
		abort(); /* it had room: memory is out */
	packer->packed.len = len;
}

/* ---- values of a page ---------------------------------------------------------------------- */

/* The next of a page's values as PLAIN has it; *at is 0 at first. */
static const void *next_value(const struct column *column, size_t *at, size_t *len)
{
	const char *value;
	uint32_t bytes;

	if (column->is.type != PARQUET_TEXT) {
		*len = sizeof(*column->numbers);
		return &column->numbers[(*at)++];
	}
	value = column->texts.data + *at;
	memcpy(&bytes, value, sizeof(bytes));
	*len = sizeof(bytes) + bytes;
	*at += *len;
	return value;
}

/*
 * The places of a page's values. What is different in nearly every row is not worth a dictionary:
 * then this column is told without one from now on.
 */
static bool find_places(struct column *column, uint32_t *places)
{
	size_t at = 0, len;

	for (uint32_t i = 0; i < column->values; i++) {
		const void *value = next_value(column, &at, &len);

		if (!dictionary_place(&column->dictionary, value, len, &places[i]))
			return false;
	}
	return column->has_dictionary || column->dictionary.n <= column->values / 2 + 1;
}

static bool add_by_dictionary(struct column *column, struct parquet_packer *packer)
{
	unsigned bits;

	if (column->without_dictionary || column->is.type == PARQUET_REAL)
		return false;
	if (!find_places(column, packer->places)) {
		column->without_dictionary = true;
		return false;
	}
	column->has_dictionary = true;
	bits = parquet_bits(column->dictionary.n - 1);
	bits = bits ? bits : 1; /* 0 is allowed, and not all readers know it */
	buf_putc(&packer->raw, (char)bits);
	parquet_add_runs(&packer->raw, packer->places, column->values, bits);
	return true;
}

/* Appends the values to the page; returns how they are encoded. */
static int add_values(struct column *column, struct parquet_packer *packer)
{
	if (!column->values)
		return ENCODING_PLAIN;
	if (add_by_dictionary(column, packer))
		return ENCODING_DICTIONARY;
	if (column->is.type == PARQUET_NUMBER) {
		parquet_add_deltas(&packer->raw, column->numbers, column->values);
		return ENCODING_DELTA;
	}
	buf_add(&packer->raw, column->texts.data, column->texts.len);
	return ENCODING_PLAIN;
}

static bool is_present(const struct column *column, uint32_t row)
{
	return column->present && column->present[row / 8] >> (row % 8) & 1;
}

/* Which rows have a value, after the length that this takes. */
static void add_levels(struct column *column, struct parquet_packer *packer)
{
	size_t begin = packer->raw.len;
	uint32_t bytes;

	for (uint32_t row = 0; row < column->rows; row++)
		packer->places[row] = is_present(column, row);
	parquet_fixed(&packer->raw, 0, sizeof(bytes));
	parquet_add_runs(&packer->raw, packer->places, column->rows, 1);
	bytes = (uint32_t)(packer->raw.len - begin - sizeof(bytes));
	memcpy(packer->raw.data + begin, &bytes, sizeof(bytes));
}

/* ---- pages --------------------------------------------------------------------------------- */

static void begin_header(struct thrift *thrift, const struct parquet_packer *packer, int type)
{
	thrift_i32(thrift, 1, type);
	thrift_i32(thrift, 2, (int32_t)packer->raw.len);
	thrift_i32(thrift, 3, (int32_t)packer->packed.len);
}

/* What was packed, behind its header. */
static void add_packed(struct column *column, const struct parquet_packer *packer, struct buf *out,
                       size_t begin)
{
	column->unpacked += out->len - begin + packer->raw.len;
	buf_add(out, packer->packed.data, packer->packed.len);
}

static void end_page(struct column *column, struct parquet_packer *packer)
{
	struct thrift thrift = { .out = &column->pages };
	size_t begin = column->pages.len;
	int encoding;

	if (!column->rows)
		return;
	buf_reset(&packer->raw);
	if (!column->is.required)
		add_levels(column, packer);
	encoding = add_values(column, packer);
	column->encodings |= 1u << encoding;
	pack(packer, &packer->raw);
	begin_header(&thrift, packer, PAGE_DATA);
	thrift_begin(&thrift, 5);
	thrift_i32(&thrift, 1, (int32_t)column->rows);
	thrift_i32(&thrift, 2, encoding);
	thrift_i32(&thrift, 3, ENCODING_RLE);
	thrift_i32(&thrift, 4, ENCODING_RLE);
	thrift_end(&thrift);
	thrift_end(&thrift);
	add_packed(column, packer, &column->pages, begin);
	if (column->present)
		memset(column->present, 0, PAGE_ROWS / 8);
	buf_reset(&column->texts);
	column->rows = column->values = 0;
}

static void add_dictionary_page(struct column *column, struct parquet_packer *packer,
                                struct buf *out)
{
	struct thrift thrift = { .out = out };

	buf_reset(&packer->raw);
	buf_add(&packer->raw, column->dictionary.plain.data, column->dictionary.plain.len);
	pack(packer, &packer->raw);
	begin_header(&thrift, packer, PAGE_DICTIONARY);
	thrift_begin(&thrift, 7);
	thrift_i32(&thrift, 1, (int32_t)column->dictionary.n);
	thrift_i32(&thrift, 2, ENCODING_PLAIN);
	thrift_end(&thrift);
	thrift_end(&thrift);
	add_packed(column, packer, out, 0);
}

/* ---- cells --------------------------------------------------------------------------------- */

static void end_cell(struct parquet_file *file, struct column *column)
{
	if (++column->rows == PAGE_ROWS || column->texts.len >= PAGE_TEXT_BYTES)
		end_page(column, file->packer);
}

static void note_present(struct column *column)
{
	if (!column->is.required && !column->present)
		column->present = xcalloc(1, PAGE_ROWS / 8);
	if (column->present)
		column->present[column->rows / 8] |= (uint8_t)(1u << (column->rows % 8));
}

void parquet_file_number(struct parquet_file *file, size_t i, int64_t value)
{
	struct column *column = &file->columns[i];

	note_present(column);
	*VEC_ADD(column->numbers, column->values) = value;
	if (!column->any || value < column->least)
		column->least = value;
	if (!column->any || value > column->largest)
		column->largest = value;
	column->any = true;
	end_cell(file, column);
}

static int compare(const struct buf *a, const char *text, size_t len)
{
	size_t both = a->len < len ? a->len : len;
	int order = both ? memcmp(a->data, text, both) : 0;

	return order ? order : (a->len > len) - (a->len < len);
}

static void set(struct buf *to, const char *text, size_t len)
{
	buf_reset(to);
	buf_add(to, text, len);
}

static void note_text(struct range_of_texts *range, const char *text, size_t len)
{
	range->none = range->none || len > STATISTICS_TEXT;
	if (range->none)
		return;
	if (!range->any || compare(&range->least, text, len) > 0)
		set(&range->least, text, len);
	if (!range->any || compare(&range->largest, text, len) < 0)
		set(&range->largest, text, len);
	range->any = true;
}

void parquet_file_text(struct parquet_file *file, size_t i, const char *text, size_t len)
{
	struct column *column = &file->columns[i];

	note_present(column);
	parquet_fixed(&column->texts, len, 4);
	buf_add(&column->texts, text, len);
	column->values++;
	note_text(&column->range, text, len);
	end_cell(file, column);
}

void parquet_file_null(struct parquet_file *file, size_t i)
{
	struct column *column = &file->columns[i];

	if (column->is.required)
		file->null_in = column->is.name;
	column->nulls++;
	end_cell(file, column);
}

void parquet_file_row(struct parquet_file *file)
{
	file->rows++;
	file->group_rows++;
}

uint64_t parquet_file_rows(const struct parquet_file *file)
{
	return file->rows;
}

uint64_t parquet_file_bytes(const struct parquet_file *file)
{
	return file->at;
}

struct parquet_held parquet_file_held(const struct parquet_file *file)
{
	struct parquet_held held = { 0 };

	for (size_t i = 0; i < file->n; i++) {
		const struct column *column = &file->columns[i];

		held.packed += column->pages.len;
		held.raw +=
			column->texts.len + column->dictionary.plain.len +
			(column->values + column->dictionary.n_slots) * sizeof(*column->numbers);
	}
	return held;
}

uint64_t parquet_file_held_rows(const struct parquet_file *file)
{
	return file->group_rows;
}

/* ---- row groups ---------------------------------------------------------------------------- */

static int append(struct parquet_file *file, int fd, const void *data, size_t len, struct err *err)
{
	const char *at = data;

	file->at += len;
	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, n ? errno : EIO, "cannot write the table: %s",
			               strerror(n ? errno : EIO));
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static void add_statistics(struct thrift *thrift, const struct column *column)
{
	const struct range_of_texts *range = &column->range;
	bool number = column->is.type == PARQUET_NUMBER && column->any;
	bool text = range->any && !range->none;

	thrift_begin(thrift, 12);
	thrift_i64(thrift, 3, (int64_t)column->nulls);
	if (number) {
		thrift_bytes(thrift, 5, &column->largest, sizeof(column->largest));
		thrift_bytes(thrift, 6, &column->least, sizeof(column->least));
	} else if (text) {
		thrift_bytes(thrift, 5, range->largest.data, range->largest.len);
		thrift_bytes(thrift, 6, range->least.data, range->least.len);
	}
	thrift_end(thrift);
}

static int parquet_type(enum parquet_type type)
{
	return type == PARQUET_NUMBER ? TYPE_INT64
	       : type == PARQUET_REAL ? TYPE_DOUBLE
	                              : TYPE_BYTES;
}

static void add_encodings(struct thrift *thrift, const struct column *column)
{
	uint32_t all = column->encodings | 1u << ENCODING_RLE |
	               (column->has_dictionary ? 1u << ENCODING_PLAIN : 0);

	thrift_list(thrift, 2, THRIFT_I32, (size_t)__builtin_popcount(all));
	for (int encoding = 0; encoding < 32; encoding++) {
		if (all >> encoding & 1)
			thrift_element_i32(thrift, encoding);
	}
}

/* Of the footer, for pages that begin at `at` and take `bytes`, `dictionary` of them its page. */
static void add_chunk(struct parquet_file *file, const struct column *column, uint64_t at,
                      size_t dictionary, size_t bytes)
{
	struct thrift thrift = { .out = &file->groups, .depth = 1 };

	thrift_element(&thrift);
	thrift_i64(&thrift, 2, (int64_t)at);
	thrift_begin(&thrift, 3);
	thrift_i32(&thrift, 1, parquet_type(column->is.type));
	add_encodings(&thrift, column);
	thrift_list(&thrift, 3, THRIFT_BINARY, 1);
	thrift_element_text(&thrift, column->is.name);
	thrift_i32(&thrift, 4, CODEC_ZSTD);
	thrift_i64(&thrift, 5, (int64_t)file->group_rows);
	thrift_i64(&thrift, 6, (int64_t)column->unpacked);
	thrift_i64(&thrift, 7, (int64_t)bytes);
	thrift_i64(&thrift, 9, (int64_t)(at + dictionary));
	if (dictionary)
		thrift_i64(&thrift, 11, (int64_t)at);
	add_statistics(&thrift, column);
	thrift_end(&thrift);
	thrift_end(&thrift);
}

/* The next row group begins anew, with no memory: what a file takes is what it holds. */
static void clear_chunk(struct column *column)
{
	dictionary_free(&column->dictionary);
	buf_free(&column->pages);
	buf_free(&column->texts);
	free(column->numbers);
	column->numbers = NULL;
	column->has_dictionary = column->any = false;
	column->encodings = 0;
	column->unpacked = 0;
	column->nulls = 0;
	column->range.any = column->range.none = false;
}

static int write_chunk(struct parquet_file *file, struct column *column, int fd, struct err *err)
{
	AT_END(buf_free) struct buf dictionary = { 0 };
	uint64_t at = file->at;
	int rc;

	end_page(column, file->packer);
	if (column->has_dictionary)
		add_dictionary_page(column, file->packer, &dictionary);
	add_chunk(file, column, at, dictionary.len, dictionary.len + column->pages.len);
	rc = append(file, fd, dictionary.data, dictionary.len, err);
	if (!rc)
		rc = append(file, fd, column->pages.data, column->pages.len, err);
	return rc;
}

static int write_chunks(struct parquet_file *file, int fd, struct err *err)
{
	struct thrift thrift = { .out = &file->groups, .depth = 1 };
	size_t unpacked = 0;
	uint64_t begin = file->at;
	int rc = 0;

	thrift_list(&thrift, 1, THRIFT_STRUCT, file->n);
	for (size_t i = 0; i < file->n && !rc; i++) {
		rc = write_chunk(file, &file->columns[i], fd, err);
		unpacked += file->columns[i].unpacked;
		clear_chunk(&file->columns[i]);
	}
	thrift_i64(&thrift, 2, (int64_t)unpacked);
	thrift_i64(&thrift, 3, (int64_t)file->group_rows);
	thrift_i64(&thrift, 5, (int64_t)begin);
	thrift_i64(&thrift, 6, (int64_t)(file->at - begin));
	thrift_end(&thrift);
	file->n_groups++;
	file->group_rows = 0;
	return rc;
}

int parquet_file_write(struct parquet_file *file, int fd, struct err *err)
{
	int rc = 0;

	if (file->null_in)
		return err_set(err, EINVAL, "a row has no %s, and must have one", file->null_in);
	if (!file->at)
		rc = append(file, fd, magic, sizeof(magic), err);
	return !rc && file->group_rows ? write_chunks(file, fd, err) : rc;
}

/* ---- the footer ---------------------------------------------------------------------------- */

static void add_column(struct thrift *thrift, const struct parquet_column *column)
{
	thrift_element(thrift);
	thrift_i32(thrift, 1, parquet_type(column->type));
	thrift_i32(thrift, 3, column->required ? REQUIRED : OPTIONAL);
	thrift_text(thrift, 4, column->name);
	if (column->type == PARQUET_TEXT) {
		thrift_i32(thrift, 6, CONVERTED_UTF8);
		thrift_begin(thrift, 10);
		thrift_begin(thrift, LOGICAL_STRING);
		thrift_end(thrift);
		thrift_end(thrift);
	}
	thrift_end(thrift);
}

static void add_schema(struct thrift *thrift, const struct parquet_file *file)
{
	thrift_list(thrift, 2, THRIFT_STRUCT, file->n + 1);
	thrift_element(thrift);
	thrift_text(thrift, 4, "schema");
	thrift_i32(thrift, 5, (int32_t)file->n);
	thrift_end(thrift);
	for (size_t i = 0; i < file->n; i++)
		add_column(thrift, &file->columns[i].is);
}

/* Least and largest are by the order of each column's type. */
static void add_orders(struct thrift *thrift, const struct parquet_file *file)
{
	thrift_list(thrift, 7, THRIFT_STRUCT, file->n);
	for (size_t i = 0; i < file->n; i++) {
		thrift_element(thrift);
		thrift_begin(thrift, 1);
		thrift_end(thrift);
		thrift_end(thrift);
	}
}

int parquet_file_end(struct parquet_file *file, int fd, struct err *err)
{
	AT_END(buf_free) struct buf footer = { 0 };
	struct thrift thrift = { .out = &footer };
	int rc = parquet_file_write(file, fd, err);

	if (rc)
		return rc;
	thrift_i32(&thrift, 1, 1);
	add_schema(&thrift, file);
	thrift_i64(&thrift, 3, (int64_t)file->rows);
	thrift_list(&thrift, 4, THRIFT_STRUCT, file->n_groups);
	buf_add(&footer, file->groups.data, file->groups.len);
	thrift_text(&thrift, 6, "cuscope version " CUSCOPE_VERSION);
	add_orders(&thrift, file);
	thrift_end(&thrift);
	parquet_fixed(&footer, footer.len, 4);
	buf_add(&footer, magic, sizeof(magic));
	return append(file, fd, footer.data, footer.len, err);
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct parquet_file *parquet_file_new(const struct parquet_column *columns, size_t n,
                                      struct parquet_packer *packer)
{
	struct parquet_file *file = xcalloc(1, sizeof(*file));

	file->packer = packer;
	file->columns = xcalloc(n, sizeof(*file->columns));
	file->n = n;
	for (size_t i = 0; i < n; i++)
		file->columns[i].is = columns[i];
	return file;
}

void parquet_file_free(struct parquet_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < file->n; i++) {
		struct column *column = &file->columns[i];

		clear_chunk(column);
		free(column->present);
		buf_free(&column->range.least);
		buf_free(&column->range.largest);
	}
	free(file->columns);
	buf_free(&file->groups);
	free(file);
}
