// SPDX-License-Identifier: MIT
#include "analysis/metrics_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

const int64_t metrics_levels[METRICS_LEVELS] = { 2000, 5000, 8000 };

struct metrics_use {
	struct metrics_gpu *gpus;
	size_t n;
};

struct metrics_use *metrics_use_new(void)
{
	return xcalloc(1, sizeof(struct metrics_use));
}

void metrics_use_free(struct metrics_use *use)
{
	for (size_t i = 0; use && i < use->n; i++) {
		for (size_t j = 0; j < GPU_METRICS; j++)
			sketch_free(&use->gpus[i].of[j].values);
	}
	if (use)
		free(use->gpus);
	free(use);
}

/* A reader gives no numbers from RUN_GPUS_MAX on, so there are few. */
static struct metrics_gpu *gpu_of(struct metrics_use *use, uint32_t number)
{
	size_t i = 0;

	while (i < use->n && use->gpus[i].gpu < number)
		i++;
	if (i < use->n && use->gpus[i].gpu == number)
		return &use->gpus[i];
	use->gpus = xrealloc(use->gpus, (use->n + 1) * sizeof(*use->gpus));
	memmove(&use->gpus[i + 1], &use->gpus[i], (use->n - i) * sizeof(*use->gpus));
	use->n++;
	memset(&use->gpus[i], 0, sizeof(use->gpus[i]));
	use->gpus[i].gpu = number;
	return &use->gpus[i];
}

/* It is read once a second, and not known of a second that was cut short: then as before. */
static bool is_busy(const struct metrics_gpu *gpu, const struct gpu_metrics_sample *sample)
{
	if (sample->value[GPU_METRIC_GRAPHICS] == GPU_METRIC_UNKNOWN &&
	    sample->value[GPU_METRIC_BUSY] == GPU_METRIC_UNKNOWN)
		return gpu->busy;
	return sample->value[GPU_METRIC_GRAPHICS] >= METRICS_BUSY ||
	       sample->value[GPU_METRIC_BUSY] >= METRICS_BUSY;
}

static void add_value(struct metric_use *use, int64_t value, uint64_t ns, bool busy)
{
	use->sum += (double)value * (double)ns;
	use->ns += ns;
	if (busy) {
		use->busy_sum += (double)value * (double)ns;
		use->busy_ns += ns;
	}
	for (size_t i = 0; i < METRICS_LEVELS; i++)
		use->above_ns[i] += value >= metrics_levels[i] ? ns : 0;
	sketch_add(&use->values, (uint64_t)value);
}

void metrics_use_add(struct metrics_use *use, const struct gpu_metrics_sample *sample)
{
	if (sample->source == GPU_METRICS_STRETCHES) /* the same time, told otherwise */
		return;

	struct metrics_gpu *gpu = gpu_of(use, sample->gpu);
	uint64_t ns = sample->end_ns > sample->begin_ns ? sample->end_ns - sample->begin_ns : 0;
	bool busy = is_busy(gpu, sample);

	gpu->busy = busy;
	gpu->samples++;
	gpu->ns += ns;
	gpu->gpm += sample->source == GPU_METRICS_GPM;
	gpu->utilization += sample->source == GPU_METRICS_UTILIZATION;
	gpu->busy_samples += busy;
	gpu->busy_ns += busy ? ns : 0;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		if (sample->value[i] != GPU_METRIC_UNKNOWN)
			add_value(&gpu->of[i], sample->value[i], ns, busy);
	}
}

const struct metrics_gpu *metrics_use_gpus(const struct metrics_use *use, size_t *n)
{
	*n = use->n;
	return use->gpus;
}

static double mean(double sum, uint64_t ns, enum gpu_metric metric)
{
	return ns ? sum / (double)ns / (gpu_metric_info(metric)->is_rate ? 1 : 100) : NAN;
}

double metric_mean(const struct metrics_gpu *gpu, enum gpu_metric metric)
{
	return mean(gpu->of[metric].sum, gpu->of[metric].ns, metric);
}

double metric_busy_mean(const struct metrics_gpu *gpu, enum gpu_metric metric)
{
	return mean(gpu->of[metric].busy_sum, gpu->of[metric].busy_ns, metric);
}
