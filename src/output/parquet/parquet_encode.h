/* SPDX-License-Identifier: MIT */
/*
 * How Parquet writes values: runs of small numbers (definition levels, places in a dictionary),
 * numbers by their differences, and the structs of its headers and its footer, which are in
 * Thrift's compact protocol. github.com/apache/parquet-format has the words. Private to
 * src/output/parquet.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* So many low bytes of a number, the lowest first. */
void parquet_fixed(struct buf *out, uint64_t value, size_t bytes);

/* The bits that `value` takes. */
unsigned parquet_bits(uint64_t value);

/* RLE: runs, and groups of eight that stand bit by bit. Numbers below 2^bits; bits 1 to 32. */
void parquet_add_runs(struct buf *out, const uint32_t *values, size_t n, unsigned bits);

/* DELTA_BINARY_PACKED; at least one. */
void parquet_add_deltas(struct buf *out, const int64_t *values, size_t n);

/* ---- thrift -------------------------------------------------------------------------------- */

#define THRIFT_DEPTH 8

/* A struct that is written, and those around it. Fields come in the order of their numbers. */
struct thrift {
	struct buf *out;
	unsigned depth;
	unsigned last[THRIFT_DEPTH]; /* number of the last field, by depth */
};

enum thrift_type { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BINARY = 8, THRIFT_STRUCT = 12 };

void thrift_i32(struct thrift *thrift, unsigned field, int32_t value);
void thrift_i64(struct thrift *thrift, unsigned field, int64_t value);
void thrift_bytes(struct thrift *thrift, unsigned field, const void *data, size_t len);
void thrift_text(struct thrift *thrift, unsigned field, const char *text);

/* A struct within; ended by thrift_end(). */
void thrift_begin(struct thrift *thrift, unsigned field);
void thrift_end(struct thrift *thrift);

/* A list, whose elements follow. */
void thrift_list(struct thrift *thrift, unsigned field, enum thrift_type of, size_t n);
void thrift_element(struct thrift *thrift); /* a struct, ended by thrift_end() */
void thrift_element_i32(struct thrift *thrift, int32_t value);
void thrift_element_text(struct thrift *thrift, const char *text);
