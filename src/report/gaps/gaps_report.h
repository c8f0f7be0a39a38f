/* SPDX-License-Identifier: MIT */
/* What the parts of the report `gaps` share. Private to it. */
#ifndef CUSCOPE_REPORT_GAPS_GAPS_REPORT_H
#define CUSCOPE_REPORT_GAPS_GAPS_REPORT_H

#include "report/gaps/gaps_conclusion.h"
#include "report/report.h"

/* All gaps of a line, whatever the cause. */
struct gap_sum gaps_all_causes(const struct gap_line *line);

/* The tables of causes: of GPUs, of streams. 0 or a negative errno. */
int gaps_write_causes(struct report_writer *writer, struct err *err);
int gaps_write_causes_of_streams(struct report_writer *writer, struct err *err);

/* With --host-waits: what the host waited for, and who had its CPU. */
int gaps_write_waits(struct report_writer *writer, const struct run_info *run, struct err *err);

/* ", waited for the disk 3.200 ms (80 %)", where that is most of the host's time. */
void gaps_add_wait_of(struct buf *out, const struct gpu_gap *gap);

/* With samples: where the host was, how far that is known, and with --stacks the whole stacks. */
int gaps_write_host(struct report_writer *writer, struct err *err);

#endif
