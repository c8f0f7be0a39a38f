/* SPDX-License-Identifier: MIT */
/* A small table of text whose columns are as wide as their widest cell. */
#ifndef CUSCOPE_ANALYSIS_COLUMNS_H
#define CUSCOPE_ANALYSIS_COLUMNS_H

#include "base/buf.h"

struct columns {
	const char *align; /* 'l' or 'r' for each column */
	struct buf cells;  /* each ends with a NUL, row by row */
};

/* `headings`: one for each column of `align`, divided by '|'. */
void columns_init(struct columns *columns, const char *align, const char *headings);

/* Append to `cells`, then end the cell; the rows follow from their number. */
void columns_end_cell(struct columns *columns);
void columns_text(struct columns *columns, const char *text);

/* Appends the table, two blanks before each row, and frees it. */
void columns_print(struct columns *columns, struct buf *out);

#endif
