/* SPDX-License-Identifier: MIT */
/*
 * The longest gaps, and which of them are apart. Those few do not belong to what a program does
 * most of the time: its start, or the pause between two epochs.
 *
 * A gap is apart if it lasts GAP_APART_NS or more, and more than a second or a twentieth of the
 * time without longer gaps. Nothing is apart where more than GAP_APART_MOST are (what happens so
 * often is what the program does), or where fewer than GAP_APART_OTHERS other gaps are left to
 * judge by.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_LONGEST_H
#define CUSCOPE_REPORT_GAPS_GAP_LONGEST_H

#include "report/gaps/gaps.h"
#include "table/longest.h"

#define GAP_APART_NS     10000000   /* below, it is a part of a step */
#define GAP_APART_ANY_NS 1000000000 /* whatever the share */
#define GAP_APART_SHARE  20         /* the twentieth */
#define GAP_APART_MOST   8
#define GAP_APART_OTHERS 100

/* The order of struct longest. */
int gap_longer(const void *left, const void *right);

/*
 * How many of the longest ones, from the first on, are apart; of those of a line with `n_gaps`
 * gaps, that is busy and idle for `span_ns` together. More than GAP_APART_MOST have to be kept.
 */
size_t gap_longest_apart(const struct gpu_gap *longest, size_t n_longest, uint64_t n_gaps,
                         uint64_t span_ns);

#endif
