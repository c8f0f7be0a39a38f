/* SPDX-License-Identifier: MIT */
/*
 * Writing tables. One description of the columns serves three forms:
 *
 *   table  for people: aligned, durations and sizes with units, a title above and notes below
 *   csv    RFC 4180: numbers as they are, their unit in the heading, "Total Time (ns)"
 *   json   an array of objects with those headings as keys, numbers as numbers, null for unknown
 *
 * Rows are written as they come, or in an order (table_in_order). The first ones decide how wide
 * the columns of the text are, so a table of any length needs no memory.
 *
 *     table_begin(table, NULL, "CUDA API calls", columns, 2);
 *     table_u64(table, 1200);       a cell for each column, in their order
 *     table_text(table, "cuInit");
 *     table_end_row(table);
 *     table_end(table);
 *
 * A failure to write is kept: nothing more is written then, and table_end() returns it. Who writes
 * rows as long as events come asks table_failed().
 */
#ifndef CUSCOPE_TABLE_TABLE_H
#define CUSCOPE_TABLE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum table_form { TABLE_FORM_TEXT, TABLE_FORM_CSV, TABLE_FORM_JSON, TABLE_FORM_COUNT };

const char *table_form_name(enum table_form form);   /* "table", "csv", "json" */
const char *table_form_ending(enum table_form form); /* ".txt", ".csv", ".json" */

enum table_type {
	TABLE_TEXT,   /* a name where it is the last column: what is in brackets gives way first */
	TABLE_WORDS,  /* text whose end gives way */
	TABLE_NUMBER, /* a count, an id */
	TABLE_DURATION, /* ns */
	TABLE_TIME,     /* ns since the trace's begin */
	TABLE_BYTES,
	TABLE_RATE,    /* bytes a second */
	TABLE_MB,      /* bytes, as nsys shows them: in millions */
	TABLE_MB_RATE, /* bytes a second, the same */
	TABLE_PERCENT,
	TABLE_CHANGE, /* percent, with its sign */
	TABLE_REAL,   /* anything else */
	TABLE_TRIPLE, /* grid and block sizes */
	TABLE_TYPES,
};

/* A static row of a description. */
struct table_column {
	const char *name;
	enum table_type type;
};

struct table_options {
	enum table_form form;
	FILE *out;    /* not closed */
	size_t width; /* text: columns of the terminal, to which the last column is cut; 0: not */
	bool color;   /* text: titles in bold */
	size_t top;   /* rows of a table at most, the rest is counted in a note; 0: all */
	const char
		*sort; /* "Total Time", "calls:asc": the column by which rows are put in order, */
		       /* of tables that have it; NULL: as the report says. Kept, not copied */
	/* csv and json have no place for notes: they are told here instead. May be NULL. */
	void (*note)(void *data, const char *name, const char *text);
	void *data;
	const char *name; /* passed to note(), kept */
};

struct table;

/* `parts`: several tables will be written. In json they are then members of one object. */
struct table *table_open(const struct table_options *options, bool parts);
void table_close(struct table *table);
const struct table_options *table_options(const struct table *table);

/*
 * `key` names the table among the parts (json only; "gaps"), `title` stands above it in the text.
 * The columns' names are kept, not copied. At most 40 columns.
 */
void table_begin(struct table *table, const char *key, const char *title,
                 const struct table_column *columns, size_t n);

/* The table that is open is shown whole, whatever `top` says. */
void table_whole(struct table *table);

/* Its last column is cut, as a terminal of that width would do it; a real one has its own width. */
void table_fit(struct table *table, size_t width);

/* One cell each. What a type cannot show is the caller's mistake. */
void table_u64(struct table *table, uint64_t value);
void table_s64(struct table *table, int64_t value);
void table_difference(struct table *table, int64_t value); /* the text shows a + */
void table_real(struct table *table, double value);
void table_text(struct table *table, const char *text); /* NULL: unknown */
void table_triple(struct table *table, const uint32_t value[3]);
void table_unknown(struct table *table);
void table_known(struct table *table, bool known, uint64_t value); /* or table_unknown() */

/*
 * The next cell alone is of another type than its column: for tables whose rows are of different
 * kinds. Only the text shows it; csv and json have the number as it is.
 */
void table_as(struct table *table, enum table_type type);

void table_end_row(struct table *table);

/*
 * After table_begin(): rows are written at the end, in the order of their keys, the smallest
 * first, and those with the same key as they came. table_key() comes before table_end_row().
 * Memory is bounded, however many rows there are: what does not fit goes to a temporary file.
 */
void table_in_order(struct table *table); /* but options->sort is stronger */
void table_key(struct table *table, uint64_t key);

/* A sentence below the table that is open or will be next. */
void table_note(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 0, or the failure so far: no row will be written any more. */
int table_failed(const struct table *table, struct err *err);

/* 0 or a negative errno. */
int table_end(struct table *table, struct err *err);

/* After the last table: closes what is open in json. 0 or a negative errno. */
int table_finish(struct table *table, struct err *err);

#endif
