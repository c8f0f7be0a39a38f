// SPDX-License-Identifier: MIT
#include "output/parquet/parquet_encode.h"

#include <string.h>

/* Seven bits a byte, the lowest first (ULEB128). */
static void parquet_varint(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_putc(out, (char)(value | 0x80));
	buf_putc(out, (char)value);
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

void parquet_fixed(struct buf *out, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_putc(out, (char)(value >> (8 * i)));
}

unsigned parquet_bits(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* ---- bits ---------------------------------------------------------------------------------- */

/* Numbers one after the other, the lowest bit first. */
struct bit_writer {
	struct buf *out;
	unsigned __int128 held;
	unsigned bits; /* of `held`, below 64 */
};

static void bits_add(struct bit_writer *writer, uint64_t value, unsigned bits)
{
	writer->held |= (unsigned __int128)value << writer->bits;
	writer->bits += bits;
	if (writer->bits < 64)
		return;
	parquet_fixed(writer->out, (uint64_t)writer->held, 8);
	writer->held >>= 64;
	writer->bits -= 64;
}

static void bits_end(struct bit_writer *writer)
{
	parquet_fixed(writer->out, (uint64_t)writer->held, (writer->bits + 7) / 8);
}

/* ---- runs ---------------------------------------------------------------------------------- */

#define GROUP 8u

static size_t run_at(const uint32_t *values, size_t n, size_t most)
{
	size_t length = 1;

	while (length < n && length < most && values[length] == values[0])
		length++;
	return length;
}

/* Groups up to where a run begins; those that the last one lacks are 0. Returns how many. */
static size_t add_groups(struct buf *out, const uint32_t *values, size_t n, unsigned bits)
{
	struct bit_writer writer = { .out = out };
	size_t taken = 0;

	do
		taken += GROUP;
	while (taken < n && run_at(values + taken, n - taken, GROUP) < GROUP);
	parquet_varint(out, taken / GROUP << 1 | 1);
	for (size_t i = 0; i < taken; i++)
		bits_add(&writer, i < n ? values[i] : 0, bits);
	bits_end(&writer);
	return taken;
}

void parquet_add_runs(struct buf *out, const uint32_t *values, size_t n, unsigned bits)
{
	for (size_t at = 0; at < n;) {
		size_t length = run_at(values + at, n - at, n);

		if (length < GROUP && length < n - at) {
			at += add_groups(out, values + at, n - at, bits);
			continue;
		}
		parquet_varint(out, length << 1);
		parquet_fixed(out, values[at], (bits + 7) / 8);
		at += length;
	}
}

/* ---- deltas -------------------------------------------------------------------------------- */

#define BLOCK      128u
#define MINIBLOCKS 4u
#define MINIBLOCK  (BLOCK / MINIBLOCKS)

/* Differences wrap around, as readers add them up: all numbers can be told. */
static int64_t difference(const int64_t *values, size_t i)
{
	return (int64_t)((uint64_t)values[i] - (uint64_t)values[(ptrdiff_t)i - 1]);
}

/* A miniblock's numbers above the least, and how many bits they take; 0 beyond `n`. */
static unsigned above_least(const int64_t *values, size_t n, int64_t least, uint64_t *above)
{
	uint64_t all = 0;

	for (size_t i = 0; i < MINIBLOCK; i++) {
		above[i] = i < n ? (uint64_t)difference(values, i) - (uint64_t)least : 0;
		all |= above[i];
	}
	return parquet_bits(all);
}

/* Of values[0] to values[n - 1] the difference to the one before. */
static void add_block(struct buf *out, const int64_t *values, size_t n)
{
	uint64_t above[MINIBLOCKS][MINIBLOCK];
	unsigned bits[MINIBLOCKS] = { 0 };
	size_t used = (n + MINIBLOCK - 1) / MINIBLOCK;
	int64_t least = difference(values, 0);

	for (size_t i = 1; i < n; i++)
		least = difference(values, i) < least ? difference(values, i) : least;
	for (size_t i = 0; i < used; i++)
		bits[i] = above_least(values + i * MINIBLOCK, n - i * MINIBLOCK, least, above[i]);
	parquet_varint(out, zigzag(least));
	for (size_t i = 0; i < MINIBLOCKS; i++)
		buf_putc(out, (char)bits[i]);
	for (size_t i = 0; i < used; i++) {
		struct bit_writer writer = { .out = out };

		for (size_t k = 0; k < MINIBLOCK; k++)
			bits_add(&writer, above[i][k], bits[i]);
		bits_end(&writer);
	}
}

void parquet_add_deltas(struct buf *out, const int64_t *values, size_t n)
{
	parquet_varint(out, BLOCK);
	parquet_varint(out, MINIBLOCKS);
	parquet_varint(out, n);
	parquet_varint(out, zigzag(values[0]));
	for (size_t at = 1; at < n; at += BLOCK)
		add_block(out, values + at, n - at < BLOCK ? n - at : BLOCK);
}

/* ---- thrift -------------------------------------------------------------------------------- */

enum { TYPE_LIST = 9 };

#define SHORT_LIST 15

static void thrift_field(struct thrift *thrift, unsigned field, unsigned type)
{
	unsigned *last = &thrift->last[thrift->depth];

	buf_putc(thrift->out, (char)((field - *last) << 4 | type)); /* at most 15 further */
	*last = field;
}

void thrift_i32(struct thrift *thrift, unsigned field, int32_t value)
{
	thrift_field(thrift, field, THRIFT_I32);
	parquet_varint(thrift->out, zigzag(value));
}

void thrift_i64(struct thrift *thrift, unsigned field, int64_t value)
{
	thrift_field(thrift, field, THRIFT_I64);
	parquet_varint(thrift->out, zigzag(value));
}

void thrift_bytes(struct thrift *thrift, unsigned field, const void *data, size_t len)
{
	thrift_field(thrift, field, THRIFT_BINARY);
	parquet_varint(thrift->out, len);
	buf_add(thrift->out, data, len);
}

void thrift_text(struct thrift *thrift, unsigned field, const char *text)
{
	thrift_bytes(thrift, field, text, strlen(text));
}

void thrift_begin(struct thrift *thrift, unsigned field)
{
	thrift_field(thrift, field, THRIFT_STRUCT);
	thrift_element(thrift);
}

void thrift_element(struct thrift *thrift)
{
	thrift->last[++thrift->depth] = 0;
}

void thrift_end(struct thrift *thrift)
{
	buf_putc(thrift->out, 0);
	if (thrift->depth)
		thrift->depth--;
}

void thrift_list(struct thrift *thrift, unsigned field, enum thrift_type of, size_t n)
{
	thrift_field(thrift, field, TYPE_LIST);
	buf_putc(thrift->out, (char)((n < SHORT_LIST ? n : SHORT_LIST) << 4 | of));
	if (n >= SHORT_LIST)
		parquet_varint(thrift->out, n);
}

void thrift_element_i32(struct thrift *thrift, int32_t value)
{
	parquet_varint(thrift->out, zigzag(value));
}

void thrift_element_text(struct thrift *thrift, const char *text)
{
	parquet_varint(thrift->out, strlen(text));
	buf_puts(thrift->out, text);
}
