/* SPDX-License-Identifier: MIT */
/* What the parts of the overview share. Private to it. */
#pragma once

#include "analysis/processes.h"
#include "report/report.h"
#include "report/summary/tally.h"
#include "report/why.h"

enum {
	COUNT_CALLS,     /* summary.h */
	COUNT_FUNCTIONS, /* sums.h: of calls that no other call made */
	COUNT_PROCESSES, /* processes.h */
	COUNT_WHY,       /* why.h */
	OVERVIEW_COUNTS,
};

struct overview {
	struct report_writer writer; /* first: what callers hold */
	struct consumer *counts[OVERVIEW_COUNTS];
	const struct tally *tally; /* of COUNT_CALLS */
	uint64_t duration_ns;      /* of what was read */
	uint64_t calls_ns;         /* in calls that no other call made, of all threads */
};

#define OVERVIEW_ROWS        5   /* of each table */
#define OVERVIEW_NAMES_WIDTH 120 /* columns of a table of kernels that goes to no terminal */

#define FIRST_ROWS(n) ((n) < OVERVIEW_ROWS ? (n) : OVERVIEW_ROWS)

/* The table of what to look at next: HINTS_MOST rows at most. */
#define HINTS_MOST 6

#define OVERVIEW_HINT_COLUMNS 2
extern const struct table_column overview_hint_columns[OVERVIEW_HINT_COLUMNS];
void overview_hints(void *overview, struct table *table, const struct run_info *run);
