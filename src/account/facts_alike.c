// SPDX-License-Identifier: MIT
/*
 * Where calls are that have no stack: where those of the same thread are that are alike, by what
 * they ask for, on which stream, and after which calls. Few stacks of launches are walked and none
 * of those that are recorded inside of processes, so that most have their places from samples,
 * which a thread that mostly sleeps has few of. All of the recording counts, also the time between
 * windows of GPU times: a line stays where it is.
 */
#include "account/facts_inside.h"

#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "base/vec.h"

#define ALIKE_BEFORE 2          /* calls before one that it is known by; then by itself alone */
#define ALIKE_MOST   (1u << 16) /* kinds of calls of a thread; those beyond stay as they are */
#define ALIKE_PLACES 256        /* of a kind: more are in the place of the first ones */

struct alike_key {
	struct alike_call {
		uint32_t function, kernel, stream;
	} calls[1 + ALIKE_BEFORE];
};

/* Calls of one kind, and the places of those of them that have one. */
struct alike {
	struct alike_key key;
	uint32_t n_places;
	uint32_t last, next; /* a number of the places and 1; the one that the next call gets */
	bool in;             /* places in calls, none before them: of what is known by itself alone
	                        these say as much */
};

/* The one of the same kind that came before it; 0: it is the first. */
struct alike_place {
	uint32_t chain, before;
};

struct alikes {
	struct fact_thread *thread;
	size_t calls; /* that one is known by, before it */
	struct keyed kinds;
	struct alike_place *places;
	size_t n_places;
};

static struct alike *alikes_of(struct alikes *alikes, size_t number)
{
	struct alike_key key = { 0 };

	for (size_t i = 0; i <= alikes->calls && i <= number; i++) {
		const struct fact_call *call = &alikes->thread->calls[number - i];

		key.calls[i] =
			(struct alike_call){ call->function->id + 1, call->kernel, call->stream };
	}
	return keyed_row(&alikes->kinds, &key, ALIKE_MOST);
}

/* One after the other, and then from the last on again. */
static struct alike_place *alike_next(const struct alikes *alikes, struct alike *kind)
{
	struct alike_place *place = &alikes->places[(kind->next ? kind->next : kind->last) - 1];

	kind->next = place->before;
	return place;
}

static void alikes_add(struct alikes *alikes, size_t number)
{
	const struct fact_call *call = &alikes->thread->calls[number];
	struct alike *kind = alikes_of(alikes, number);
	bool in = alikes->calls && !call->by_sample_before;

	if (!kind || (kind->in && !in))
		return;
	if (!kind->in && in)
		kind->last = kind->next = kind->n_places = 0;
	kind->in = in;
	if (kind->n_places == ALIKE_PLACES) {
		alike_next(alikes, kind)->chain = call->chain;
		return;
	}
	kind->n_places++;
	*VEC_ADD(alikes->places, alikes->n_places) =
		(struct alike_place){ call->chain, kind->last };
	kind->last = (uint32_t)alikes->n_places;
}

/* Each of the kind's places as often as all others. */
static void alikes_give(struct alikes *alikes, size_t number)
{
	struct fact_call *call = &alikes->thread->calls[number];
	struct alike *kind = alikes_of(alikes, number);

	if (!kind || !kind->last || (call->chain && !kind->in))
		return;
	call->chain = alike_next(alikes, kind)->chain;
	call->by_sample = true;
	call->by_sample_before = !kind->in;
}

/* Some of its calls. */
static bool thread_lacks_places(const struct facts *facts, const struct fact_thread *thread)
{
	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i))
		if (!thread->calls[i].chain || thread->calls[i].by_sample_before)
			return true;
	return false;
}

static void thread_alike(const struct facts *facts, struct fact_thread *thread, size_t calls)
{
	struct alikes alikes = { .thread = thread,
		                 .calls = calls,
		                 .kinds = { .row_bytes = sizeof(struct alike),
		                            .key_bytes = sizeof(struct alike_key) } };

	if (!thread_lacks_places(facts, thread))
		return;
	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i))
		if (thread->calls[i].chain)
			alikes_add(&alikes, i);
	for (size_t i = 0; i < thread->n_calls && alikes.n_places; i = spill_next(facts->spill, i))
		if (!thread->calls[i].chain || thread->calls[i].by_sample_before)
			alikes_give(&alikes, i);
	keyed_free(&alikes.kinds);
	free(alikes.places);
}

void facts_alike(struct facts *facts)
{
	for (size_t i = 0; i < facts->n_threads; i++) {
		thread_alike(facts, &facts->threads[i], ALIKE_BEFORE);
		thread_alike(facts, &facts->threads[i], 0);
	}
}
