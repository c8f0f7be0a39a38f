// SPDX-License-Identifier: MIT
/*
 * All GPUs sampled, as stretches by the time of this machine, within a bound of CPU: readings and
 * samples become fewer where they cost more.
 */
#include "gpus/nvml/pm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/xalloc.h"
#include "base/clock.h"
#include "base/order.h"
#include "gpus/nvml/gpu_threads.h"

#define CPU_MOST    0.08        /* of a CPU, of all GPUs together */
#define LONGEST_NS  10000000ull /* between two samples: more tells too little */
#define TURNS_NS    50000000ull /* between two readings, each of which decodes for 0.8 ms */
#define TURNS_MOST  4           /* times as much, where there are several GPUs */
#define JUDGED_NS   500000000ull
#define BEHIND_NS   1500000000ull  /* with more to read all the time: it does not keep up */
#define AGAIN_NS    10000000000ull /* after one has failed */
#define CLOCK_TURNS 20             /* readings until times are good */
#define CLOCK_KEPT  100            /* the last ones */
#define CLOCK_OFF   50000ull       /* that times can be wrong by, and an eighth of the distance */
#define LOOKS_NS    45000ull       /* from when a decoding begins until it looks what there is */
#define GOLDEN      0.6180339887   /* multiples of it are spread evenly */

/*
 * What is to be added to the GPU's times, which run as fast as this machine's (H200, CUPTI 13.0: by
 * 8 us a second slower than %globaltimer, and 0.3 ms behind it). A decoding has all samples that
 * ended until it looks, and since the last one half of what lies between two has gone by on
 * average. The mean of the middle half is taken: where something took the CPU away in between, a
 * difference is as much too small.
 */
struct offset {
	int64_t of[CLOCK_KEPT]; /* of readings, a ring */
	unsigned turns;         /* readings there ever were */
	int64_t is;
	uint64_t error_ns;
};

struct sampled {
	struct pm_gpu *gpu; /* NULL: it is not sampled */
	uint64_t interval_ns, again_ns;
	uint64_t next_ns; /* when it is read again */
	struct offset offset;
	struct stretches stretches;
	uint64_t told_ns; /* up to where, by this machine's time */
	uint64_t last_ns; /* the end of the last sample, by the GPU's */
	uint64_t judged_ns, judged_samples, judged_cpu_ns;
	uint64_t drained_ns; /* when all that there was had been read */
	struct nvml_message message;
};

struct pm_sampling {
	struct pm *pm;
	uint32_t n, n_sampled;
	struct sampled of[GPUS_MAX];
};

/* ---- time ---------------------------------------------------------------------------------- */

ORDER_BY(least_first, int64_t, ORDER_OF(*a, *b));

static void offset_learn(struct offset *offset, uint64_t end_ns, uint64_t begun_ns,
                         uint64_t interval_ns)
{
	int64_t sorted[CLOCK_KEPT], sum = 0, spread;
	size_t n;

	offset->of[offset->turns++ % CLOCK_KEPT] =
		(int64_t)(begun_ns + LOOKS_NS - end_ns - interval_ns / 2);
	n = offset->turns < CLOCK_KEPT ? offset->turns : CLOCK_KEPT;
	memcpy(sorted, offset->of, n * sizeof(*sorted));
	SORT(sorted, n, least_first);
	for (size_t i = n / 4; i < n - n / 4; i++)
		sum += sorted[i] - sorted[0]; /* a GPU's clock may be anywhere */
	offset->is = sorted[0] + sum / (int64_t)(n - n / 4 * 2);
	spread = sorted[n - n / 4 - 1] - sorted[n / 4] - (int64_t)interval_ns / 2;
	offset->error_ns =
		interval_ns + interval_ns / 8 + CLOCK_OFF + (spread > 0 ? (uint64_t)spread : 0);
}

static bool offset_is_known(const struct offset *offset)
{
	return offset->turns >= CLOCK_TURNS;
}

static uint64_t offset_apply(const struct offset *offset, uint64_t ns)
{
	return ns + (uint64_t)offset->is;
}

/* ---- stretches ----------------------------------------------------------------------------- */

static void send_stretches(struct sampled *sampled)
{
	struct nvml_stretches *told = &sampled->message.stretches;

	if (!told->n && !told->lost && !told->samples)
		return;
	sampled->message.head.kind = NVML_MESSAGE_STRETCHES;
	told->interval_ns = sampled->interval_ns;
	told->clock_error_ns = sampled->offset.error_ns;
	send_message(&sampled->message);
	told->n = 0;
	told->samples = told->lost = told->cpu_ns = 0;
}

/* A clock that is known better now may put a begin before the last end. */
static void take_stretch(void *data, const struct gpu_stretch *stretch)
{
	struct sampled *sampled = data;
	struct nvml_stretches *told = &sampled->message.stretches;
	struct gpu_stretch *to = &told->of[told->n];

	*to = *stretch;
	to->begin_ns = offset_apply(&sampled->offset, stretch->begin_ns);
	to->end_ns = offset_apply(&sampled->offset, stretch->end_ns);
	if (to->begin_ns < sampled->told_ns)
		to->begin_ns = sampled->told_ns;
	if (to->end_ns <= to->begin_ns)
		return;
	sampled->told_ns = to->end_ns;
	if (++told->n == NVML_STRETCHES)
		send_stretches(sampled);
}

static void take_sample(void *data, const struct pm_sample *sample)
{
	struct sampled *sampled = data;

	sampled->message.stretches.samples++;
	sampled->judged_samples++;
	if (sampled->last_ns && sample->begin_ns > sampled->last_ns + sampled->interval_ns / 2)
		sampled->message.stretches.lost++;
	sampled->last_ns = sample->end_ns;
	if (offset_is_known(&sampled->offset))
		stretches_add(&sampled->stretches, sample);
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static void judge_anew(struct sampled *sampled)
{
	sampled->judged_ns = clock_now_ns();
	sampled->judged_samples = sampled->judged_cpu_ns = 0;
}

/* Of a GPU that is sampled from now on, or otherwise. */
static void judge_from_now(struct sampled *sampled)
{
	judge_anew(sampled);
	sampled->drained_ns = sampled->judged_ns;
	sampled->last_ns = 0;
}

static void begin_gpu(struct pm_sampling *sampling, uint32_t index, char *why, size_t size)
{
	struct sampled *sampled = &sampling->of[index];

	sampled->gpu = pm_start(sampling->pm, index, sampled->interval_ns, why, size);
	sampled->stretches = (struct stretches){ .each = take_stretch, .data = sampled };
	sampled->again_ns = sampled->gpu ? 0 : clock_now_ns() + AGAIN_NS;
	judge_from_now(sampled);
	sampling->n_sampled += sampled->gpu != NULL;
}

static void end_gpu(struct pm_sampling *sampling, uint32_t index)
{
	struct sampled *sampled = &sampling->of[index];

	stretches_end(&sampled->stretches);
	send_stretches(sampled);
	pm_stop(sampled->gpu);
	sampled->gpu = NULL;
	sampling->n_sampled--;
}

struct pm_sampling *pm_sampling_new(const char *folders, uint64_t interval_ns, char *why,
                                    size_t size)
{
	struct pm *pm = pm_open(folders, why, size);
	struct pm_sampling *sampling;

	if (!pm)
		return NULL;
	sampling = xcalloc(1, sizeof(*sampling));
	sampling->pm = pm;
	sampling->n = pm_gpus(pm) < GPUS_MAX ? pm_gpus(pm) : GPUS_MAX;
	for (uint32_t i = 0; i < sampling->n; i++) {
		sampling->of[i].interval_ns = interval_ns * sampling->n;
		sampling->of[i].message.stretches.index = i;
		begin_gpu(sampling, i, why, size);
	}
	return sampling;
}

uint32_t pm_sampling_gpus(const struct pm_sampling *sampling)
{
	return sampling->n_sampled;
}

uint32_t pm_sampling_all(const struct pm_sampling *sampling)
{
	return sampling->n;
}

/* Of [least, most] what is nearest. */
static uint64_t within(double ns, uint64_t least_ns, uint64_t most_ns)
{
	if (ns <= (double)least_ns)
		return least_ns;
	return ns < (double)most_ns ? (uint64_t)ns : most_ns;
}

/*
 * So few samples that they cost less than they may, and that this process keeps up with them where
 * it gets little of a CPU. A sample takes 31 us on an H200.
 */
static void judge_cost(struct pm_sampling *sampling, uint32_t index, char *why, size_t size)
{
	struct sampled *sampled = &sampling->of[index];
	uint64_t now_ns = clock_now_ns(), ns = now_ns - sampled->judged_ns;
	double most = CPU_MOST / sampling->n, is = (double)sampled->interval_ns, interval;
	bool behind = now_ns - sampled->drained_ns > BEHIND_NS;

	if (!offset_is_known(&sampled->offset) && !behind) { /* it is read often until then */
		judge_anew(sampled);
		return;
	}
	if (ns < JUDGED_NS)
		return;
	interval = is * (double)sampled->judged_cpu_ns / ((double)ns * most);
	if (behind && interval * (double)sampled->judged_samples < 2 * (double)ns)
		interval = 2 * (double)ns / (double)(sampled->judged_samples + 1);
	judge_anew(sampled);
	if (interval <= 1.25 * is || sampled->interval_ns >= LONGEST_NS)
		return;
	sampled->interval_ns = within(interval, sampled->interval_ns, LONGEST_NS);
	sampled->message.stretches.lost++; /* those until it has begun again, too */
	stretches_end(&sampled->stretches);
	if (pm_pace(sampled->gpu, sampled->interval_ns)) {
		judge_from_now(sampled);
		return;
	}
	end_gpu(sampling, index);
	begin_gpu(sampling, index, why, size);
}

/* Samples and readings do not keep step: a reading begins anywhere between two samples. */
static void await_somewhere(const struct sampled *sampled)
{
	double turns = GOLDEN * (double)sampled->offset.turns;
	double wait_ns = (turns - (double)(uint64_t)turns) * (double)sampled->interval_ns;

	nanosleep(&(struct timespec){ 0, (long)wait_ns }, NULL);
}

static enum pm_reading read_gpu(struct sampled *sampled)
{
	uint64_t cpu_begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID), cpu_ns, begun_ns;
	enum pm_reading reading;
	size_t n;

	await_somewhere(sampled);
	reading = pm_read(sampled->gpu, take_sample, sampled, &n, &begun_ns);
	if (reading == PM_READ) {
		sampled->drained_ns = clock_now_ns();
		if (n && sampled->last_ns)
			offset_learn(&sampled->offset, sampled->last_ns, begun_ns,
			             sampled->interval_ns);
	}
	cpu_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin_ns;
	sampled->message.stretches.cpu_ns += cpu_ns;
	sampled->judged_cpu_ns += cpu_ns;
	return reading;
}

/* Seldom, since each takes its time, but before there is no room; often until clocks are known. */
static uint64_t between_ns(const struct pm_sampling *sampling, const struct sampled *sampled)
{
	uint64_t turns = sampling->n < TURNS_MOST ? sampling->n : TURNS_MOST;

	if (!offset_is_known(&sampled->offset))
		return PM_SAMPLING_TURN_NS;
	return within((double)(turns * TURNS_NS), 0, PM_READ_MOST * sampled->interval_ns);
}

void pm_sampling_turn(struct pm_sampling *sampling, uint32_t index, char *why, size_t size)
{
	struct sampled *sampled = &sampling->of[index];
	uint64_t now_ns = clock_now_ns();
	enum pm_reading reading;

	if (!sampled->gpu) {
		if (now_ns >= sampled->again_ns)
			begin_gpu(sampling, index, why, size);
		return;
	}
	if (now_ns < sampled->next_ns)
		return;
	reading = read_gpu(sampled);
	sampled->next_ns = reading == PM_READ ? now_ns + between_ns(sampling, sampled) : now_ns;
	if (reading == PM_READ || reading == PM_MORE) {
		send_stretches(sampled);
		judge_cost(sampling, index, why, size);
		return;
	}
	sampled->message.stretches.lost++;
	end_gpu(sampling, index);
	if (reading == PM_LOST) {
		begin_gpu(sampling, index, why, size);
		return;
	}
	sampled->offset = (struct offset){ 0 };
	snprintf(why, size, "CUPTI gives no samples of GPU %u any more", index);
	sampled->again_ns = clock_now_ns() + AGAIN_NS;
}
