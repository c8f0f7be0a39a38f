/* SPDX-License-Identifier: MIT */
/*
 * Metrics of GPUs, and when each was busy, while a program is traced: NVML, and CUPTI's PM
 * sampling, are read at an interval from when a target was seen to load CUDA, and consumers get
 * each sample as an EVENT_METRICS.
 */
#pragma once

#include "capture/pipeline.h"

struct metrics_feed;

/* Between two samples of a GPU; 0: without. */
struct metrics_feed *metrics_feed_new(uint64_t metrics_ns, uint64_t stretches_ns);
void metrics_feed_free(struct metrics_feed *metrics);

/* Nothing is read before it, since that would wake up GPUs. Any number of times. */
void metrics_feed_start(struct metrics_feed *metrics);

/* What was read so far comes with the next turn, whether all of it is known or not. */
void metrics_feed_settle(struct metrics_feed *metrics);

/* Passes on the samples that came since. Those before the first process are left out. */
int metrics_feed_turn(struct metrics_feed *metrics, struct pipeline *pipeline, struct err *err);

/* Whether there was a sample; and whether the first one is still to come. */
bool metrics_feed_has_any(const struct metrics_feed *metrics);
bool metrics_feed_is_awaited(const struct metrics_feed *metrics);

/* Why there is no sample; NULL: there are some, or it is not known yet. Says it once. */
const char *metrics_feed_why_none(struct metrics_feed *metrics);
const char *metrics_feed_why_no_stretches(struct metrics_feed *metrics);

void metrics_feed_fill_run(struct metrics_feed *metrics, struct run_info *run);
