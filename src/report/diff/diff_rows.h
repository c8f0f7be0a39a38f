/* SPDX-License-Identifier: MIT */
/* Rows of two sums side by side. Private to diff.c. */
#ifndef CUSCOPE_REPORT_DIFF_DIFF_ROWS_H
#define CUSCOPE_REPORT_DIFF_DIFF_ROWS_H

#include "report/sums.h"

/*
 * The table without its end: the largest change of the total first. Without rows where one side
 * could not see any: that they are in the other only would be wrong.
 */
void diff_rows_print(const struct sums_kind *kind, const char *name, const char *help,
                     struct consumer *a, struct consumer *b, struct table *table);

#endif
