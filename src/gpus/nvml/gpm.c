// SPDX-License-Identifier: MIT
#include "gpus/nvml/gpm.h"

#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "gpus/gpu_clock.h"

#define VERSION 1 /* of both structures */

/* The first pair after a pause came out as 0 and NaN on an H200: it is left out. */
#define READINGS_LEFT_OUT 2

#define MIB 1048576.0

/*
 * Metric 1, graphics, takes the driver 0.9 to 1.8 ms each time (580.159.04), and all others
 * together 0.01 ms. So it is asked for once a second, as the mean of that second. Readings of once
 * a second are no exact seconds apart.
 */
#define GRAPHICS_NS    1000000000ull
#define GRAPHICS_EARLY 50000000ull

#define READINGS 3 /* the newest, the one before, and that which graphics were asked for at */

struct gpm {
	const struct nvml *nvml;
	gpm_handle readings[READINGS];
	unsigned newest, graphics;
	unsigned n; /* readings since a pause, up to READINGS_LEFT_OUT */
	uint64_t newest_ns;
	uint64_t graphics_ns; /* when that reading was; 0: there is none since the pause */
	int64_t last_graphics;
	struct gpm_metrics query;
};

static bool has_functions(const struct nvml *nvml)
{
	return nvml->gpm_support && nvml->gpm_alloc && nvml->gpm_free && nvml->gpm_sample &&
	       nvml->gpm_metrics;
}

struct gpm *gpm_open(const struct nvml *nvml, gpu_handle handle)
{
	struct gpm_support support = { .version = VERSION };
	struct gpm *gpm;

	if (!has_functions(nvml) || nvml->gpm_support(handle, &support) != NVML_SUCCESS ||
	    !support.supported)
		return NULL;
	gpm = xcalloc(1, sizeof(*gpm));
	gpm->nvml = nvml;
	gpm->last_graphics = GPU_UNKNOWN;
	for (size_t i = 0; i < READINGS; i++) {
		if (nvml->gpm_alloc(&gpm->readings[i]) != NVML_SUCCESS) {
			gpm_close(gpm);
			return NULL;
		}
	}
	return gpm;
}

void gpm_close(struct gpm *gpm)
{
	if (!gpm)
		return;
	for (size_t i = 0; i < READINGS; i++) {
		if (gpm->readings[i])
			gpm->nvml->gpm_free(gpm->readings[i]);
	}
	free(gpm);
}

static bool is_asked_each_time(enum gpu_metric metric)
{
	return gpu_metric_info(metric)->gpm && metric != GPU_METRIC_GRAPHICS;
}

static int ask(struct gpm *gpm, unsigned first)
{
	gpm->query.version = VERSION;
	gpm->query.first = gpm->readings[first];
	gpm->query.second = gpm->readings[gpm->newest];
	return gpm->nvml->gpm_metrics(&gpm->query);
}

static int ask_for_most(struct gpm *gpm, unsigned first)
{
	struct gpm_metrics *query = &gpm->query;

	query->n = 0;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		if (is_asked_each_time(i))
			query->metrics[query->n++] =
				(struct gpm_metric){ .id = gpu_metric_info(i)->gpm };
	}
	return ask(gpm, first);
}

/* Hundredths of a percent, or bytes a second. What no GPU can have done is not believed. */
static int64_t number_of(const struct gpu_metric_info *info, double value)
{
	double number = info->is_rate ? value * MIB : value * 100;

	if (!(number >= 0) ||
	    number > (info->is_rate ? (double)GPU_RATE_MOST : 100.0 * GPU_SHARE_WHOLE))
		return GPU_UNKNOWN;
	return !info->is_rate && number > GPU_SHARE_WHOLE ? GPU_SHARE_WHOLE
	                                                  : (int64_t)(number + 0.5);
}

/* False where one of them is no number: then those beside it are 0, and not true either. */
static bool take_values(const struct gpm_metrics *query, struct gpu_metrics_sample *sample)
{
	const struct gpm_metric *metric = query->metrics;
	bool any = false;

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		sample->value[i] = GPU_UNKNOWN;
		if (!is_asked_each_time(i))
			continue;
		if (metric->result == NVML_SUCCESS && isnan(metric->value))
			return false;
		if (metric->result == NVML_SUCCESS)
			sample->value[i] = number_of(info, metric->value);
		any |= sample->value[i] != GPU_UNKNOWN;
		metric++;
	}
	return any;
}

/*
 * Whether it is time for it. After a pause it is at once, from the newest two readings, so that
 * something is known of what is short.
 */
static bool graphics_are_due(const struct gpm *gpm)
{
	return !gpm->graphics_ns ||
	       gpm->newest_ns - gpm->graphics_ns >= GRAPHICS_NS - GRAPHICS_EARLY;
}

/* The mean since the reading that they were asked for at before; what it begins at. */
static uint64_t ask_for_graphics(struct gpm *gpm, unsigned before, uint64_t before_ns)
{
	const struct gpu_metric_info *info = gpu_metric_info(GPU_METRIC_GRAPHICS);
	const struct gpm_metric *metric = &gpm->query.metrics[0];
	uint64_t begin_ns = gpm->graphics_ns ? gpm->graphics_ns : before_ns;
	unsigned first = gpm->graphics_ns ? gpm->graphics : before;

	gpm->query.n = 1;
	gpm->query.metrics[0] = (struct gpm_metric){ .id = info->gpm };
	gpm->last_graphics = GPU_UNKNOWN;
	if (ask(gpm, first) == NVML_SUCCESS && metric->result == NVML_SUCCESS &&
	    !isnan(metric->value))
		gpm->last_graphics = number_of(info, metric->value);
	gpm->graphics = gpm->newest;
	gpm->graphics_ns = gpm->newest_ns;
	return begin_ns;
}

static void begin_anew(struct gpm *gpm)
{
	gpm->n = 0;
	gpm->graphics_ns = 0;
	gpm->last_graphics = GPU_UNKNOWN;
}

/* That nobody needs any more. */
static unsigned spare_reading(const struct gpm *gpm)
{
	unsigned i = 0;

	while (i == gpm->newest || (gpm->graphics_ns && i == gpm->graphics))
		i++;
	return i;
}

bool gpm_read(struct gpm *gpm, gpu_handle handle, uint64_t pause_ns,
              struct gpu_metrics_sample *sample, uint64_t *graphics_ns, int *result)
{
	unsigned before = gpm->newest, next = spare_reading(gpm);
	uint64_t before_ns = gpm->newest_ns;

	*graphics_ns = 0;
	*result = gpm->nvml->gpm_sample(handle, gpm->readings[next]);
	if (*result != NVML_SUCCESS) {
		begin_anew(gpm);
		return false;
	}
	gpm->newest = next;
	gpm->newest_ns = gpu_clock_ns();
	if (gpm->newest_ns - before_ns > pause_ns)
		begin_anew(gpm);
	if (gpm->n < READINGS_LEFT_OUT) {
		gpm->n++;
		return false;
	}
	*result = ask_for_most(gpm, before);
	sample->source = GPU_METRICS_GPM;
	sample->begin_ns = before_ns;
	sample->end_ns = gpm->newest_ns;
	if (*result != NVML_SUCCESS || !take_values(&gpm->query, sample))
		return false;
	if (graphics_are_due(gpm))
		*graphics_ns = ask_for_graphics(gpm, before, before_ns);
	sample->value[GPU_METRIC_GRAPHICS] = gpm->last_graphics;
	return true;
}
