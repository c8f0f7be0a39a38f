// SPDX-License-Identifier: MIT
#include "gpus/gpus.h"

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "base/clock.h"
#include "gpus/nvml_process.h"

/* What is known of GPUs without NVML. */

/*
 * "Model: \t\t NVIDIA H200" is a line of the file. The UUID of a GPU that sleeps has question
 * marks: then it is not known.
 */
static bool read_information(const char *path, struct gpu *gpu)
{
	FILE *file = fopen(path, "re");
	char line[160];
	bool found = false;

	while (file && fgets(line, sizeof(line), file)) {
		found |= sscanf(line, "Model: %95[^\n]", gpu->name) == 1;
		sscanf(line, "GPU UUID: %47s", gpu->uuid);
		sscanf(line, "Bus Location: %31s", gpu->bus);
	}
	if (strchr(gpu->uuid, '?'))
		gpu->uuid[0] = '\0';
	if (file)
		fclose(file);
	return found;
}

/* Names, UUIDs and places only, of what /proc/driver/nvidia lists. */
static void gpus_from_proc(struct gpus_sample *sample)
{
	AT_END(globfree) glob_t found = { 0 };

	sample->n = sample->n_processes = 0;
	sample->processes_cut = 1;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc && sample->n < GPUS_MAX; i++) {
			sample->gpus[sample->n] = gpu_unknown;
			sample->n += read_information(found.gl_pathv[i], &sample->gpus[sample->n]);
		}
	}
}

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
	gpus->shown.read_ns = 0;
	snprintf(gpus->shown.why, sizeof(gpus->shown.why), "%s", why);
	gpus->any = true;
}

static void take(void *data, const struct nvml_message *message)
{
	struct gpus *gpus = data;

	LOCKED(&gpus->lock);
	if (message->head.kind == NVML_MESSAGE_GPUS) {
		gpus->shown = message->gpus;
		gpus->shown.read_ns = clock_now_ns();
		gpus->any = true;
	} else if (!message->beat.n && *message->beat.why) {
		show_without(gpus, message->beat.why);
	}
	pthread_cond_broadcast(&gpus->changed);
}

static void gone(void *data, const char *why)
{
	struct gpus *gpus = data;

	LOCKED(&gpus->lock);
	show_without(gpus, why);
	pthread_cond_broadcast(&gpus->changed);
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
	struct timespec until = clock_timespec(clock_now_ns() + patience_ns);
	bool any;

	if (!gpus)
		return false;
	LOCKED(&gpus->lock);
	while (!gpus->any && patience_ns &&
	       pthread_cond_timedwait(&gpus->changed, &gpus->lock, &until) != ETIMEDOUT)
		;
	any = gpus->any;
	if (any)
		*into = gpus->shown;
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
