/* SPDX-License-Identifier: MIT */
/* The keys of jsonl lines about what ran on the GPU, and about ranges. Private to src/output. */
#ifndef CUSCOPE_OUTPUT_JSONL_GPU_H
#define CUSCOPE_OUTPUT_JSONL_GPU_H

#include "base/buf.h"
#include "output/delays.h"

/* From "type" to the duration; the process's keys follow, then the second part. */
void jsonl_begin_activity(struct buf *out, const struct activity *activity,
                          const struct delay *delay);
void jsonl_add_activity(struct buf *out, const struct activity *activity);

void jsonl_begin_range(struct buf *out, const struct range *range, uint32_t tid);
void jsonl_add_range(struct buf *out, const struct range *range);

/* Metrics of a GPU, after the time. */
void jsonl_add_metrics(struct buf *out, const struct gpu_metrics_sample *sample);

#endif
