// SPDX-License-Identifier: MIT
#include "account/gpu_time.h"

#include <stdlib.h>

#include "account/keyed.h"
#include "account/waits.h"
#include "base/array.h"
#include "base/xalloc.h"

#define GPU_STREAMS 4096 /* those beyond are not looked at */

/* What runs at once, of each class the one that ends last; kernels of few blocks are apart. */
#define LANE_FEW  FACT_CLASSES
#define GPU_LANES (FACT_CLASSES + 1)

static void gpu_add(const struct facts *facts, struct gpu_time *gpu, uint64_t begin_ns,
                    uint64_t end_ns, enum gpu_state state, size_t work)
{
	struct gpu_segment *last = gpu->n ? &gpu->segments[gpu->n - 1] : NULL;

	if (end_ns <= begin_ns)
		return;
	if (last && last->state == state && last->work == work && last->end_ns == begin_ns) {
		last->end_ns = end_ns;
		return;
	}
	*SPILL_ADD(facts->spill, gpu->segments, gpu->n) =
		(struct gpu_segment){ begin_ns, end_ns, (uint32_t)work, state, 0 };
}

/* ---- what runs at once ----------------------------------------------------------------------- */

/* A stretch in which the same classes run. */
struct at_once {
	uint64_t begin_ns, end_ns;
	unsigned classes;          /* 1 << enum fact_class */
	size_t work[FACT_CLASSES]; /* of each class the one that ends last */
	size_t next;               /* that begins after it; n_works: none */
};

/* From the GPU's first work to the end of the last; each is one that `each` gets. */
static void gpu_each(const struct facts *facts, const struct gpu_time *gpu,
                     void (*each)(void *data, const struct at_once *now), void *data)
{
	struct at_once now = { .end_ns = facts->works[gpu->first].begin_ns };
	uint64_t until_ns[GPU_LANES] = { 0 };
	size_t last[GPU_LANES];

	for (size_t i = gpu->first; i <= gpu->last; i = spill_next(facts->spill, i)) {
		const struct fact_work *work = i < gpu->last ? &facts->works[i] : NULL;
		uint64_t to_ns = work ? work->begin_ns : UINT64_MAX;

		now.next = work ? i : facts->n_works;
		while (now.end_ns < to_ns) {
			now.begin_ns = now.end_ns;
			now.end_ns = to_ns;
			now.classes = 0;
			for (unsigned lane = GPU_LANES; lane-- > 0;) {
				unsigned class = lane == LANE_FEW ? FACT_KERNEL : lane;

				if (until_ns[lane] <= now.begin_ns)
					continue;
				now.classes |= 1u << class;
				now.work[class] = last[lane];
				now.end_ns = facts_min(now.end_ns, until_ns[lane]);
			}
			if (!work && !now.classes)
				return;
			each(data, &now);
		}
		if (!work)
			continue;

		unsigned lane = work->few && work->class == FACT_KERNEL ? LANE_FEW : work->class;

		if (work->end_ns > until_ns[lane]) {
			until_ns[lane] = work->end_ns;
			last[lane] = i;
		}
	}
}

struct adder {
	const struct facts *facts;
	struct gpu_time *gpu;
};

/* Kernels before those that communicate before copies. */
static void gpu_add_stretch(void *data, const struct at_once *now)
{
	static const enum gpu_state states[FACT_CLASSES] = {
		[FACT_KERNEL] = STATE_KERNELS,
		[FACT_COMMUNICATION] = STATE_COMMUNICATION,
		[FACT_COPY] = STATE_COPIES,
	};
	const struct adder *adder = data;
	unsigned class = 0;

	while (class < FACT_CLASSES && !(now->classes & 1u << class))
		class ++;
	if (class < FACT_CLASSES)
		gpu_add(adder->facts, adder->gpu, now->begin_ns, now->end_ns, states[class],
		        now->work[class]);
	else
		gpu_add(adder->facts, adder->gpu, now->begin_ns, now->end_ns, STATE_IDLE,
		        now->next);
}

static void gpu_talk(const struct facts *facts, struct gpu_time *gpu, const struct fact_work *work)
{
	struct gpu_talk *last = gpu->n_talks ? &gpu->talks[gpu->n_talks - 1] : NULL;

	if (work->end_ns <= work->begin_ns) /* nor has it a segment */
		return;
	if (last && work->begin_ns <= last->end_ns) {
		if (work->end_ns > last->end_ns)
			last->end_ns = work->end_ns;
		return;
	}
	*SPILL_ADD(facts->spill, gpu->talks, gpu->n_talks) =
		(struct gpu_talk){ work->begin_ns, work->end_ns };
}

/* Segments of several collectives lie side by side: those that touch are one. */
static void gpu_find_alone(const struct facts *facts, struct gpu_time *gpu)
{
	for (size_t i = 0; i < gpu->n; i = spill_next(facts->spill, i)) {
		const struct gpu_segment *one = &gpu->segments[i];
		struct gpu_alone *last = gpu->n_alone ? &gpu->alone[gpu->n_alone - 1] : NULL;
		uint64_t before_ns;

		if (one->state != STATE_COMMUNICATION)
			continue;
		if (last && last->end_ns == one->begin_ns) {
			last->end_ns = one->end_ns;
			continue;
		}
		before_ns = last ? last->before_ns + (last->end_ns - last->begin_ns) : 0;
		*SPILL_ADD(facts->spill, gpu->alone, gpu->n_alone) =
			(struct gpu_alone){ one->begin_ns, one->end_ns, before_ns };
	}
}

/*
 * Whoever records a process that goes on stops with its GPU times before the rest: what is asked
 * for from then on is in no record, of any GPU, and whether this one was idle is not known.
 */
static uint64_t gpu_told_until(const struct facts *facts, const struct fact_work *last)
{
	uint32_t number;
	uint64_t unworked_ns;

	if (last->sampled)
		return facts->sampled_ns;
	if (!facts_call_of(facts, last, &number))
		return facts->end_ns;
	unworked_ns = facts->threads[number].unworked_ns;
	return unworked_ns < UINT64_MAX ? unworked_ns : facts->end_ns;
}

/* Until the recording's end nothing came any more, if the process was there to ask. */
static void gpu_trail(const struct facts *facts, struct gpu_time *gpu)
{
	const struct fact_work *last = &facts->works[gpu->last - 1];

	if (gpu->n && !facts_ended(facts, last->process))
		gpu_add(facts, gpu, gpu->segments[gpu->n - 1].end_ns, gpu_told_until(facts, last),
		        STATE_IDLE, facts->n_works);
}

struct gpu_time *gpu_times_new(const struct facts *facts)
{
	struct gpu_time *gpus = xcalloc(facts->n_gpus + 1, sizeof(*gpus));

	for (size_t i = 0; i < facts->n_works;) {
		struct gpu_time *gpu = &gpus[facts->works[i].gpu];

		gpu->first = i;
		while (i < facts->n_works && facts->works[i].gpu == facts->works[gpu->first].gpu)
			i = spill_next(facts->spill, i);
		gpu->last = i;
		gpu_each(facts, gpu, gpu_add_stretch, &(struct adder){ facts, gpu });
		for (size_t k = gpu->first; k < gpu->last; k = spill_next(facts->spill, k))
			if (facts->works[k].class == FACT_COMMUNICATION)
				gpu_talk(facts, gpu, &facts->works[k]);
		gpu_trail(facts, gpu);
		gpu_find_alone(facts, gpu);
		gpu_find_debts(gpu, facts);
	}
	gpu_find_awaited(facts);
	return gpus;
}

struct gpu_time *gpu_times_of(const struct facts *facts)
{
	if (!*facts->gpus)
		*facts->gpus = gpu_times_new(facts);
	return *facts->gpus;
}

void gpu_times_free(struct gpu_time *gpus, const struct facts *facts)
{
	for (uint32_t i = 0; i < facts->n_gpus; i++) {
		spill_drop(facts->spill, gpus[i].segments);
		spill_drop(facts->spill, gpus[i].debts);
		spill_drop(facts->spill, gpus[i].talks);
		spill_drop(facts->spill, gpus[i].alone);
	}
	free(gpus);
}

double gpu_longest_stream_ns(const struct facts *facts, const struct gpu_time *gpu)
{
	struct stream {
		uint32_t process, number;
		double ns;
	};
	struct keyed streams = { .row_bytes = sizeof(struct stream),
		                 .key_bytes = offsetof(struct stream, ns) };
	double longest = 0;

	for (size_t i = gpu->first; i < gpu->last; i = spill_next(facts->spill, i)) {
		const struct fact_work *work = &facts->works[i];
		struct stream *stream = keyed_row(
			&streams, (uint32_t[]){ work->process->id, work->stream }, GPU_STREAMS);

		if (!stream)
			continue;
		stream->ns += (double)(work->end_ns - work->begin_ns);
		if (stream->ns > longest)
			longest = stream->ns;
	}
	keyed_free(&streams);
	return longest;
}

size_t gpu_time_at(struct gpu_time *gpu, uint64_t time_ns)
{
	return gpu->n ? facts_later(&gpu->segments->end_ns, sizeof(*gpu->segments), gpu->n, time_ns,
	                            &gpu->near)
	              : 0;
}

const struct gpu_talk *gpu_time_talk(struct gpu_time *gpu, uint64_t time_ns)
{
	size_t at = gpu->n_talks ? facts_later(&gpu->talks->end_ns, sizeof(*gpu->talks),
	                                       gpu->n_talks, time_ns, &gpu->near_talk)
	                         : 0;

	return at < gpu->n_talks ? &gpu->talks[at] : NULL;
}

/* Of all until then. */
static uint64_t alone_until(struct gpu_time *gpu, uint64_t time_ns)
{
	size_t at = gpu->n_alone ? facts_later(&gpu->alone->end_ns, sizeof(*gpu->alone),
	                                       gpu->n_alone, time_ns, &gpu->near_alone)
	                         : 0;
	const struct gpu_alone *last;

	if (at < gpu->n_alone)
		return gpu->alone[at].before_ns +
		       (time_ns > gpu->alone[at].begin_ns ? time_ns - gpu->alone[at].begin_ns : 0);
	if (!at)
		return 0;
	last = &gpu->alone[at - 1];
	return last->before_ns + (last->end_ns - last->begin_ns);
}

uint64_t gpu_time_alone_ns(struct gpu_time *gpu, uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? alone_until(gpu, end_ns) - alone_until(gpu, begin_ns) : 0;
}

static struct measured measured_but(const struct fact_span *spans, size_t n, uint64_t process)
{
	struct measured part = { 0 };

	if (n) {
		part.at = spans + ARRAY_BEFORE(n, i, spans[i].process < process);
		part.to = spans + ARRAY_BEFORE(n, i, spans[i].process <= process);
	}
	return part;
}

struct measured measured_of(const struct facts *facts, const struct process *process)
{
	return measured_but(facts->unwatched, facts->n_unwatched, process->id);
}

struct measured measured_of_gpu(const struct facts *facts, const struct process *process)
{
	return measured_but(facts->unmeasured, facts->n_unmeasured, process->id);
}

bool measured_next(struct measured *part, uint64_t end_ns)
{
	uint64_t begin_ns = part->end_ns;

	while (begin_ns < end_ns) {
		while (part->at < part->to && part->at->end_ns <= begin_ns)
			part->at++;

		const struct fact_span *span = part->at < part->to ? part->at : NULL;

		if (!span || span->begin_ns > begin_ns) {
			part->begin_ns = begin_ns;
			part->end_ns = span && span->begin_ns < end_ns ? span->begin_ns : end_ns;
			return true;
		}

		uint64_t until_ns = facts_min(span->end_ns, end_ns);

		part->not_measured_ns += until_ns - begin_ns;
		begin_ns = until_ns;
	}
	return false;
}

/* ---- by classes ------------------------------------------------------------------------------ */

struct by_classes {
	struct measured part;
	uint64_t *ns;
};

static void by_classes_add(void *data, const struct at_once *now)
{
	struct by_classes *by = data;

	for (by->part.end_ns = now->begin_ns;
	     now->classes && measured_next(&by->part, now->end_ns);)
		by->ns[now->classes] += by->part.end_ns - by->part.begin_ns;
}

void gpu_time_by_classes(const struct facts *facts, const struct gpu_time *gpu,
                         uint64_t ns[1 << FACT_CLASSES])
{
	struct by_classes by = { measured_of_gpu(facts, facts->works[gpu->first].process), ns };

	gpu_each(facts, gpu, by_classes_add, &by);
}
