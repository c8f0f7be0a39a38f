/* SPDX-License-Identifier: MIT */
/* What a form of tables implements. Private to the tables. */
#pragma once

#include "table/table_text.h"
#include "base/json.h"
#include "base/lines.h"
#include "table/table.h"

struct table_value {
	enum {
		VALUE_UNKNOWN,
		VALUE_U64,
		VALUE_S64,
		VALUE_DIFFERENCE,
		VALUE_REAL,
		VALUE_TEXT,
		VALUE_TRIPLE,
		VALUE_BOOL
	} kind;
	bool scaled; /* an estimate */
	union {
		uint64_t u64;
		int64_t s64;
		double real;
		const char *text;
		const uint32_t *triple;
	};
};

struct table {
	struct table_options options;
	const struct table_form_ops *ops;
	bool parts;
	struct lines lines;
	struct buf *out; /* what is pending of the lines, or the text of a page */

	struct table_column columns[COLUMNS_MAX]; /* of the table that is open */
	enum table_type as;                       /* of the next cell, where `as_set` */
	bool as_set;
	size_t n_columns, at; /* at: the column of the next cell */
	size_t rows, left_out, tables;
	uint64_t begin_ns; /* of the run */
	bool whole;        /* the one that is open, see table_whole() */
	bool as_seen;      /* see table_as_seen() */
	struct buf notes;  /* each ends with a newline */

	struct columns layout; /* text */
	char align[COLUMNS_MAX + 1];
	const char *title;     /* of a page's text, until there are rows */
	struct json json;      /* json */
	size_t group;          /* a page's json: characters of the key before its point, */
	const char *group_key; /* where an object of that name is open */
	struct buf keys;       /* csv and json: headings with units, each ends with a NUL */
	const char *key;       /* of the column `at` */
	struct table_sort {
		size_t column; /* of the table that is open */
		bool on, down, text;
		bool known;         /* some table had that column */
		struct buf offered; /* the columns that there were */
	} sort;
	struct table_order *order; /* rows that are held back, see table_in_order(); else NULL */
};

/* The table's side of table_sort.c: a cell, a row, and the end instead of what is done at once. */
void table_order_cell(struct table *table, enum table_type type, const struct table_value *value);
void table_order_row(struct table *table);
void table_order_write(struct table *table);
void table_order_free(struct table_order *order);

void table_order_by_column(struct table *table);

/*
 * The table's side of table_sort.c: whether options->sort names a column of the table that is open,
 * what stands in its place in the order, and a failure where no table had such a column.
 */
bool table_sort_begin(struct table *table);
void table_sort_end(struct table *table);

/* The cells of a row are there. */
void table_write_row(struct table *table);

/* Each appends whole lines to table->out; end_row() and end() may leave some pending. */
struct table_form_ops {
	const char *ending;
	void (*begin)(struct table *table, const char *key, const char *title);
	void (*begin_row)(struct table *table); /* may be NULL */
	void (*cell)(struct table *table, const struct table_column *column,
	             const struct table_value *value);
	void (*end_row)(struct table *table);
	void (*end)(struct table *table);
	void (*finish)(struct table *table); /* may be NULL */
	/* NULL: the lines are rows */
	void (*passage)(struct table *table, const struct table_passage *passage);
};

extern const struct table_form_ops table_text_form, table_csv_form, table_json_form,
	table_members_form, table_html_form;

/* Whether the form that is written has that column. */
bool table_shows(const struct table *table, const struct table_column *column);

/* The cell of a column in a row. */
void table_read(const struct table *table, const struct table_column *column, const void *row,
                struct table_value *value);

/* Fills table->keys. */
void table_make_keys(struct table *table);

/* Counts of a part of the time: those that grow with it are multiplied, others are not known. */
void table_scale(const struct table *table, const struct table_column *column,
                 struct table_value *value);

/* A number as csv and json have it. */
void table_add_number(struct buf *out, const struct table_column *column,
                      const struct table_value *value);

/* So many digits that matter, but never 2e+05 for a number that people count with. */
void table_add_significant(struct buf *out, double value, int digits);

/* With a fixed number of decimals, rounded. No printf: this runs for every cell. */
void table_add_real(struct buf *out, double value, unsigned decimals);
