/* SPDX-License-Identifier: MIT */
/*
 * Metrics of all GPUs at an interval (gpu_metrics.h), or when each was busy (gpu_metrics.h), kept
 * until they are taken. As with gpu_state.h, NVML or CUPTI is called in a process of its own, and
 * nobody here waits for it.
 */
#pragma once

#include "gpus/gpu_metrics.h"

struct gpu_sampler;

enum gpu_sampling {
	GPU_SAMPLING_METRICS,   /* by NVML */
	GPU_SAMPLING_STRETCHES, /* by CUPTI's PM sampling */
};

/* What became of the samples. Those that were late are there: they stand for a longer time. */
struct gpu_sampler_figures {
	uint64_t gpm, utilization; /* samples by what they were read from */
	uint64_t late;             /* moments that were missed: GPU, driver or CPU was too slow */
	uint64_t none;       /* readings that gave nothing; the first two of a GPU do not count */
	uint64_t dropped;    /* samples that there was no room for: nobody took them */
	uint64_t cpu_ns;     /* that reading took, of all threads */
	uint64_t reading_ns; /* how long readings took */
	/* GPU_SAMPLING_STRETCHES: */
	uint64_t stretches, samples; /* how many were made of how many */
	uint64_t lost;               /* times that samples of a GPU were lost */
	uint64_t interval_ns;        /* between two samples, the longest */
	uint64_t clock_error_ns;     /* that their times can be wrong by at most */
};

/* NULL: no thread could be started. */
struct gpu_sampler *gpu_sampler_new(enum gpu_sampling what, uint64_t interval_ns);

/*
 * The next sample; false while there is none. Those of one GPU come in order of time. By GPM, they
 * come up to a second late, together: GPU_METRIC_GRAPHICS is read once a second, and each has the
 * mean of its second.
 */
bool gpu_sampler_take(struct gpu_sampler *sampler, struct gpu_metrics_sample *sample);

/* From now on all that were read can be taken: those of a second that is not over do not tell it.
 */
void gpu_sampler_settle(struct gpu_sampler *sampler);

void gpu_sampler_figures(struct gpu_sampler *sampler, struct gpu_sampler_figures *figures);

/* Why there are none; empty where there are, and as long as nothing is known. */
void gpu_sampler_why(struct gpu_sampler *sampler, char *text, size_t size);

void gpu_sampler_free(struct gpu_sampler *sampler);
