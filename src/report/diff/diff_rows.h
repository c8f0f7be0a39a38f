/* SPDX-License-Identifier: MIT */
/* Rows of two sums side by side. Private to diff.c. */
#pragma once

#include "report/sums.h"

/*
 * Prints a row for each name, those whose total changed most first; the caller ends the table. If
 * one of the traces could not see such things at all, there are no rows: they would all look as if
 * they were new.
 */
void diff_rows_print(const struct sums_kind *kind, const char *name, const char *help,
                     struct consumer *a, struct consumer *b, struct table *table);
