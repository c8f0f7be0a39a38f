/* SPDX-License-Identifier: MIT */
/*
 * The tables of `cuscope top`: what columns they have, and their rows in order. Private to top. Not
 * struct table: a screen's columns have keys and widths of their own, and rows their styles.
 */
#pragma once

#include "top/top.h"
#include "table/table.h"

#define TOP_UNKNOWN (-1.0) /* a value that is shown as "-" */

struct top_row {
	const struct top_process *process;
	const void *item; /* top_process, top_item, top_memory */
	unsigned index;   /* kind of memory, direction */
};

enum top_format { TOP_TEXT, TOP_NAME, TOP_NUMBER, TOP_COUNT, TOP_BYTES, TOP_SHARE, TOP_TIME };

#define TOP_WITH_GPU 255

struct top_column {
	const char *title;
	char key;            /* sorts by it; 0: none */
	unsigned char from;  /* columns that a screen must have for it; 0: always shown, */
			     /* TOP_WITH_GPU: where GPU times are recorded */
	unsigned char width; /* 0: takes what the others leave, once in a table */
	enum top_format format;
	/* A number is at a place of the row's item, or comes from a function, as texts do. */
	enum table_field field;
	unsigned offset, via;
	double (*value)(const struct top_page *page, const struct top_row *row);
	/* TOP_TEXT, TOP_NAME */
	void (*text)(const struct top_page *page, const struct top_row *row, struct buf *out);
};

struct top_table_description {
	const char *title; /* of its tab */
	const char *empty; /* what stands there while it has no rows */
	const struct top_column *columns;
	size_t n_columns;
	size_t sorted;      /* the column at first */
	enum top_kind kind; /* of items that are its rows, if they are any */
};

extern const struct top_table_description top_tables[TOP_TABLES];

/* The process that the view has opened, NULL where it is not in the snapshot. */
const struct top_process *top_opened(const struct top_page *page, const struct top_view *view);

/* Rows in the view's order; the caller frees them. */
struct top_row *top_rows(const struct top_page *page, const struct top_view *view, size_t *n);

/* A column is shown on a screen of that width; 0: on any. */
bool top_column_shown(const struct top_column *column, size_t columns, bool gpu_times);

/* Appends a cell, in at most `width` columns for text; 0: no limit. */
void top_cell(const struct top_column *column, const struct top_page *page,
              const struct top_row *row, size_t width, struct buf *out);

/* "12345", "1.23M"; "0", "812", "1.23G"; "1.34us": at most seven characters. */
void top_add_count(struct buf *out, double n);
void top_add_bytes(struct buf *out, double bytes);
void top_add_time(struct buf *out, double ns);
