/* SPDX-License-Identifier: MIT */
/* What the parts of the report `gaps` share. Private to it. */
#ifndef CUSCOPE_REPORT_GAPS_GAPS_REPORT_H
#define CUSCOPE_REPORT_GAPS_GAPS_REPORT_H

#include "report/gaps/gaps.h"
#include "base/buf.h"
#include "report/report.h"

/* Phrases without full stops; one that is empty has nothing to say. */
struct gaps_conclusion {
	const char *verdict; /* "launch-bound" */
	bool mostly;         /* there are other reasons, which are more together */
	struct buf busy;     /* how busy, and what for it was idle */
	struct buf apart;    /* the gaps that were left out of all of this */
	struct buf why;
	const char *try; /* what to do; NULL: nothing */
};

/* Of one GPU. `begin_ns`: of the trace. */
void gaps_conclude(const struct gap_line *gpu, uint64_t begin_ns,
                   struct gaps_conclusion *conclusion);
void gaps_conclusion_free(struct gaps_conclusion *conclusion);

/* Without the gaps that are apart. */
uint64_t gaps_steady_ns(const struct gap_line *gpu);

/* 31.4 for 314 of 1000, 0 of 0. */
double gaps_percent(uint64_t part, uint64_t whole);

/* All gaps of a line, whatever the cause. */
struct gap_sum gaps_all_causes(const struct gap_line *line);

/* The tables of causes: of GPUs, of streams. 0 or a negative errno. */
int gaps_write_causes(struct report_writer *writer, struct err *err);
int gaps_write_causes_of_streams(struct report_writer *writer, struct err *err);

#endif
