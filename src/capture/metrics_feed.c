// SPDX-License-Identifier: MIT
#include "capture/metrics_feed.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "gpus/gpu_sampler.h"

struct metrics_feed {
	uint64_t metrics_ns, stretches_ns;       /* 0: not asked for */
	struct gpu_sampler *metrics, *stretches; /* NULL: not started */
	uint64_t gpm, utilization;               /* samples that consumers were given */
	bool told[2];
	char why[256];
};

struct metrics_feed *metrics_feed_new(uint64_t metrics_ns, uint64_t stretches_ns)
{
	struct metrics_feed *feed = xcalloc(1, sizeof(*feed));

	feed->metrics_ns = metrics_ns;
	feed->stretches_ns = stretches_ns;
	return feed;
}

void metrics_feed_free(struct metrics_feed *feed)
{
	if (!feed)
		return;
	gpu_sampler_free(feed->metrics);
	gpu_sampler_free(feed->stretches);
	free(feed);
}

void metrics_feed_start(struct metrics_feed *feed)
{
	if (feed->metrics_ns && !feed->metrics)
		feed->metrics = gpu_sampler_new(GPU_SAMPLING_METRICS, feed->metrics_ns);
	if (feed->stretches_ns && !feed->stretches)
		feed->stretches = gpu_sampler_new(GPU_SAMPLING_STRETCHES, feed->stretches_ns);
}

void metrics_feed_settle(struct metrics_feed *feed)
{
	if (feed->metrics)
		gpu_sampler_settle(feed->metrics);
}

static uint64_t samples_of(struct gpu_sampler *sampler)
{
	struct gpu_sampler_figures figures = { 0 };

	if (sampler)
		gpu_sampler_figures(sampler, &figures);
	return figures.gpm + figures.utilization + figures.stretches;
}

static int feed_pass(struct metrics_feed *feed, struct pipeline *pipeline,
                     const struct gpu_metrics_sample *sample, struct err *err)
{
	feed->gpm += sample->source == GPU_METRICS_GPM;
	feed->utilization += sample->source == GPU_METRICS_UTILIZATION;
	return pipeline_metrics(pipeline, sample, err);
}

/* Samples wait in the samplers, which count what they have no room for, until there is a process.
 */
int metrics_feed_turn(struct metrics_feed *feed, struct pipeline *pipeline, struct err *err)
{
	bool stretches = samples_of(feed->stretches);
	struct gpu_metrics_sample sample;
	int r = 0;

	if (!pipeline_has_process(pipeline))
		return 0;
	while (!r && feed->metrics && gpu_sampler_take(feed->metrics, &sample)) {
		/* NVML's utilisation is the same, and coarser */
		if (!stretches || sample.source != GPU_METRICS_UTILIZATION)
			r = feed_pass(feed, pipeline, &sample, err);
	}
	while (!r && stretches && gpu_sampler_take(feed->stretches, &sample))
		r = feed_pass(feed, pipeline, &sample, err);
	return r;
}

bool metrics_feed_has_any(const struct metrics_feed *feed)
{
	return samples_of(feed->metrics) || samples_of(feed->stretches);
}

bool metrics_feed_is_awaited(const struct metrics_feed *feed)
{
	return (feed->metrics && !feed->told[0] && !samples_of(feed->metrics)) ||
	       (feed->stretches && !feed->told[1] && !samples_of(feed->stretches));
}

static const char *why_none(struct metrics_feed *feed, struct gpu_sampler *sampler, bool *told)
{
	if (!sampler || *told)
		return NULL;
	gpu_sampler_why(sampler, feed->why, sizeof(feed->why));
	*told = *feed->why;
	return *told ? feed->why : NULL;
}

const char *metrics_feed_why_none(struct metrics_feed *feed)
{
	return why_none(feed, feed->metrics, &feed->told[0]);
}

const char *metrics_feed_why_no_stretches(struct metrics_feed *feed)
{
	return why_none(feed, feed->stretches, &feed->told[1]);
}

static void fill_stretches(struct metrics_feed *feed, struct run_stretches *run)
{
	struct gpu_sampler_figures figures;

	gpu_sampler_figures(feed->stretches, &figures);
	if (figures.stretches)
		*run = (struct run_stretches){ .interval_ns = figures.interval_ns,
			                       .clock_error_ns = figures.clock_error_ns,
			                       .samples = figures.samples,
			                       .lost = figures.lost,
			                       .dropped = figures.dropped,
			                       .cpu_ns = figures.cpu_ns };
}

void metrics_feed_fill_run(struct metrics_feed *feed, struct run_info *info)
{
	struct run_metrics *run = &info->metrics;
	struct gpu_sampler_figures figures;

	if (feed->stretches)
		fill_stretches(feed, &info->stretches);
	if (!feed->metrics)
		return;
	gpu_sampler_figures(feed->metrics, &figures);
	*run = (struct run_metrics){ .interval_ns = feed->metrics_ns,
		                     .gpm = feed->gpm,
		                     .utilization = feed->utilization,
		                     .late = figures.late,
		                     .none = figures.none,
		                     .dropped = figures.dropped,
		                     .cpu_ns = figures.cpu_ns };
	if (!figures.gpm && !figures.utilization)
		run->interval_ns = 0; /* there was nothing to ask */
}
