/* SPDX-License-Identifier: MIT */
/* A sentence on what the host waited for. */
#ifndef CUSCOPE_REPORT_GAPS_GAPS_CONCLUSION_H
#define CUSCOPE_REPORT_GAPS_GAPS_CONCLUSION_H

#include "report/gaps/gaps.h"

/* "waited for the disk for 61 %, in load (train.py:88)" */
void gaps_add_wait(struct buf *out, const struct gap_waits *waits, enum gap_wait wait,
                   const struct gap_whos *whos, struct stack_places *places);

#endif
