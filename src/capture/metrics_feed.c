// SPDX-License-Identifier: MIT
#include "capture/metrics_feed.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "gpus/gpu_sampler.h"

struct metrics_feed {
	uint64_t interval_ns;
	struct gpu_sampler *sampler; /* NULL: not started */
	bool told;
	char why[256];
};

struct metrics_feed *metrics_feed_new(uint64_t interval_ns)
{
	struct metrics_feed *metrics = xcalloc(1, sizeof(*metrics));

	metrics->interval_ns = interval_ns;
	return metrics;
}

void metrics_feed_free(struct metrics_feed *metrics)
{
	if (!metrics)
		return;
	gpu_sampler_free(metrics->sampler);
	free(metrics);
}

void metrics_feed_start(struct metrics_feed *metrics)
{
	if (!metrics->sampler)
		metrics->sampler = gpu_sampler_new(GPU_SAMPLING_METRICS, metrics->interval_ns);
}

void metrics_feed_settle(struct metrics_feed *metrics)
{
	if (metrics->sampler)
		gpu_sampler_settle(metrics->sampler);
}

int metrics_feed_turn(struct metrics_feed *metrics, struct pipeline *pipeline, struct err *err)
{
	struct gpu_metrics_sample sample;
	int r = 0;

	while (!r && metrics->sampler && gpu_sampler_take(metrics->sampler, &sample))
		r = pipeline_metrics(pipeline, &sample, err);
	return r;
}

bool metrics_feed_has_any(const struct metrics_feed *metrics)
{
	struct gpu_sampler_figures figures = { 0 };

	if (metrics->sampler)
		gpu_sampler_figures(metrics->sampler, &figures);
	return figures.gpm || figures.utilization;
}

bool metrics_feed_is_awaited(const struct metrics_feed *metrics)
{
	return metrics->sampler && !metrics->told && !metrics_feed_has_any(metrics);
}

const char *metrics_feed_why_none(struct metrics_feed *metrics)
{
	if (!metrics->sampler || metrics->told)
		return NULL;
	gpu_sampler_why(metrics->sampler, metrics->why, sizeof(metrics->why));
	metrics->told = *metrics->why;
	return metrics->told ? metrics->why : NULL;
}

void metrics_feed_fill_run(struct metrics_feed *metrics, struct run_metrics *run)
{
	struct gpu_sampler_figures figures;

	if (!metrics->sampler)
		return;
	gpu_sampler_figures(metrics->sampler, &figures);
	*run = (struct run_metrics){ .interval_ns = metrics->interval_ns,
		                     .gpm = figures.gpm,
		                     .utilization = figures.utilization,
		                     .late = figures.late,
		                     .none = figures.none,
		                     .dropped = figures.dropped,
		                     .cpu_ns = figures.cpu_ns };
	if (!figures.gpm && !figures.utilization)
		run->interval_ns = 0; /* there was nothing to ask */
}
