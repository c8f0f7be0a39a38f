// SPDX-License-Identifier: MIT
#include "gpus/gpu_sampler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "base/clock.h"
#include "gpus/nvml_process.h"

#define ROOM         2048  /* samples: 12 s of 16 GPUs, ten times a second */
#define STRETCHES    32768 /* the same: 3 s of what one GPU can have at most */
#define FIRST_OF_GPU 2     /* readings that give nothing: see nvml.c */
#define LATE_SHOWN   5     /* moments without a reading that is told of */

/* Of one GPU, until the mean of their second is known: 20 a second, and what came early. */
#define PENDING_MOST 32

struct pending {
	struct gpu_metrics_sample of[PENDING_MOST];
	size_t n;
};

struct gpu_sampler {
	struct nvml_process *process;
	uint64_t interval_ns;
	size_t room;
	pthread_mutex_t lock; /* of all below */
	struct gpu_sampler_figures figures;
	struct gpu_metrics_sample *kept; /* `room` of them, a ring */
	size_t first, n;
	struct pending pending[GPUS_MAX];
	uint64_t readings[GPUS_MAX]; /* of the process that runs */
	uint64_t last_ns[GPUS_MAX];  /* of the last reading that was told of; 0: none was */
	bool no_source;              /* a GPU tells neither */
	char why[256];
};

static void keep(struct gpu_sampler *sampler, const struct gpu_metrics_sample *sample)
{
	sampler->figures.gpm += sample->source == GPU_METRICS_GPM;
	sampler->figures.utilization += sample->source == GPU_METRICS_UTILIZATION;
	sampler->figures.stretches += sample->source == GPU_METRICS_STRETCHES;
	if (sampler->n == sampler->room) {
		sampler->figures.dropped++;
		return;
	}
	sampler->kept[(sampler->first + sampler->n) % sampler->room] = *sample;
	sampler->n++;
}

/* Their second is over: graphics was `value` since `since_ns`, and is not known of before. */
static void settle(struct gpu_sampler *sampler, size_t index, int64_t value, uint64_t since_ns)
{
	struct pending *pending = &sampler->pending[index];

	for (size_t i = 0; i < pending->n; i++) {
		struct gpu_metrics_sample *sample = &pending->of[i];

		sample->value[GPU_METRIC_GRAPHICS] =
			sample->end_ns > since_ns ? value : GPU_METRIC_UNKNOWN;
		keep(sampler, sample);
	}
	pending->n = 0;
}

static void settle_all(struct gpu_sampler *sampler)
{
	for (size_t i = 0; i < GPUS_MAX; i++)
		settle(sampler, i, GPU_METRIC_UNKNOWN, 0);
}

static void take_sample(struct gpu_sampler *sampler, const struct nvml_sample *told)
{
	struct pending *pending = &sampler->pending[told->index];

	if (told->sample.source != GPU_METRICS_GPM) {
		keep(sampler, &told->sample);
		return;
	}
	if (pending->n == PENDING_MOST)
		settle(sampler, told->index, GPU_METRIC_UNKNOWN, 0);
	pending->of[pending->n++] = told->sample;
	if (told->graphics_ns)
		settle(sampler, told->index, told->sample.value[GPU_METRIC_GRAPHICS],
		       told->graphics_ns);
}

/* Moments between two processes. */
static uint64_t missed(const struct gpu_sampler *sampler, uint32_t index, uint64_t now_ns)
{
	uint64_t last_ns = sampler->last_ns[index];

	return last_ns && now_ns > last_ns ? (now_ns - last_ns) / sampler->interval_ns : 0;
}

static void take_reading(struct gpu_sampler *sampler, const struct nvml_sample *told)
{
	struct gpu_sampler_figures *figures = &sampler->figures;
	uint64_t now_ns = clock_now_ns(), *readings = &sampler->readings[told->index];

	figures->late += *readings ? told->late : missed(sampler, told->index, now_ns);
	figures->cpu_ns += told->cpu_ns;
	figures->reading_ns += told->reading_ns;
	sampler->no_source = told->source == GPU_METRICS_NONE;
	if (told->any)
		take_sample(sampler, told);
	else if (*readings >= FIRST_OF_GPU)
		figures->none++;
	++*readings;
	sampler->last_ns[told->index] = now_ns;
}

static void take_stretch(struct gpu_sampler *sampler, uint32_t gpu, const struct gpu_stretch *of)
{
	struct gpu_metrics_sample sample = { .gpu = gpu,
		                             .source = GPU_METRICS_STRETCHES,
		                             .begin_ns = of->begin_ns,
		                             .end_ns = of->end_ns };

	for (size_t i = 0; i < GPU_METRICS; i++)
		sample.value[i] = GPU_METRIC_UNKNOWN;
	sample.value[GPU_METRIC_BUSY] = of->busy;
	sample.value[GPU_METRIC_MEMORY_BUSY] = of->copies;
	sample.value[GPU_METRIC_SM] = of->sm;
	sample.value[GPU_METRIC_TENSOR] = of->tensor;
	sample.value[GPU_METRIC_DRAM] = of->dram;
	keep(sampler, &sample);
}

static void take_stretches(struct gpu_sampler *sampler, const struct nvml_stretches *told)
{
	struct gpu_sampler_figures *figures = &sampler->figures;

	figures->samples += told->samples;
	figures->lost += told->lost;
	figures->cpu_ns += told->cpu_ns;
	if (told->interval_ns > figures->interval_ns)
		figures->interval_ns = told->interval_ns;
	if (told->n && told->clock_error_ns > figures->clock_error_ns)
		figures->clock_error_ns = told->clock_error_ns;
	for (uint32_t i = 0; i < told->n; i++)
		take_stretch(sampler, told->index, &told->of[i]);
}

static void take(void *data, const struct nvml_message *message)
{
	struct gpu_sampler *sampler = data;

	LOCKED(&sampler->lock);
	if (message->head.kind == NVML_MESSAGE_SAMPLE)
		take_reading(sampler, &message->sample);
	else if (message->head.kind == NVML_MESSAGE_STRETCHES)
		take_stretches(sampler, &message->stretches);
	else
		snprintf(sampler->why, sizeof(sampler->why), "%s", message->beat.why);
}

static void gone(void *data, const char *why)
{
	struct gpu_sampler *sampler = data;

	LOCKED(&sampler->lock);
	snprintf(sampler->why, sizeof(sampler->why), "%s", why);
	for (size_t i = 0; i < GPUS_MAX; i++)
		sampler->readings[i] = 0;
	settle_all(sampler);
}

/* Those of a reading that is under way count already: one that hangs may never end. */
static uint64_t missed_now(const struct gpu_sampler *sampler, uint32_t index)
{
	uint64_t moments = missed(sampler, index, clock_now_ns());

	return moments > LATE_SHOWN ? moments - 1 : 0;
}

static void free_sampler(struct gpu_sampler *sampler)
{
	pthread_mutex_destroy(&sampler->lock);
	free(sampler->kept);
	free(sampler);
}

struct gpu_sampler *gpu_sampler_new(enum gpu_sampling what, uint64_t interval_ns)
{
	struct gpu_sampler *sampler = xcalloc(1, sizeof(*sampler));
	const struct nvml_listener listener = { .take = take, .gone = gone, .data = sampler };

	sampler->interval_ns = interval_ns;
	sampler->room = what == GPU_SAMPLING_STRETCHES ? STRETCHES : ROOM;
	sampler->kept = xcalloc(sampler->room, sizeof(*sampler->kept));
	pthread_mutex_init(&sampler->lock, NULL);
	sampler->process = nvml_process_new(what == GPU_SAMPLING_STRETCHES ? NVML_WANTED_STRETCHES
	                                                                   : NVML_WANTED_SAMPLES,
	                                    interval_ns, &listener);
	if (sampler->process)
		return sampler;
	free_sampler(sampler);
	return NULL;
}

bool gpu_sampler_take(struct gpu_sampler *sampler, struct gpu_metrics_sample *sample)
{
	bool any;

	LOCKED(&sampler->lock);
	any = sampler->n > 0;
	if (any) {
		*sample = sampler->kept[sampler->first];
		sampler->first = (sampler->first + 1) % sampler->room;
		sampler->n--;
	}
	return any;
}

void gpu_sampler_settle(struct gpu_sampler *sampler)
{
	LOCKED(&sampler->lock);
	settle_all(sampler);
}

void gpu_sampler_figures(struct gpu_sampler *sampler, struct gpu_sampler_figures *figures)
{
	LOCKED(&sampler->lock);
	*figures = sampler->figures;
	for (uint32_t i = 0; i < GPUS_MAX; i++) /* of one that hangs, or is not told of now */
		figures->late += missed_now(sampler, i);
}

void gpu_sampler_why(struct gpu_sampler *sampler, char *text, size_t size)
{
	LOCKED(&sampler->lock);
	snprintf(text, size, "%s", sampler->why);
	if (!*text && sampler->no_source)
		snprintf(text, size, "this GPU tells neither GPM nor its utilisation");
}

void gpu_sampler_free(struct gpu_sampler *sampler)
{
	if (!sampler)
		return;
	nvml_process_free(sampler->process);
	free_sampler(sampler);
}
