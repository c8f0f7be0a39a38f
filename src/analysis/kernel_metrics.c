// SPDX-License-Identifier: MIT
#include "analysis/kernel_metrics.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"

#define STRETCHES   (1u << 18) /* the last ones: at a thousand a second some four minutes */
#define GROUP       64         /* stretches, whose sums are kept */
#define WAITING_MAX 65536
#define PASS_AFTER  (WAITING_MAX / 16) /* runs that a pass over all settled, and events since */
#define TOGETHER    10                 /* percent of a run that another one may share */
#define SAMPLED     90                 /* percent that have to be known */

enum { OF_SM, OF_TENSOR, OF_DRAM, OF_ALL };

/*
 * How near to a run's edges stretches may be another's is known at the end. So each run is taken
 * for all of these that it is long enough for.
 */
static const uint64_t edges_ns[] = { 400000,  500000,  700000,  900000,
	                             1200000, 2500000, 6000000, 15000000 };
#define EDGES     ARRAY_SIZE(edges_ns)
#define WITHIN_NS 200000 /* of a run, that has to be left */

struct stretch {
	uint64_t begin_ns, end_ns;
	int16_t of[OF_ALL];
};

/* Of stretches one after the other. They may wrap around: only differences are used. */
struct sums {
	uint64_t known_ns, sampled_ns[OF_ALL], of[OF_ALL];
};

struct run {
	const struct kernel *kernel;
	uint64_t begin_ns, end_ns;
	uint64_t shared_ns; /* with other long runs */
};

struct use {
	const struct kernel *kernel;
	struct {
		uint64_t runs, ns;
		double sums[OF_ALL];
		uint64_t sampled_ns[OF_ALL];
	} of[EDGES];
};

struct kernel_metrics {
	struct stretch *stretches; /* a ring */
	uint64_t n_stretches;      /* that there ever were */
	struct sums *before;       /* each group of stretches, a ring */
	struct sums all;           /* stretches that there ever were */
	uint32_t gpu;
	bool several, any_runs;
	struct run *waiting; /* in the order in which they came */
	size_t n_waiting;
	uint64_t first_end_ns; /* of those that wait, or earlier */
	uint64_t since_pass;   /* see PASS_AFTER */
	struct use *uses;      /* by the kernel's id */
	size_t n_uses;
	uint64_t together[EDGES], unsampled[EDGES], late; /* runs; there was no room for the last */
	size_t edge;                                      /* that rows are of */
	struct kernel_metrics_row *rows;
};

struct kernel_metrics *kernel_metrics_new(void)
{
	return xcalloc(1, sizeof(struct kernel_metrics));
}

void kernel_metrics_free(struct kernel_metrics *metrics)
{
	if (!metrics)
		return;
	FREE_ALL(metrics->stretches, metrics->before, metrics->waiting, metrics->uses,
	         metrics->rows, metrics);
}

/* ---- stretches ----------------------------------------------------------------------------- */

static const struct stretch *stretch_at(const struct kernel_metrics *metrics, uint64_t i)
{
	return &metrics->stretches[i % STRETCHES];
}

/* The first one of a group of which all are kept. */
static uint64_t first_stretch(const struct kernel_metrics *metrics)
{
	uint64_t n = metrics->n_stretches;

	return n > STRETCHES ? (n - STRETCHES + GROUP - 1) / GROUP * GROUP : 0;
}

static uint64_t sampled_until(const struct kernel_metrics *metrics)
{
	return metrics->n_stretches ? stretch_at(metrics, metrics->n_stretches - 1)->end_ns : 0;
}

static void add_part(struct sums *sums, const struct stretch *stretch, uint64_t ns)
{
	sums->known_ns += ns;
	for (size_t k = 0; k < OF_ALL; k++) {
		if (stretch->of[k] < 0)
			continue;
		sums->sampled_ns[k] += ns;
		sums->of[k] += (uint64_t)stretch->of[k] * ns;
	}
}

static void add_stretch(struct sums *sums, const struct stretch *stretch)
{
	add_part(sums, stretch, stretch->end_ns - stretch->begin_ns);
}

/* Of all stretches before that one, from the first stretch on. */
static struct sums sums_before(const struct kernel_metrics *metrics, uint64_t i)
{
	struct sums sums;

	if (i == metrics->n_stretches)
		return metrics->all;
	sums = metrics->before[i / GROUP % (STRETCHES / GROUP)];
	for (uint64_t k = i / GROUP * GROUP; k < i; k++)
		add_stretch(&sums, stretch_at(metrics, k));
	return sums;
}

/* False: it is none, or not one that counts. */
static bool take_stretch(struct kernel_metrics *metrics, const struct gpu_metrics_sample *sample)
{
	struct stretch *stretch;
	uint64_t n = metrics->n_stretches;

	if (sample->source != GPU_METRICS_STRETCHES || sample->end_ns <= sample->begin_ns)
		return false;
	/* Several GPUs have stretches of the same times. */
	metrics->several |= metrics->stretches && metrics->gpu != sample->gpu;
	if (metrics->several || sample->begin_ns < sampled_until(metrics))
		return false;
	if (!metrics->stretches) {
		metrics->stretches = xcalloc(STRETCHES, sizeof(*metrics->stretches));
		metrics->before = xcalloc(STRETCHES / GROUP, sizeof(*metrics->before));
		metrics->gpu = sample->gpu;
	}
	if (n % GROUP == 0)
		metrics->before[n / GROUP % (STRETCHES / GROUP)] = metrics->all;
	stretch = &metrics->stretches[n % STRETCHES];
	*stretch = (struct stretch){ sample->begin_ns,
		                     sample->end_ns,
		                     { (int16_t)sample->value[GPU_METRIC_SM],
		                       (int16_t)sample->value[GPU_METRIC_TENSOR],
		                       (int16_t)sample->value[GPU_METRIC_DRAM] } };
	add_stretch(&metrics->all, stretch);
	metrics->n_stretches++;
	return true;
}

/* ---- runs ---------------------------------------------------------------------------------- */

static struct use *use_of(struct kernel_metrics *metrics, const struct kernel *kernel)
{
	struct use *use = BY_ID(metrics->uses, metrics->n_uses, kernel->id);

	use->kernel = kernel;
	return use;
}

/* Of the time from one to the other, which is more than nothing. */
static struct sums sums_of(const struct kernel_metrics *metrics, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t first = first_stretch(metrics), n = metrics->n_stretches - first;
	uint64_t from =
		first + ARRAY_BEFORE(n, i, stretch_at(metrics, first + i)->end_ns <= begin_ns);
	uint64_t until =
		first + ARRAY_BEFORE(n, i, stretch_at(metrics, first + i)->begin_ns < end_ns);
	struct sums of = { 0 }, before;
	const struct stretch *stretch;

	if (from >= until)
		return of;
	of = sums_before(metrics, until);
	before = sums_before(metrics, from);
	stretch = stretch_at(metrics, from);
	if (stretch->begin_ns < begin_ns)
		add_part(&before, stretch, begin_ns - stretch->begin_ns);
	stretch = stretch_at(metrics, until - 1);
	if (stretch->end_ns > end_ns)
		add_part(&before, stretch, stretch->end_ns - end_ns);
	of.known_ns -= before.known_ns;
	for (size_t k = 0; k < OF_ALL; k++) {
		of.sampled_ns[k] -= before.sampled_ns[k];
		of.of[k] -= before.of[k];
	}
	return of;
}

/* Of a run. */
static uint64_t least_ns(size_t edge)
{
	return 2 * edges_ns[edge] + WITHIN_NS;
}

static void settle_edge(struct kernel_metrics *metrics, const struct run *run, size_t edge)
{
	uint64_t begin_ns = run->begin_ns + edges_ns[edge], end_ns = run->end_ns - edges_ns[edge];
	struct sums of = sums_of(metrics, begin_ns, end_ns);
	struct use *use;

	if (of.known_ns * 100 < (end_ns - begin_ns) * SAMPLED) {
		metrics->unsampled[edge]++;
		return;
	}
	use = use_of(metrics, run->kernel);
	use->of[edge].runs++;
	use->of[edge].ns += run->end_ns - run->begin_ns;
	for (size_t k = 0; k < OF_ALL; k++) {
		use->of[edge].sums[k] += (double)of.of[k];
		use->of[edge].sampled_ns[k] += of.sampled_ns[k];
	}
}

static void settle(struct kernel_metrics *metrics, const struct run *run)
{
	uint64_t ns = run->end_ns - run->begin_ns;
	bool together = run->shared_ns * 100 > ns * TOGETHER;

	for (size_t edge = 0; edge < EDGES && ns >= least_ns(edge); edge++) {
		if (together)
			metrics->together[edge]++;
		else
			settle_edge(metrics, run, edge);
	}
}

/* Those whose samples have come, with some time for other runs that are told of late. */
static void settle_until(struct kernel_metrics *metrics, uint64_t until_ns)
{
	uint64_t first_end_ns = UINT64_MAX;
	size_t left = 0;

	for (size_t i = 0; i < metrics->n_waiting; i++) {
		const struct run *run = &metrics->waiting[i];

		if (run->end_ns <= until_ns) {
			settle(metrics, run);
			continue;
		}
		first_end_ns = run->end_ns < first_end_ns ? run->end_ns : first_end_ns;
		metrics->waiting[left++] = *run;
	}
	metrics->first_end_ns = first_end_ns;
	metrics->since_pass = metrics->n_waiting - left;
	metrics->n_waiting = left;
}

static bool has_room(struct kernel_metrics *metrics)
{
	uint64_t until_ns = sampled_until(metrics);

	if (metrics->n_waiting == WAITING_MAX && metrics->since_pass >= PASS_AFTER &&
	    metrics->first_end_ns <= until_ns)
		settle_until(metrics, until_ns);
	return metrics->n_waiting < WAITING_MAX; /* else their samples are missing, or late */
}

/* What runs share of their time; only the last ones are looked at. */
static void note_shared(struct kernel_metrics *metrics, struct run *run)
{
	size_t n = metrics->n_waiting;

	for (size_t i = n; i > 0 && n - i < 64; i--) {
		struct run *other = &metrics->waiting[i - 1];
		uint64_t from = other->begin_ns > run->begin_ns ? other->begin_ns : run->begin_ns;
		uint64_t until = other->end_ns < run->end_ns ? other->end_ns : run->end_ns;

		if (until <= from)
			continue;
		other->shared_ns += until - from;
		run->shared_ns += until - from;
	}
}

static void take_run(struct kernel_metrics *metrics, const struct activity *activity)
{
	struct run run = { activity->kernel, activity->begin_ns, activity->end_ns, 0 };

	metrics->any_runs |= activity->kind == ACTIVITY_KERNEL;
	if (activity->kind != ACTIVITY_KERNEL || !run.kernel || run.kernel->id == UINT32_MAX ||
	    run.end_ns < run.begin_ns || run.end_ns - run.begin_ns < least_ns(0))
		return;
	if (!metrics->waiting)
		metrics->waiting = xcalloc(WAITING_MAX, sizeof(*metrics->waiting));
	if (!has_room(metrics)) {
		metrics->late++;
		return;
	}
	note_shared(metrics, &run);
	if (!metrics->n_waiting || run.end_ns < metrics->first_end_ns)
		metrics->first_end_ns = run.end_ns;
	metrics->waiting[metrics->n_waiting++] = run;
}

void kernel_metrics_event(struct kernel_metrics *metrics, const struct event *event)
{
	metrics->since_pass++;
	if (event->type == EVENT_ACTIVITY)
		take_run(metrics, event->activity);
	else if (event->type == EVENT_METRICS && take_stretch(metrics, event->metrics) &&
	         metrics->n_stretches % (STRETCHES / 4) == 0)
		/* before the ring forgets the stretches that they need */
		settle_until(metrics, sampled_until(metrics));
}

/* ---- at the end ---------------------------------------------------------------------------- */

ORDER_BY(most_time, struct kernel_metrics_row, DOWN(ns), UP(kernel->id));

static double mean(const struct use *use, size_t edge, size_t k)
{
	uint64_t ns = use->of[edge].sampled_ns[k];

	return ns ? use->of[edge].sums[k] / (double)ns / 100 : NAN;
}

const struct kernel_metrics_row *kernel_metrics_rows(struct kernel_metrics *metrics,
                                                     uint64_t edge_ns, size_t *n)
{
	size_t edge = ARRAY_BEFORE(EDGES, i, edges_ns[i] < edge_ns);

	*n = 0;
	settle_until(metrics, UINT64_MAX);
	metrics->edge = edge;
	free(metrics->rows);
	metrics->rows = xcalloc(metrics->n_uses + 1, sizeof(*metrics->rows));
	for (size_t i = 0; i < metrics->n_uses && !metrics->several && edge < EDGES; i++) {
		const struct use *use = &metrics->uses[i];

		if (use->kernel && use->of[edge].runs)
			metrics->rows[(*n)++] = (struct kernel_metrics_row){
				use->kernel,
				use->of[edge].runs,
				use->of[edge].ns,
				mean(use, edge, OF_SM),
				mean(use, edge, OF_TENSOR),
				mean(use, edge, OF_DRAM),
			};
	}
	SORT(metrics->rows, *n, most_time);
	return metrics->rows;
}

uint64_t kernel_metrics_least_ns(const struct kernel_metrics *metrics)
{
	return metrics->edge < EDGES ? least_ns(metrics->edge) : 0;
}

uint64_t kernel_metrics_together(const struct kernel_metrics *metrics)
{
	return metrics->edge < EDGES ? metrics->together[metrics->edge] : 0;
}

uint64_t kernel_metrics_unsampled(const struct kernel_metrics *metrics)
{
	if (!metrics->n_stretches || metrics->edge == EDGES)
		return 0;
	return metrics->unsampled[metrics->edge] + metrics->late;
}

bool kernel_metrics_any(const struct kernel_metrics *metrics)
{
	return metrics->any_runs && metrics->n_stretches;
}

bool kernel_metrics_of_several(const struct kernel_metrics *metrics)
{
	return metrics->several;
}
