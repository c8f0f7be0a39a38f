/* SPDX-License-Identifier: MIT */
/*
 * Two traces side by side: the rows of a report that sums up, A's figures beside B's, with the
 * change and what it is worth. Each side is fed by its own pass; then the tables are printed.
 */
#pragma once

#include "report/report.h"

enum diff_side { DIFF_A, DIFF_B, DIFF_SIDES };

/* P-values below this are called significant. */
#define DIFF_SIGNIFICANT 0.01

struct diff;

/*
 * What is to be compared: names of reports ("cuda_gpu_kern_sum:base"), "why" and "totals". None:
 * these two, cuda_api_sum and, where there are GPU times, cuda_gpu_kern_sum. A sentence for a name
 * that cannot be compared. Of the options counts what is read of the traces, and `nested`.
 */
int diff_new(const char *const *words, size_t n, const struct report_options *options,
             struct diff **diff, struct err *err);
void diff_free(struct diff *diff);

/* Of one side, owned by the diff. */
struct consumer *const *diff_consumers(const struct diff *diff, enum diff_side side, size_t *n);

/* Before it is fed: the account of that side is this one, which others feed (why_feeder()), and
 * calls are joined with their work in that window (work_consumer()). */
void diff_share(struct diff *diff, enum diff_side side, struct consumer *why, struct work *work);

/* After both sides had their end. `runs`: of A and of B. */
int diff_print(struct diff *diff, const struct run_info *const runs[DIFF_SIDES],
               const struct table_options *options, struct err *err);

/* After it: when the first usual step of each begins, since its recording did. False: steps were
 * not found in both. */
bool diff_first_steps(const struct diff *diff, uint64_t ns[DIFF_SIDES]);

/* What can be compared, for --help: names, ends with NULL. */
const char *diff_name(size_t i);
