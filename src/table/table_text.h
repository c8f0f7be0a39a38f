/* SPDX-License-Identifier: MIT */
/* Tables for people. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "table/table.h"

/*
 * The layout of a table's text, private to the tables: columns are as wide as their widest cell. A
 * long table is printed in pieces, and the first piece decides the widths: a wider cell in a later
 * one pushes its row to the right.
 */

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

/* Texts in the last column of a table that go on in its next rows, where people read them. */

/*
 * How many columns a line of it has beside the `before` columns of the other cells. On a terminal
 * it has what is left, elsewhere `otherwise`, and for programs all that there are.
 */
size_t words_width(const struct table *table, size_t before, size_t otherwise);

/*
 * Puts the next line of `*text`, which is not empty, in `line` and moves on behind it: up to the
 * last blank in `width`, or all of a word that is longer. A unit stays with its number. False: no
 * more is left after it.
 */
bool words_line(const char **text, size_t width, struct buf *line);
