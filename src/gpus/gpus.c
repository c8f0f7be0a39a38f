// SPDX-License-Identifier: MIT
#include "gpus/gpus.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "gpus/gpu_clock.h"
#include "gpus/nvml_process.h"

struct gpus {
	struct nvml_process *process;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a sample came */
	bool any;
	struct gpus_sample shown;
};

int64_t gpus_process_bytes(const struct gpus_sample *sample, uint32_t pid)
{
	for (size_t i = 0; i < sample->n_processes; i++) {
		if (sample->processes[i].pid == pid)
			return (int64_t)sample->processes[i].bytes;
	}
	return GPU_UNKNOWN;
}

/* Without NVML: what /proc tells, with the reason. */
static void show_without(struct gpus *gpus, const char *why)
{
	gpus_from_proc(&gpus->shown);
	snprintf(gpus->shown.why, sizeof(gpus->shown.why), "%s", why);
	gpus->any = true;
}

static void take(void *data, const struct nvml_message *message)
{
	struct gpus *gpus = data;

	pthread_mutex_lock(&gpus->lock);
	if (message->head.kind == NVML_MESSAGE_GPUS) {
		gpus->shown = message->gpus;
		gpus->any = true;
	} else if (!message->beat.n && *message->beat.why) {
		show_without(gpus, message->beat.why);
	}
	pthread_cond_broadcast(&gpus->changed);
	pthread_mutex_unlock(&gpus->lock);
}

static void gone(void *data, const char *why)
{
	struct gpus *gpus = data;

	pthread_mutex_lock(&gpus->lock);
	show_without(gpus, why);
	pthread_cond_broadcast(&gpus->changed);
	pthread_mutex_unlock(&gpus->lock);
}

struct gpus *gpus_new(uint64_t interval_ns)
{
	struct gpus *gpus = xcalloc(1, sizeof(*gpus));
	const struct nvml_listener listener = { .take = take, .gone = gone, .data = gpus };
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&gpus->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&gpus->lock, NULL);
	gpus->process = nvml_process_new(NVML_WANTED_GPUS, interval_ns, &listener);
	if (gpus->process)
		return gpus;
	gpus_free(gpus);
	return NULL;
}

bool gpus_read(struct gpus *gpus, uint64_t patience_ns, struct gpus_sample *into)
{
	struct timespec until = gpu_clock_timespec(gpu_clock_ns() + patience_ns);
	bool any;

	if (!gpus)
		return false;
	pthread_mutex_lock(&gpus->lock);
	while (!gpus->any && patience_ns &&
	       pthread_cond_timedwait(&gpus->changed, &gpus->lock, &until) != ETIMEDOUT)
		;
	any = gpus->any;
	if (any)
		*into = gpus->shown;
	pthread_mutex_unlock(&gpus->lock);
	return any;
}

void gpus_free(struct gpus *gpus)
{
	if (!gpus)
		return;
	nvml_process_free(gpus->process);
	pthread_cond_destroy(&gpus->changed);
	pthread_mutex_destroy(&gpus->lock);
	free(gpus);
}
