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
#include "gpus/nvml/gpu_threads.h"

#define CPU_MOST    0.08        /* of a CPU, of all GPUs together */
#define FIXED_SHARE 4           /* of that: a part for what a reading costs without its samples */
#define LONGEST_NS  10000000ull /* between two samples: more tells too little */
#define TURNS_NS    50000000ull /* between two readings: it is told so late */
#define TURN_MOST   900         /* samples: the image has room for some more */
#define JUDGED_NS   500000000ull
#define BEHIND_NS   1500000000ull  /* with more to read all the time: it does not keep up */
#define AGAIN_NS    10000000000ull /* after one has failed */
#define CLOCK_NS    2000000000ull  /* the clocks may drift from each other in that time */
#define CLOCK_TURNS 10             /* readings of few samples until times are good */
#define CLOCK_TRIES 30             /* or of many, where the machine is too busy for few */
#define LEARN_NS    500000000ull   /* then so seldom: each decoding costs a millisecond and more */
#define FEW         32u            /* samples: so many are decoded at once */
#define READS_MOST  8

/*
 * What is to be added to the GPU's times. A sample was there when it had been decoded, so the least
 * difference that is seen between the two is nearest: by how long a decoding of few samples takes.
 */
struct offset {
	int64_t now, before; /* the least of this stretch of CLOCK_NS, and of the one before */
	uint64_t since_ns;
	uint64_t error_ns;   /* how long that decoding took */
	uint64_t learnt_ns;  /* when it was last asked */
	unsigned turns, few; /* readings, and those of few samples */
};

/* Readings of a GPU since it was last judged: sums over them, in samples and microseconds. */
struct cost {
	double n, samples, us, samples_squared, samples_us;
};

struct sampled {
	struct pm_gpu *gpu; /* NULL: it is not sampled */
	uint64_t interval_ns, again_ns;
	uint64_t between_ns, next_ns; /* two readings; the next one is due */
	struct offset offset;
	struct stretches stretches;
	uint64_t told_ns; /* up to where, by this machine's time */
	uint64_t last_ns; /* the end of the last sample, by the GPU's */
	uint64_t judged_ns, judged_samples;
	struct cost cost;
	uint64_t drained_ns; /* when all that there was had been read */
	struct nvml_message message;
};

struct pm_sampling {
	struct pm *pm;
	uint32_t n, n_sampled;
	struct sampled of[GPUS_MAX];
};

/* ---- time ---------------------------------------------------------------------------------- */

static void offset_learn(struct offset *offset, uint64_t end_ns, uint64_t begun_ns, size_t samples)
{
	uint64_t now_ns = clock_now_ns();
	int64_t is = (int64_t)(now_ns - end_ns);

	if (!offset->turns || now_ns - offset->since_ns > CLOCK_NS) {
		offset->before = offset->turns ? offset->now : is;
		offset->now = is;
		offset->since_ns = now_ns;
		offset->error_ns = now_ns - begun_ns;
	} else if (is < offset->now) {
		offset->now = is;
		offset->error_ns = now_ns - begun_ns;
	}
	offset->turns++;
	offset->few += samples <= FEW;
}

static bool offset_is_known(const struct offset *offset)
{
	return offset->few >= CLOCK_TURNS || offset->turns >= CLOCK_TRIES;
}

static bool offset_is_due(const struct offset *offset)
{
	return !offset_is_known(offset) || clock_now_ns() - offset->learnt_ns > LEARN_NS;
}

static uint64_t offset_apply(const struct offset *offset, uint64_t ns)
{
	return ns + (uint64_t)(offset->now < offset->before ? offset->now : offset->before);
}

/* ---- stretches ----------------------------------------------------------------------------- */

static void send_stretches(struct sampled *sampled)
{
	struct nvml_stretches *told = &sampled->message.stretches;

	if (!told->n && !told->lost && !told->samples)
		return;
	sampled->message.head.kind = NVML_MESSAGE_STRETCHES;
	told->interval_ns = sampled->interval_ns;
	told->clock_error_ns = sampled->offset.error_ns + sampled->interval_ns;
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
	sampled->last_ns = sample->end_ns;
	if (offset_is_known(&sampled->offset))
		stretches_add(&sampled->stretches, sample);
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static void begin_gpu(struct pm_sampling *sampling, uint32_t index, char *why, size_t size)
{
	struct sampled *sampled = &sampling->of[index];

	sampled->gpu = pm_start(sampling->pm, index, sampled->interval_ns, why, size);
	sampled->stretches = (struct stretches){ .each = take_stretch, .data = sampled };
	sampled->again_ns = sampled->gpu ? 0 : clock_now_ns() + AGAIN_NS;
	sampled->judged_ns = clock_now_ns();
	sampled->judged_samples = 0;
	sampled->cost = (struct cost){ 0 };
	sampled->drained_ns = sampled->judged_ns;
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
		sampling->of[i].between_ns = PM_SAMPLING_TURN_NS;
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

static void cost_add(struct cost *cost, double samples, double us)
{
	cost->n++;
	cost->samples += samples;
	cost->us += us;
	cost->samples_squared += samples * samples;
	cost->samples_us += samples * us;
}

/* Microseconds of a reading, of which the samples make the rest: the line that fits best. */
static double cost_fixed(const struct cost *cost)
{
	double differ = cost->n * cost->samples_squared - cost->samples * cost->samples;
	double us = cost->us * cost->samples_squared - cost->samples * cost->samples_us;

	/* where all had as many samples it cannot be told */
	if (differ <= 0 || us <= 0)
		return 0;
	return us / differ < cost->us / cost->n ? us / differ : cost->us / cost->n;
}

/* Of [least, most] what is nearest. */
static uint64_t within(double ns, uint64_t least_ns, uint64_t most_ns)
{
	if (ns <= (double)least_ns)
		return least_ns;
	return ns < (double)most_ns ? (uint64_t)ns : most_ns;
}

/*
 * So few readings, and then so few samples, that they cost less than they may, and that this
 * process keeps up with them where it gets little of a CPU. A decoding takes a millisecond, however
 * few samples it has, so the first is asked first: it only tells a little later.
 */
static void judge_cost(struct pm_sampling *sampling, uint32_t index, char *why, size_t size)
{
	struct sampled *sampled = &sampling->of[index];
	const struct cost *cost = &sampled->cost;
	uint64_t now_ns = clock_now_ns(), ns = now_ns - sampled->judged_ns;
	double most = CPU_MOST / sampling->n, fixed_ns = 1000 * cost_fixed(cost), interval, left;
	bool behind = now_ns - sampled->drained_ns > BEHIND_NS;

	if (ns < JUDGED_NS)
		return;
	sampled->between_ns = within(fixed_ns * FIXED_SHARE / most, sampled->between_ns, TURNS_NS);
	left = most - fixed_ns / (double)sampled->between_ns;
	if (left < most / 2)
		left = most / 2;
	/* their samples cost in proportion to how many there are */
	interval = (1000 * cost->us - cost->n * fixed_ns) / left *
	           ((double)sampled->interval_ns / (double)ns);
	if (behind && interval * (double)sampled->judged_samples < 2 * (double)ns)
		interval = 2 * (double)ns / (double)(sampled->judged_samples + 1);
	sampled->judged_ns = now_ns;
	sampled->judged_samples = 0;
	sampled->cost = (struct cost){ 0 };
	if (interval <= 1.25 * (double)sampled->interval_ns || sampled->interval_ns >= LONGEST_NS)
		return;
	sampled->interval_ns = within(interval, sampled->interval_ns, LONGEST_NS);
	sampled->message.stretches.lost += behind;
	end_gpu(sampling, index);
	begin_gpu(sampling, index, why, size);
}

static enum pm_reading read_gpu(struct sampled *sampled)
{
	enum pm_reading reading = PM_MORE;
	bool due = offset_is_due(&sampled->offset), again = true;
	int most = due ? READS_MOST : 1;

	/* until few came at once: by when they came, the clocks are compared */
	for (int i = 0; i < most && again; i++) {
		uint64_t begun_ns = clock_now_ns(),
			 cpu_begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID), took_ns;
		size_t n;

		reading = pm_read(sampled->gpu, take_sample, sampled, &n);
		took_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin_ns;
		sampled->message.stretches.cpu_ns += took_ns;
		cost_add(&sampled->cost, (double)n, (double)took_ns / 1e3);
		again = reading == PM_MORE;
		if (reading != PM_READ)
			continue;
		sampled->drained_ns = clock_now_ns();
		if (n)
			offset_learn(&sampled->offset, sampled->last_ns, begun_ns, n);
		again = !n || n > FEW;
		if (!n)
			nanosleep(&(struct timespec){ 0, (long)sampled->interval_ns / 2 }, NULL);
	}
	if (due)
		sampled->offset.learnt_ns = clock_now_ns();
	return reading;
}

void pm_sampling_turn(struct pm_sampling *sampling, uint32_t index, char *why, size_t size)
{
	struct sampled *sampled = &sampling->of[index];
	uint64_t now_ns = clock_now_ns(), between_ns;
	enum pm_reading reading;

	if (!sampled->gpu) {
		if (now_ns >= sampled->again_ns)
			begin_gpu(sampling, index, why, size);
		return;
	}
	if (now_ns < sampled->next_ns)
		return;
	reading = read_gpu(sampled);
	between_ns = within((double)sampled->between_ns, 0, TURN_MOST * sampled->interval_ns);
	sampled->next_ns = reading == PM_READ ? now_ns + between_ns : now_ns;
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
