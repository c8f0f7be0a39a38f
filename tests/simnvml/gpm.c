// SPDX-License-Identifier: MIT
/*
 * GPU performance metrics: "gpm" 0 is a GPU without them, "gpm.5 93.5" is metric 5. As on an H200,
 * the first pair of samples after a pause tells 0 and no number. With "gpm.1.span 1" metric 1 tells
 * how far apart the two samples are: 50 is a second.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "settings.h"

#define PAUSE_S 3

struct sample {
	struct device *device;
	double taken_s;
	bool first; /* since a pause */
};

struct support {
	unsigned version, supported;
};

struct metric {
	unsigned id;
	int result;
	double value;
	const char *short_name, *long_name, *unit;
};

struct metrics {
	unsigned version, n;
	struct sample *first, *second;
	struct metric metrics[];
};

int nvmlGpmQueryDeviceSupport(void *device, struct support *support);
int nvmlGpmSampleAlloc(struct sample **sample);
int nvmlGpmSampleFree(struct sample *sample);
int nvmlGpmSampleGet(void *device, struct sample *sample);
int nvmlGpmMetricsGet(struct metrics *metrics);

static double last_s[GPUS_MOST];

int nvmlGpmQueryDeviceSupport(void *device, struct support *support)
{
	int result = answer(device, "gpm_support");

	if (support->version != 1)
		return INVALID_ARGUMENT;
	support->supported = setting(device, "gpm", 1) != 0;
	return result;
}

int nvmlGpmSampleAlloc(struct sample **sample)
{
	*sample = calloc(1, sizeof(**sample));
	return SUCCESS;
}

int nvmlGpmSampleFree(struct sample *sample)
{
	free(sample);
	return SUCCESS;
}

int nvmlGpmSampleGet(void *device, struct sample *sample)
{
	int result = answer(device, "gpm_sample");
	struct timespec now;
	double *last;

	if (result != SUCCESS)
		return result;
	clock_gettime(CLOCK_MONOTONIC, &now);
	sample->device = device;
	sample->taken_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	last = &last_s[sample->device->index];
	sample->first = sample->taken_s - *last > PAUSE_S;
	*last = sample->taken_s;
	return SUCCESS;
}

static double default_value(const struct device *device, unsigned id)
{
	switch (id) {
	case 1:
		return 90 + device->index;
	case 2:
		return 80 + device->index;
	case 3:
		return 14;
	case 5:
		return 60;
	case 10:
		return 30;
	case 20:
	case 21:
		return 100 + id;
	case 60:
	case 61:
		return 1000 + id;
	default:
		return id;
	}
}

int nvmlGpmMetricsGet(struct metrics *metrics)
{
	const struct device *device = metrics->second->device;
	int result = answer(device, "gpm_metrics");

	if (metrics->version != 1 || metrics->second->taken_s < metrics->first->taken_s)
		return INVALID_ARGUMENT;
	for (unsigned i = 0; i < metrics->n && result == SUCCESS; i++) {
		struct metric *metric = &metrics->metrics[i];
		char name[32], fail[40];

		snprintf(name, sizeof(name), "gpm.%u", metric->id);
		snprintf(fail, sizeof(fail), "fail.%s", name);
		metric->result = (int)setting(device, fail, SUCCESS);
		metric->value = setting(device, name, default_value(device, metric->id));
		if (metric->id == 1 && setting(device, "gpm.1.span", 0) != 0)
			metric->value = 50 * (metrics->second->taken_s - metrics->first->taken_s);
		if (metrics->first->first)
			metric->value = metric->id < 10 ? 0 : NAN;
	}
	return result;
}
