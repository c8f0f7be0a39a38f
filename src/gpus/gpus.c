// SPDX-License-Identifier: MIT
#include "gpus/gpus.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"
#include "gpus/nvml.h"
#include "gpus/smi.h"

#define END_PATIENCE_NS 500000000ull
#define SMI_WAIT_MS     200

struct gpus {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a sample came, or the end is wanted */
	uint64_t interval_ns;
	bool end, any;
	struct gpus_sample shown, next; /* the thread alone writes `next` */
};

int64_t gpus_process_bytes(const struct gpus_sample *sample, uint32_t pid)
{
	for (size_t i = 0; i < sample->n_processes; i++) {
		if (sample->processes[i].pid == pid)
			return (int64_t)sample->processes[i].bytes;
	}
	return GPU_UNKNOWN;
}

static struct timespec after(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return t;
}

/* What there is to ask: NVML, else nvidia-smi, else /proc. */
struct source {
	struct nvml *nvml;
	struct smi *smi;
};

static void open_source(struct gpus *gpus, struct source *source)
{
	struct gpus_sample *next = &gpus->next;

	source->nvml = nvml_open(next->why, sizeof(next->why));
	if (!source->nvml && nvml_is_static())
		source->smi = smi_open(NULL, gpus->interval_ns);
}

static void close_source(struct source *source)
{
	nvml_close(source->nvml);
	smi_close(source->smi);
}

/* Whether there is something to show: nvidia-smi takes its time for its first lines. */
static bool ask(struct gpus *gpus, struct source *source)
{
	if (source->nvml) {
		nvml_sample(source->nvml, &gpus->next);
	} else if (!source->smi) {
		gpus_from_proc(&gpus->next);
	} else if (smi_read(source->smi, SMI_WAIT_MS, &gpus->next)) {
		if (!gpus->next.n)
			return false;
		gpus->next.why[0] = '\0';
	} else {
		smi_close(source->smi);
		source->smi = NULL;
		gpus_from_proc(&gpus->next);
		snprintf(gpus->next.why, sizeof(gpus->next.why),
		         "no GPU figures: nvidia-smi ended (does it work by itself?)");
	}
	return true;
}

/* Returns at once where the first sample is still being waited for. */
static void wait_interval(struct gpus *gpus)
{
	struct timespec until = after(gpus->interval_ns);
	int waited = 0;

	while (gpus->any && !gpus->end && waited != ETIMEDOUT)
		waited = pthread_cond_timedwait(&gpus->changed, &gpus->lock, &until);
}

static void *work(void *data)
{
	struct gpus *gpus = data;
	struct source source = { 0 };
	bool any;

	open_source(gpus, &source);
	pthread_mutex_lock(&gpus->lock);
	while (!gpus->end) {
		pthread_mutex_unlock(&gpus->lock);
		any = ask(gpus, &source);
		pthread_mutex_lock(&gpus->lock);
		if (any) {
			gpus->shown = gpus->next;
			gpus->any = true;
			pthread_cond_broadcast(&gpus->changed);
		}
		wait_interval(gpus);
	}
	pthread_mutex_unlock(&gpus->lock);
	close_source(&source);
	return NULL;
}

struct gpus *gpus_new(uint64_t interval_ns)
{
	struct gpus *gpus = xcalloc(1, sizeof(*gpus));
	pthread_condattr_t attr;
	sigset_t all, old;

	gpus->interval_ns = interval_ns;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&gpus->changed, &attr);
	pthread_mutex_init(&gpus->lock, NULL);
	sigfillset(&all); /* signals are for the thread that reads them */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&gpus->thread, NULL, work, gpus)) {
		free(gpus);
		gpus = NULL;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return gpus;
}

bool gpus_read(struct gpus *gpus, uint64_t patience_ns, struct gpus_sample *into)
{
	struct timespec until = after(patience_ns);
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
	struct timespec until;

	if (!gpus)
		return;
	pthread_mutex_lock(&gpus->lock);
	gpus->end = true;
	pthread_cond_broadcast(&gpus->changed);
	pthread_mutex_unlock(&gpus->lock);
	until = after(END_PATIENCE_NS);
	if (pthread_clockjoin_np(gpus->thread, NULL, CLOCK_MONOTONIC, &until))
		return; /* it may come back to this memory */
	pthread_cond_destroy(&gpus->changed);
	pthread_mutex_destroy(&gpus->lock);
	free(gpus);
}
