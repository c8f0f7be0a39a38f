/* SPDX-License-Identifier: MIT */
/* Metrics of GPUs over a trace: means by time, percentiles, and how long they were high. */
#pragma once

#include "analysis/spread.h"
#include "trace/event.h"

/* Hundredths of a percent from which on a share is counted as high, and busy as busy. */
#define METRICS_LEVELS 3
extern const int64_t metrics_levels[METRICS_LEVELS];
#define METRICS_BUSY 5000

/* One metric of a GPU. */
struct metric_use {
	double sum; /* of value and ns */
	uint64_t ns;
	uint64_t above_ns[METRICS_LEVELS];
	double busy_sum; /* these two: while the GPU was busy */
	uint64_t busy_ns;
	struct sketch values; /* of samples, however long each was */
};

struct metrics_gpu {
	uint32_t gpu;
	uint64_t samples, ns;           /* of both sources */
	uint64_t busy_samples, busy_ns; /* in which it was busy for half of the time or more */
	uint64_t gpm, utilization;      /* samples by source */
	bool busy;                      /* in the last sample that told so */
	struct metric_use of[GPU_METRICS];
};

struct metrics_use;

struct metrics_use *metrics_use_new(void);
void metrics_use_free(struct metrics_use *use);
void metrics_use_add(struct metrics_use *use, const struct gpu_metrics_sample *sample);

/* In the order of their numbers. */
const struct metrics_gpu *metrics_use_gpus(const struct metrics_use *use, size_t *n);

/* Means by time, in the metric's unit; of shares percent. NAN: not told. */
double metric_mean(const struct metrics_gpu *gpu, enum gpu_metric metric);
double metric_busy_mean(const struct metrics_gpu *gpu, enum gpu_metric metric);
