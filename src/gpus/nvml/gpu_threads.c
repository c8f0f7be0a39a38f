// SPDX-License-Identifier: MIT
#include "gpus/nvml/gpu_threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "base/clock.h"
#include "gpus/nvml/nvml.h"
#include "gpus/nvml/pm.h"

void send_message(struct nvml_message *message)
{
	ssize_t n;

	message->head.magic = NVML_WIRE_MAGIC;
	do
		n = send(NVML_WIRE_SOCKET, message, nvml_message_bytes(message->head.kind),
		         MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		_exit(1);
}

#define TRY_AGAIN_NS 10000000000ull
#define STUCK_NS     10000000000ull

struct gpu_thread {
	struct gpu_threads *threads;
	struct gpu_reader *reader;
	uint32_t index;
	uint64_t since_ns; /* of the reading that is under way; 0: none */
	struct nvml_message message;
};

struct gpu_threads {
	enum nvml_wanted wanted;
	uint64_t interval_ns;
	const char *folders;
	pthread_mutex_t lock; /* of all below */
	uint64_t opening_ns;  /* since when NVML has been loading; 0: it is not */
	char why[256], driver[96];
	uint32_t n;
	struct gpu_thread gpus[GPUS_MAX];
};

static bool start(void *(*work)(void *), void *data)
{
	pthread_t thread;
	AT_END(pthread_attr_destroy) pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	return pthread_create(&thread, &attr, work, data) == 0;
}

static void sleep_until(uint64_t ns)
{
	struct timespec until = clock_timespec(ns);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* The next moment after now, with those that were missed in *late. */
static uint64_t next_moment(uint64_t last_ns, uint64_t interval_ns, uint64_t *late)
{
	uint64_t now_ns = clock_now_ns(), next_ns = last_ns + interval_ns;

	*late = now_ns > next_ns ? (now_ns - next_ns) / interval_ns : 0;
	next_ns += *late * interval_ns;
	if (next_ns < now_ns + interval_ns / 2) { /* means of less are not right */
		next_ns += interval_ns;
		++*late;
	}
	return next_ns;
}

/* ---- a GPU --------------------------------------------------------------------------------- */

static void read_state(struct gpu_thread *gpu)
{
	gpu->message.head.kind = NVML_MESSAGE_STATE;
	gpu_reader_state(gpu->reader, gpu->threads->interval_ns, &gpu->message.state);
}

static void read_sample(struct gpu_thread *gpu, uint64_t late)
{
	struct nvml_sample *sample = &gpu->message.sample;
	uint64_t begin_ns = clock_now_ns(), cpu_begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);

	*sample = (struct nvml_sample){ .index = gpu->index, .late = late };
	gpu->message.head.kind = NVML_MESSAGE_SAMPLE;
	sample->any = gpu_reader_metrics(gpu->reader, gpu->threads->interval_ns, &sample->sample,
	                                 &sample->graphics_ns);
	sample->source = gpu_reader_source(gpu->reader);
	sample->cpu_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin_ns;
	sample->reading_ns = clock_now_ns() - begin_ns;
}

static void note_since(struct gpu_thread *gpu, uint64_t since_ns)
{
	LOCKED(&gpu->threads->lock);
	gpu->since_ns = since_ns;
}

static void *read_gpu(void *data)
{
	struct gpu_thread *gpu = data;
	uint64_t next_ns = clock_now_ns(), late = 0;

	for (;;) {
		note_since(gpu, clock_now_ns());
		if (gpu->threads->wanted == NVML_WANTED_STATES)
			read_state(gpu);
		else
			read_sample(gpu, late);
		note_since(gpu, 0);
		send_message(&gpu->message);
		next_ns = next_moment(next_ns, gpu->threads->interval_ns, &late);
		sleep_until(next_ns);
	}
	return NULL;
}

/* ---- NVML ---------------------------------------------------------------------------------- */

/* Returns how many there are, with the sentence in `why` where that is none, or too many. */
static unsigned count_gpus(struct nvml *nvml, char *why, size_t size)
{
	unsigned count = 0;
	int result = nvml->count(&count);

	if (result != NVML_SUCCESS) {
		snprintf(why, size, NVML_LIBRARY ": %s", nvml_error(nvml, result));
		return 0;
	}
	if (!count)
		snprintf(why, size, "no GPU figures: the driver knows no GPU");
	if (count > GPUS_MAX)
		snprintf(why, size, "%u more GPUs are not shown", count - GPUS_MAX);
	return count < GPUS_MAX ? count : GPUS_MAX;
}

static void start_gpu(struct gpu_threads *threads, const struct nvml *nvml, uint32_t index)
{
	struct gpu_thread *gpu = &threads->gpus[index];

	gpu->threads = threads;
	gpu->index = index;
	gpu_state_unknown(&gpu->message.state, index);
	gpu->reader = gpu_reader_new(nvml, index);
	if (!start(read_gpu, gpu))
		gpu_reader_free(gpu->reader);
}

/* One try; NULL where there is nothing to read. */
static struct nvml *open_gpus(struct gpu_threads *threads)
{
	char why[256] = "", driver[96] = "";
	struct nvml *nvml = nvml_open(threads->folders, why, sizeof(why));
	unsigned count = nvml ? count_gpus(nvml, why, sizeof(why)) : 0;

	if (nvml && nvml->driver)
		nvml->driver(driver, sizeof(driver));
	driver[sizeof(driver) - 1] = '\0';
	if (nvml && !count) {
		nvml_close(nvml);
		nvml = NULL;
	}
	LOCKED(&threads->lock);
	snprintf(threads->why, sizeof(threads->why), "%s", why);
	snprintf(threads->driver, sizeof(threads->driver), "%s", driver);
	threads->n = count;
	threads->opening_ns = 0;
	return nvml;
}

static void send_beat(struct gpu_threads *threads)
{
	struct nvml_message message = { .head.kind = NVML_MESSAGE_BEAT };

	gpu_threads_beat(threads, &message.beat);
	send_message(&message);
}

/* All GPUs, one after the other, on the thread that loaded NVML. */
static void read_all(struct gpu_threads *threads, struct nvml *nvml)
{
	struct nvml_message *message = xcalloc(1, sizeof(*message));
	uint64_t next_ns = clock_now_ns(), late;

	message->head.kind = NVML_MESSAGE_GPUS;
	for (;;) {
		message->gpus.why[0] = '\0';
		nvml_sample(nvml, &message->gpus);
		send_message(message);
		next_ns = next_moment(next_ns, threads->interval_ns, &late);
		sleep_until(next_ns);
	}
}

static void *open_nvml(void *data)
{
	struct gpu_threads *threads = data;
	struct nvml *nvml;

	while (!(nvml = open_gpus(threads))) {
		send_beat(threads);
		sleep_until(clock_now_ns() + TRY_AGAIN_NS);
		LOCKED(&threads->lock);
		threads->opening_ns = clock_now_ns();
	}
	send_beat(threads);
	if (threads->wanted == NVML_WANTED_GPUS)
		read_all(threads, nvml);
	for (uint32_t i = 0; i < threads->n; i++)
		start_gpu(threads, nvml, i);
	return NULL;
}

/* ---- stretches ----------------------------------------------------------------------------- */

static void note_sampling(struct gpu_threads *threads, uint32_t n, const char *why)
{
	LOCKED(&threads->lock);
	threads->n = n;
	snprintf(threads->why, sizeof(threads->why), "%s", why);
	threads->opening_ns = 0;
}

/* All GPUs, one after the other: CUPTI's functions are called on one thread. */
static void sample_on(struct gpu_threads *threads, struct pm_sampling *sampling, char *why,
                      size_t size)
{
	uint64_t next_ns = clock_now_ns(), late;

	for (;;) {
		for (uint32_t i = 0; i < pm_sampling_all(sampling); i++) {
			note_since(&threads->gpus[i], clock_now_ns());
			pm_sampling_turn(sampling, i, why, size);
			note_since(&threads->gpus[i], 0);
		}
		if (pm_sampling_gpus(sampling) == pm_sampling_all(sampling))
			*why = '\0';
		note_sampling(threads, pm_sampling_gpus(sampling), why);
		next_ns = next_moment(next_ns, PM_SAMPLING_TURN_NS, &late);
		sleep_until(next_ns);
	}
}

static void *sample_gpus(void *data)
{
	struct gpu_threads *threads = data;
	struct pm_sampling *sampling;
	char why[256] = "";

	for (uint32_t i = 0; i < GPUS_MAX; i++)
		threads->gpus[i].threads = threads;
	while (!(sampling = pm_sampling_new(threads->folders, threads->interval_ns, why,
	                                    sizeof(why)))) {
		note_sampling(threads, 0, why);
		send_beat(threads);
		sleep_until(clock_now_ns() + TRY_AGAIN_NS);
	}
	note_sampling(threads, pm_sampling_gpus(sampling), why);
	send_beat(threads);
	sample_on(threads, sampling, why, sizeof(why));
	return NULL;
}

struct gpu_threads *gpu_threads_start(enum nvml_wanted wanted, uint64_t interval_ns,
                                      const char *folders)
{
	struct gpu_threads *threads = xcalloc(1, sizeof(*threads));

	threads->wanted = wanted;
	threads->interval_ns = interval_ns;
	threads->folders = folders;
	threads->opening_ns = clock_now_ns();
	pthread_mutex_init(&threads->lock, NULL);
	if (start(wanted == NVML_WANTED_STRETCHES ? sample_gpus : open_nvml, threads))
		return threads;
	free(threads);
	return NULL;
}

/* One thread for all: where it hangs there is nothing any more. NVML's GPUs hang one by one. */
bool gpu_threads_are_stuck(struct gpu_threads *threads)
{
	uint64_t now_ns;
	bool stuck = false;

	LOCKED(&threads->lock);
	now_ns = clock_now_ns(); /* of the time before the lock a reading may begin after it */
	for (uint32_t i = 0; i < GPUS_MAX && threads->wanted == NVML_WANTED_STRETCHES; i++)
		stuck |= threads->gpus[i].since_ns && now_ns - threads->gpus[i].since_ns > STUCK_NS;
	return stuck;
}

void gpu_threads_beat(struct gpu_threads *threads, struct nvml_beat *beat)
{
	uint64_t ns;

	pthread_mutex_lock(&threads->lock);
	ns = threads->opening_ns ? clock_now_ns() - threads->opening_ns : 0;
	beat->n = threads->n;
	for (uint32_t i = 0; i < GPUS_MAX; i++)
		beat->since_ns[i] = threads->gpus[i].since_ns;
	snprintf(beat->why, sizeof(beat->why), "%s", threads->why);
	snprintf(beat->driver, sizeof(beat->driver), "%s", threads->driver);
	pthread_mutex_unlock(&threads->lock);
	if (ns >= GPU_LATE_NS)
		snprintf(beat->why, sizeof(beat->why),
		         "no GPU figures: " NVML_LIBRARY " has not answered for %lu s",
		         (ns / 1000000000));
}
