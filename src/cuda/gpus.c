// SPDX-License-Identifier: MIT
#include "cuda/gpus.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"
#include "cuda/nvml.h"

#define END_PATIENCE_NS 500000000ull

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

static void sample(struct gpus *gpus, struct nvml *nvml)
{
	if (nvml)
		nvml_sample(nvml, &gpus->next);
	else
		gpus_from_proc(&gpus->next);
}

static void *work(void *data)
{
	struct gpus *gpus = data;
	struct nvml *nvml = nvml_open(gpus->next.why, sizeof(gpus->next.why));
	struct timespec until;
	int waited;

	pthread_mutex_lock(&gpus->lock);
	while (!gpus->end) {
		pthread_mutex_unlock(&gpus->lock);
		sample(gpus, nvml);
		pthread_mutex_lock(&gpus->lock);
		gpus->shown = gpus->next;
		gpus->any = true;
		pthread_cond_broadcast(&gpus->changed);
		until = after(gpus->interval_ns);
		for (waited = 0; !gpus->end && waited != ETIMEDOUT;)
			waited = pthread_cond_timedwait(&gpus->changed, &gpus->lock, &until);
	}
	pthread_mutex_unlock(&gpus->lock);
	nvml_close(nvml);
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
