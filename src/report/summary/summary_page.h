/* SPDX-License-Identifier: MIT */
/* The summary as a page of text or an object of json. Private to the summary. */
#pragma once

#include "report/summary/summary.h"
#include "report/summary/tally.h"
#include "table/table.h"

struct summary_page {
	const struct tally *tally; /* as seen */
	struct tally told;         /* tally_estimated() */
	const struct run_info *run;
	const struct summary_options *options;
	struct missed_functions *missed;
	size_t top; /* rows of a table of the text */
	struct table *table;
	struct buf *text;  /* NULL: json */
	struct json *json; /* NULL: text */
};

/* Appends all of it. 0 or a negative errno. */
int summary_text(const struct tally *tally, const struct run_info *run,
                 const struct summary_options *options, struct buf *out, struct err *err);
int summary_json(const struct tally *tally, const struct run_info *run, struct buf *out,
                 struct err *err);

/* ---- parts of it --------------------------------------------------------------------------- */

#define SUMMARY_ROOM 100 /* columns of a terminal with room for all percentiles */

/* What columns need in the text; the json has all of them. */
enum {
	SUMMARY_WIDE = 1, /* durations, and a terminal with room */
	SUMMARY_P95 = 2,
	SUMMARY_RETURNS = 4,
	SUMMARY_NESTED = 8,
	SUMMARY_CAPTURED = 16,
	SUMMARY_RANKS = 32, /* all functions fit into one table */
	SUMMARY_NCCL = 64,
};

/* "TOP 20 OF 133 FUNCTIONS BY CALL COUNT", "KERNELS BY LAUNCHES" where all are shown */
const char *summary_title(const struct summary_page *page, size_t n, const char *what, char *title,
                          size_t size);

/* "12", "~120" where it is other than what was seen. */
void summary_count(struct buf *out, uint64_t n, uint64_t seen);

/* Calls by function. */
void summary_functions(const struct summary_page *page);

/* What ran on GPUs; nothing where GPU times were not recorded. */
void summary_gpu(const struct summary_page *page);

/* Whether NCCL's kernels were among what ran. */
bool summary_has_nccl(const struct tally *tally);

/* The i-th direction: in the text those that are not known come last. */
int summary_direction(const struct summary_page *page, int i);
