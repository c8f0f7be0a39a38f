/* SPDX-License-Identifier: MIT */
/* What a step costs in two traces, by the account of time of each. Private to diff.c. */
#pragma once

#include "report/diff/diff.h"

/*
 * A sentence, and a table of what it is made of. `a` and `b` are what why_new() made, after their
 * ends.
 */
int diff_why_print(struct consumer *a, struct consumer *b,
                   const struct run_info *const runs[DIFF_SIDES], struct table *table,
                   struct err *err);

/* After it: as diff_first_steps(). */
bool diff_why_first_steps(struct consumer *a, struct consumer *b, uint64_t ns[DIFF_SIDES]);

/* Whether there is an account of either. */
bool diff_why_any(struct consumer *a, struct consumer *b);
