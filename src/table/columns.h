/* SPDX-License-Identifier: MIT */
/*
 * The layout of a table's text, private to the tables: columns are as wide as their widest cell. A
 * long table is printed in pieces, and the first piece decides the widths: a wider cell in a later
 * one pushes its row to the right.
 */
#ifndef CUSCOPE_TABLE_COLUMNS_H
#define CUSCOPE_TABLE_COLUMNS_H

#include <stdbool.h>

#include "base/buf.h"

#define COLUMNS_MAX 40

struct columns {
	const char *align; /* 'l' or 'r' (ASCII only) for each column, kept, at most COLUMNS_MAX */
	struct buf cells;  /* each ends with a NUL, row by row */
	size_t screen;     /* columns of the terminal, which the last cell of a row, a name, is */
			   /* cut to; 0: not cut. Set it after columns_init(). Rows that are too */
			   /* wide all the same go on in a next line, where a column ends. */
	bool words;        /* it is no name but words, which are cut at their end */
	size_t n;
	size_t width[COLUMNS_MAX]; /* all 0 before the first piece */
};

/* `headings`: one for each column of `align`, divided by '|'. */
void columns_init(struct columns *columns, const char *align, const char *headings);

/* Append to `cells`, then end the cell; the rows follow from their number. */
void columns_end_cell(struct columns *columns);

/* Appends the rows so far, two blanks before each, and forgets them. */
void columns_piece(struct columns *columns, struct buf *out);

/* The last piece, or the only one; frees the table. */
void columns_print(struct columns *columns, struct buf *out);

#endif
