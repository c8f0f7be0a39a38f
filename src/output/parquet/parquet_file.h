/* SPDX-License-Identifier: MIT */
/*
 * A Parquet file of flat columns, written from front to back: numbers of 64 bits and texts, each
 * with or without NULLs. Rows are told cell by cell; full pages are packed (zstd) and held until
 * parquet_file_write() makes a row group of them.
 *
 *     file = parquet_file_new(columns, 2, packer);
 *     parquet_file_number(file, 0, start_ns);
 *     parquet_file_null(file, 1);
 *     parquet_file_row(file);
 *     ...
 *     if (parquet_file_held(file).packed > MUCH)
 *             parquet_file_write(file, fd, &err);
 *     parquet_file_end(file, fd, &err);
 *
 * A column's values are told by a dictionary as long as few of them differ, else numbers by their
 * differences and texts as they are. Least and largest of a row group are in the footer; of texts
 * where all are short. Private to src/output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum parquet_type {
	PARQUET_NUMBER, /* int64 */
	PARQUET_REAL,   /* double, of which there are only NULLs so far */
	PARQUET_TEXT,   /* UTF-8 */
};

struct parquet_column {
	const char *name; /* kept, not copied */
	enum parquet_type type;
	bool required; /* no NULLs */
};

/* What files that are written by turns share: room to encode and to pack a page. */
struct parquet_packer;

struct parquet_packer *parquet_packer_new(void);
void parquet_packer_free(struct parquet_packer *packer);

struct parquet_file;

struct parquet_file *parquet_file_new(const struct parquet_column *columns, size_t n,
                                      struct parquet_packer *packer);
void parquet_file_free(struct parquet_file *file);

/* One cell of the row that is told: each column once, in any order. */
void parquet_file_number(struct parquet_file *file, size_t column, int64_t value);
void parquet_file_text(struct parquet_file *file, size_t column, const char *text, size_t len);
void parquet_file_null(struct parquet_file *file, size_t column);

/* The row is whole. */
void parquet_file_row(struct parquet_file *file);

uint64_t parquet_file_rows(const struct parquet_file *file);  /* of all row groups */
uint64_t parquet_file_bytes(const struct parquet_file *file); /* written so far */

/* Bytes and rows that wait for the next row group. */
struct parquet_held {
	size_t packed; /* full pages */
	size_t raw;    /* pages that are not full, and dictionaries */
};

struct parquet_held parquet_file_held(const struct parquet_file *file);
uint64_t parquet_file_held_rows(const struct parquet_file *file);

/*
 * A row group of what is held, if there is any, at the end of what is in `fd`, where nobody else
 * writes. 0 or a negative errno; -EINVAL for a NULL in a column that has none.
 */
int parquet_file_write(struct parquet_file *file, int fd, struct err *err);

/* The same, and the footer: the file is whole. */
int parquet_file_end(struct parquet_file *file, int fd, struct err *err);
