/* SPDX-License-Identifier: MIT */
/*
 * Several reports from one pass over a trace. They are printed in the order in which they were
 * named, although all of them see the same events: what comes too early waits in temporary files.
 */
#pragma once

#include <sys/types.h>

#include "report/report.h"

struct work;

struct report_set_options {
	struct table_options table; /* `out` is ignored with a folder */
	const char *folder;      /* each report goes to FOLDER/NAME.csv; NULL: all to table.out */
	bool replace;            /* files that exist */
	mode_t mode;             /* of files that are made; 0: FILE_MODE */
	uint64_t from_ns, to_ns; /* see struct report_options */
	uint64_t gap_ns;
	bool part, chosen; /* see struct report_options */
	bool nested;
	bool stacks;
	struct work *work; /* fed by the caller, before the set; NULL: the set has its own */
};

struct report_set;

int report_set_new(const struct report_choice *choices, size_t n,
                   const struct report_set_options *options, struct report_set **set,
                   struct err *err);
void report_set_free(struct report_set *set);

/* What they share and one for each report, owned by the set. */
struct consumer *const *report_set_consumers(const struct report_set *set, size_t *n);

/* What they share of the account of time (why.h): the set's. */
struct consumer *report_set_why(const struct report_set *set);

/* After the consumers have had their end: prints what waited, closes files. */
int report_set_finish(struct report_set *set, struct err *err);
