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

/* With samples: where the host was, how far that is known, and with --stacks the whole stacks. */
int gaps_write_host(struct report_writer *writer, struct err *err);

#endif
