// SPDX-License-Identifier: MIT
#include "report/gaps/gap_samples.h"

#include <stdlib.h>

#include "analysis/by_id.h"

#define CHUNK       64
#define CHUNKS_MOST (GAP_SAMPLES_KEPT / CHUNK)
#define NEAR        8            /* samples that are looked at one by one before a search */
#define BLOCKED     (1ull << 63) /* beside the weight, which is never that long */

struct kept_sample {
	uint64_t time_ns, weight; /* weight: ns, and BLOCKED */
	const struct stack *stack;
	uint32_t who;
	uint8_t wait;        /* enum wait_kind */
	bool in_call, asked; /* asked: a call ended since, and was told of */
};

/* Samples of one thread, in the order of their times. */
struct chunk {
	struct chunk *before, *after; /* of this thread */
	struct chunk *newer;          /* that was begun next, of whatever thread */
	uint32_t thread, n;
	struct kept_sample at[CHUNK];
};

struct sampled_thread {
	struct chunk *first, *last;
	struct chunk *looked_at; /* last: the next gap is mostly near, */
	uint32_t looked_from;    /* and the sample there that its search begins with */
};

struct gap_samples {
	struct sampled_thread *threads; /* by id */
	size_t n_threads, n_chunks;
	struct chunk *oldest, *newest;
	struct chunk *spare; /* by `newer` */
};

struct gap_samples *gap_samples_new(void)
{
	return xcalloc(1, sizeof(struct gap_samples));
}

static void free_chunks(struct chunk *chunk)
{
	struct chunk *newer;

	for (; chunk; chunk = newer) {
		newer = chunk->newer;
		free(chunk);
	}
}

void gap_samples_free(struct gap_samples *samples)
{
	if (!samples)
		return;
	free_chunks(samples->oldest);
	free_chunks(samples->spare);
	free(samples->threads);
	free(samples);
}

static uint64_t last_ns(const struct chunk *chunk)
{
	return chunk->at[chunk->n - 1].time_ns;
}

/* ---- keeping ------------------------------------------------------------------------------- */

/* The oldest of all is the first of its thread, since a thread's come one after the other. */
static struct chunk *take_oldest(struct gap_samples *samples)
{
	struct chunk *chunk = samples->oldest;
	struct sampled_thread *thread = &samples->threads[chunk->thread];

	samples->oldest = chunk->newer;
	thread->first = chunk->after;
	if (thread->first)
		thread->first->before = NULL;
	else
		thread->last = NULL;
	if (thread->looked_at == chunk) {
		thread->looked_at = thread->first;
		thread->looked_from = 0;
	}
	return chunk;
}

static struct chunk *new_chunk(struct gap_samples *samples)
{
	struct chunk *chunk = samples->spare;

	if (samples->n_chunks == CHUNKS_MOST)
		return take_oldest(samples);
	samples->n_chunks++;
	if (!chunk)
		return xmalloc(sizeof(*chunk));
	samples->spare = chunk->newer;
	return chunk;
}

void gap_samples_forget(struct gap_samples *samples, uint64_t until_ns)
{
	while (samples->oldest && last_ns(samples->oldest) < until_ns) {
		struct chunk *chunk = take_oldest(samples);

		chunk->newer = samples->spare;
		samples->spare = chunk;
		samples->n_chunks--;
	}
}

static struct chunk *add_chunk(struct gap_samples *samples, uint32_t id)
{
	struct chunk *chunk = new_chunk(samples);
	struct sampled_thread *thread = &samples->threads[id];

	chunk->thread = id;
	chunk->n = 0;
	chunk->before = thread->last;
	chunk->after = chunk->newer = NULL;
	if (thread->last)
		thread->last->after = chunk;
	else
		thread->first = chunk;
	thread->last = chunk;
	if (samples->oldest)
		samples->newest->newer = chunk;
	else
		samples->oldest = chunk;
	samples->newest = chunk;
	return chunk;
}

static void keep(struct gap_samples *samples, uint32_t id, const struct kept_sample *kept)
{
	struct chunk *chunk;

	samples->threads =
		by_id_room(samples->threads, &samples->n_threads, sizeof(*samples->threads), id);
	chunk = samples->threads[id].last;
	if (!chunk || chunk->n == CHUNK)
		chunk = add_chunk(samples, id);
	chunk->at[chunk->n++] = *kept;
}

void gap_samples_add(struct gap_samples *samples, uint32_t id, uint64_t time_ns,
                     const struct sample *sample)
{
	keep(samples, id,
	     &(struct kept_sample){
		     .time_ns = time_ns,
		     .weight = (sample->weight_ns & ~BLOCKED) |
	                       (sample->kind == SAMPLE_OFF_CPU ? BLOCKED : 0),
		     .stack = sample->stack,
	     });
}

void gap_samples_add_part(struct gap_samples *samples, uint32_t id, const struct gap_part *part)
{
	keep(samples, id,
	     &(struct kept_sample){ .time_ns = part->end_ns,
	                            .weight = (part->ns & ~BLOCKED) | BLOCKED,
	                            .stack = part->stack,
	                            .who = part->who,
	                            .wait = (uint8_t)part->wait });
}

void gap_samples_call(struct gap_samples *samples, uint32_t id, uint64_t begin_ns, uint64_t end_ns)
{
	struct chunk *chunk = id < samples->n_threads ? samples->threads[id].last : NULL;

	for (; chunk; chunk = chunk->before) {
		for (uint32_t i = chunk->n; i--;) {
			struct kept_sample *kept = &chunk->at[i];

			/* calls follow each other, but in a damaged trace */
			if (kept->asked || kept->time_ns <= begin_ns)
				return;
			kept->asked = true;
			kept->in_call = kept->time_ns <= end_ns;
		}
	}
}

uint64_t gap_samples_due(const struct gap_samples *samples, uint32_t thread)
{
	const struct chunk *oldest = samples->oldest, *last = NULL;

	if (thread < samples->n_threads)
		last = samples->threads[thread].last;
	if (samples->n_chunks < CHUNKS_MOST || (last && last->n < CHUNK))
		return 0;
	return last_ns(oldest);
}

/* ---- looking up ---------------------------------------------------------------------------- */

/* The first with a sample that is not earlier; NULL: there is none. */
static struct chunk *find_chunk(struct sampled_thread *thread, uint64_t begin_ns)
{
	struct chunk *chunk = thread->looked_at ? thread->looked_at : thread->first;

	while (chunk && chunk->before && chunk->at[0].time_ns >= begin_ns)
		chunk = chunk->before;
	while (chunk && last_ns(chunk) < begin_ns) {
		thread->looked_at = chunk;
		chunk = chunk->after;
	}
	if (chunk)
		thread->looked_at = chunk;
	return chunk;
}

/* The first that is not earlier, from `low` on. */
static uint32_t find_in_chunk(const struct chunk *chunk, uint32_t low, uint64_t begin_ns)
{
	uint32_t high = chunk->n, near = low + NEAR < high ? low + NEAR : high;

	while (low < near && chunk->at[low].time_ns < begin_ns)
		low++;
	if (low < near)
		return low;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (chunk->at[middle].time_ns < begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* From where the last search began, if nothing before that can be in this time. */
static struct chunk *find_from(struct sampled_thread *thread, uint64_t begin_ns)
{
	struct chunk *chunk = thread->looked_at;
	uint32_t from = thread->looked_from;

	if (!chunk || !from || from >= chunk->n || chunk->at[from - 1].time_ns >= begin_ns ||
	    last_ns(chunk) < begin_ns) {
		chunk = find_chunk(thread, begin_ns);
		from = 0;
	}
	if (chunk)
		thread->looked_from = find_in_chunk(chunk, from, begin_ns);
	return chunk;
}

/* False: all that follow are of a later time. A thread's samples do not overlap, so the first that
 * ends later is the last that counts, whatever a damaged trace says. */
static bool tell_one(const struct kept_sample *kept, uint64_t begin_ns, uint64_t end_ns,
                     gap_samples_tell tell, void *data)
{
	uint64_t weight_ns = kept->weight & ~BLOCKED, from_ns, to_ns;
	struct gap_sampled sampled = { .stack = kept->stack,
		                       .ns = weight_ns,
		                       .in_call = kept->in_call,
		                       .wait = (enum wait_kind)kept->wait,
		                       .who = kept->who };

	if (!(kept->weight & BLOCKED)) {
		if (kept->time_ns >= end_ns)
			return false;
		tell(data, &sampled);
		return true;
	}
	from_ns = kept->time_ns > weight_ns ? kept->time_ns - weight_ns : 0;
	if (from_ns >= end_ns)
		return false;
	from_ns = from_ns > begin_ns ? from_ns : begin_ns;
	to_ns = kept->time_ns < end_ns ? kept->time_ns : end_ns;
	sampled.blocked = true;
	sampled.ns = to_ns > from_ns ? to_ns - from_ns : 0;
	if (sampled.ns)
		tell(data, &sampled);
	return kept->time_ns < end_ns;
}

void gap_samples_in(struct gap_samples *samples, uint32_t id, uint64_t begin_ns, uint64_t end_ns,
                    gap_samples_tell tell, void *data)
{
	struct chunk *chunk;

	if (id >= samples->n_threads)
		return;
	chunk = find_from(&samples->threads[id], begin_ns);
	for (uint32_t i = chunk ? samples->threads[id].looked_from : 0; chunk; i = 0) {
		for (; i < chunk->n; i++) {
			if (!tell_one(&chunk->at[i], begin_ns, end_ns, tell, data))
				return;
		}
		chunk = chunk->after;
	}
}
