/* SPDX-License-Identifier: MIT */
/* What the parts of the report `gaps` share. Private to it. */
#ifndef CUSCOPE_REPORT_GAPS_H
#define CUSCOPE_REPORT_GAPS_H

#include "analysis/gaps.h"
#include "base/buf.h"

struct gaps_conclusion {
	const char *verdict; /* "launch-bound" */
	struct buf why;      /* a sentence each, without a full stop */
	struct buf what;
};

/* Of one GPU. `why` and `what` are appended to. */
void gaps_conclude(const struct gap_line *gpu, uint64_t threshold_ns,
                   struct gaps_conclusion *conclusion);

/* 31.4 for 314 of 1000, 0 of 0. */
double gaps_percent(uint64_t part, uint64_t whole);

#endif
