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

struct gpm {
	const struct nvml *nvml;
	gpm_handle readings[2];
	unsigned newest;
	unsigned n; /* readings since a pause, up to READINGS_LEFT_OUT */
	uint64_t newest_ns;
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
	if (nvml->gpm_alloc(&gpm->readings[0]) == NVML_SUCCESS &&
	    nvml->gpm_alloc(&gpm->readings[1]) == NVML_SUCCESS)
		return gpm;
	gpm_close(gpm);
	return NULL;
}

void gpm_close(struct gpm *gpm)
{
	if (!gpm)
		return;
	for (size_t i = 0; i < 2; i++) {
		if (gpm->readings[i])
			gpm->nvml->gpm_free(gpm->readings[i]);
	}
	free(gpm);
}

static void ask_for_all(struct gpm_metrics *query)
{
	query->version = VERSION;
	query->n = 0;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		if (gpu_metric_info(i)->gpm)
			query->metrics[query->n++] =
				(struct gpm_metric){ .id = gpu_metric_info(i)->gpm };
	}
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
		if (!info->gpm)
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

bool gpm_read(struct gpm *gpm, gpu_handle handle, uint64_t pause_ns,
              struct gpu_metrics_sample *sample, int *result)
{
	unsigned next = !gpm->newest;
	uint64_t before_ns = gpm->newest_ns, now_ns;

	*result = gpm->nvml->gpm_sample(handle, gpm->readings[next]);
	now_ns = gpu_clock_ns();
	if (*result != NVML_SUCCESS) {
		gpm->n = 0;
		return false;
	}
	if (now_ns - before_ns > pause_ns)
		gpm->n = 0;
	gpm->newest = next;
	gpm->newest_ns = now_ns;
	if (gpm->n < READINGS_LEFT_OUT) {
		gpm->n++;
		return false;
	}
	ask_for_all(&gpm->query);
	gpm->query.first = gpm->readings[!next];
	gpm->query.second = gpm->readings[next];
	*result = gpm->nvml->gpm_metrics(&gpm->query);
	sample->source = GPU_METRICS_GPM;
	sample->begin_ns = before_ns;
	sample->end_ns = now_ns;
	return *result == NVML_SUCCESS && take_values(&gpm->query, sample);
}
