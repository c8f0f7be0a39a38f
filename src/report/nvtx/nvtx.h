/* SPDX-License-Identifier: MIT */
/* What the reports of NVTX ranges share. Private to them. */
#pragma once

#include "base/buf.h"
#include "report/nvtx/range_work.h"
#include "report/report.h"

/* Names that rows are made of: a program can have any number ("step 1", "step 2", ...). */
#define NVTX_NAMES     65536
#define NVTX_NAMES_ALL "(others)" /* all that come after so many */

/* "PushPop", "StartEnd"; NULL for what is no NVTX range. */
const char *nvtx_style(enum range_kind kind);

/* "forward", "NCCL:ncclAllReduce". */
void nvtx_add_name(struct buf *out, const struct range *range);

/* The note of a report that saw no range; `ran`: but something that ran on a GPU. */
void nvtx_note_none(const struct report_options *options, const struct run_info *run, bool ran);

/* What a report of the work of ranges has no rows for; `any`: a range was there. Else nothing. */
void nvtx_note_no_work(const struct report_options *options, const struct run_info *run, bool any,
                       bool ran);

/* The note on ranges that came after so many names; none for 0. */
void nvtx_note_others(struct table *table, uint64_t others);

/* Notes on ranges and on work that could not all be kept; none where they could. */
void nvtx_note_cut(struct table *table, const struct range_work *work);
