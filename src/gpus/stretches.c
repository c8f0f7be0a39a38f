// SPDX-License-Identifier: MIT
#include "gpus/stretches.h"

#include "gpus/gpu_metrics.h"

#define SHARE_LEAST 100  /* less is nothing */
#define SHARE_MOST  9800 /* more is all */
#define COPY_LEAST  300  /* the same of copies: small ones are always under way */
#define HALF        (GPU_SHARE_WHOLE / 2)
#define LONGEST_NS  20000000ull /* of a stretch: what goes on is told of meanwhile */
#define PARTLY_MOST 10          /* samples of one whose share is between */

enum kind { KIND_IDLE, KIND_COPIES, KIND_BUSY, KIND_PARTLY, KIND_PARTLY_COPIES };
enum { OF_BUSY, OF_COPIES, OF_SM, OF_TENSOR, OF_DRAM, OF_ALL };

static const int64_t *value_of(const struct pm_sample *sample, int i)
{
	const int64_t *const values[OF_ALL] = { &sample->busy, &sample->copies, &sample->sm,
		                                &sample->tensor, &sample->dram };

	return values[i];
}

static enum kind kind_of(const struct pm_sample *sample)
{
	if (sample->busy >= SHARE_MOST)
		return KIND_BUSY;
	if (sample->busy >= SHARE_LEAST)
		return KIND_PARTLY;
	if (sample->copies >= SHARE_MOST)
		return KIND_COPIES;
	return sample->copies >= COPY_LEAST ? KIND_PARTLY_COPIES : KIND_IDLE;
}

static int16_t mean(const struct stretches *stretches, int i)
{
	uint64_t ns = stretches->run.end_ns - stretches->run.begin_ns;
	double share = ns ? stretches->sums[i] / (double)ns : 0;

	if (*value_of(&stretches->run, i) == GPU_METRIC_UNKNOWN)
		return GPU_METRIC_UNKNOWN;
	return (int16_t)(share < GPU_SHARE_WHOLE ? share : GPU_SHARE_WHOLE);
}

static void give(struct stretches *stretches)
{
	struct gpu_stretch stretch = { stretches->run.begin_ns, stretches->run.end_ns };

	if (!stretches->any)
		return;
	stretches->any = false;
	stretch.busy = mean(stretches, OF_BUSY);
	if (stretches->kind == KIND_BUSY)
		stretch.busy = GPU_SHARE_WHOLE;
	else if (stretches->kind != KIND_PARTLY)
		stretch.busy = 0;
	stretch.copies = stretches->kind == KIND_COPIES ? GPU_SHARE_WHOLE : 0;
	stretch.sm = mean(stretches, OF_SM);
	stretch.tensor = mean(stretches, OF_TENSOR);
	stretch.dram = mean(stretches, OF_DRAM);
	stretches->each(stretches->data, &stretch);
}

/* A part of a sample, as time of this kind. */
static void add(struct stretches *stretches, const struct pm_sample *sample, uint64_t begin_ns,
                uint64_t end_ns, enum kind kind)
{
	uint64_t ns = end_ns - begin_ns;

	if (end_ns <= begin_ns)
		return;
	if (stretches->any && (stretches->kind != (int)kind || stretches->run.end_ns != begin_ns ||
	                       end_ns - stretches->run.begin_ns > LONGEST_NS ||
	                       (kind == KIND_PARTLY && stretches->n_run >= PARTLY_MOST)))
		give(stretches);
	if (!stretches->any) {
		stretches->run = *sample;
		stretches->run.begin_ns = begin_ns;
		stretches->kind = (int)kind;
		stretches->any = true;
		stretches->n_run = 0;
		for (int i = 0; i < OF_ALL; i++)
			stretches->sums[i] = 0;
	}
	stretches->run.end_ns = end_ns;
	stretches->n_run++;
	for (int i = 0; i < OF_ALL; i++)
		stretches->sums[i] += (double)*value_of(sample, i) * (double)ns;
}

/*
 * The held sample lies between what goes on and one of the kind `next`. Where nothing, or copies,
 * and kernels meet in it, or nothing and copies, it is cut where its share says.
 */
static void settle(struct stretches *stretches, enum kind next)
{
	const struct pm_sample held = stretches->held;
	bool copies = kind_of(&held) == KIND_PARTLY_COPIES;
	enum kind full = copies ? KIND_COPIES : KIND_BUSY;
	int64_t share = copies ? held.copies : held.busy;
	uint64_t full_ns = (held.end_ns - held.begin_ns) * (uint64_t)share / GPU_SHARE_WHOLE;
	bool follows = stretches->any && stretches->run.end_ns == held.begin_ns;
	enum kind before = follows ? (enum kind)stretches->kind : KIND_PARTLY;
	uint64_t cut_ns;

	stretches->holds = false;
	if (next == full && before < full) {
		cut_ns = held.end_ns - full_ns;
		add(stretches, &held, held.begin_ns, cut_ns, before);
		add(stretches, &held, cut_ns, held.end_ns, full);
	} else if (before == full && next < full) {
		cut_ns = held.begin_ns + full_ns;
		add(stretches, &held, held.begin_ns, cut_ns, full);
		add(stretches, &held, cut_ns, held.end_ns, next);
	} else if (copies) {
		add(stretches, &held, held.begin_ns, held.end_ns,
		    share < HALF ? KIND_IDLE : KIND_COPIES);
	} else {
		add(stretches, &held, held.begin_ns, held.end_ns, KIND_PARTLY);
	}
}

void stretches_add(struct stretches *stretches, const struct pm_sample *sample)
{
	enum kind kind = kind_of(sample);

	if (stretches->holds)
		settle(stretches, sample->begin_ns == stretches->held.end_ns ? kind : KIND_PARTLY);
	if (kind >= KIND_PARTLY) {
		stretches->held = *sample;
		stretches->holds = true;
	} else {
		add(stretches, sample, sample->begin_ns, sample->end_ns, kind);
	}
}

void stretches_end(struct stretches *stretches)
{
	if (stretches->holds)
		settle(stretches, KIND_PARTLY);
	give(stretches);
}
