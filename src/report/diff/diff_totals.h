/* SPDX-License-Identifier: MIT */
/* What two traces did in all, side by side. Private to diff.c. */
#ifndef CUSCOPE_REPORT_DIFF_DIFF_TOTALS_H
#define CUSCOPE_REPORT_DIFF_DIFF_TOTALS_H

#include "report/diff/diff.h"

/* The table without its end. `a` and `b` are what summary_new() made, after their ends. */
void diff_totals_print(const char *name, const struct consumer *a, const struct consumer *b,
                       const struct run_info *const runs[DIFF_SIDES], struct table *table);

#endif
