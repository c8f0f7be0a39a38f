// SPDX-License-Identifier: MIT
#include "analysis/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/correlations.h"
#include "base/xalloc.h"

#define PLACES     (1u << 10) /* at first; it grows as they are needed */
#define PLACES_FEW (1u << 16) /* at most, where no activity has come */
#define NONE       UINT32_MAX

/* By age. */
struct queue {
	uint32_t oldest, newest, n;
};

struct pairs {
	char *places; /* those from `used` on were never used */
	uint32_t *chains;
	uint32_t n, used, most, free; /* n: a power of two, but for the last step to `most` */
	uint32_t n_chains;            /* a power of two */
	struct queue waiting[2], met; /* [1]: calls, [0]: activities */
	size_t bytes;                 /* of a place */
	struct correlations *gone;    /* halves that left to make room; NULL: none */
	uint64_t unjoined;
	void (*leave)(void *data, const struct half *half);
	void *data;
};

static const struct queue empty = { NONE, NONE, 0 };

struct pairs *pairs_new(size_t bytes, void (*leave)(void *data, const struct half *half),
                        void *data)
{
	struct pairs *pairs = xcalloc(1, sizeof(*pairs));

	pairs->most = PLACES_FEW;
	pairs->free = NONE;
	pairs->waiting[0] = pairs->waiting[1] = pairs->met = empty;
	pairs->bytes = bytes;
	pairs->leave = leave;
	pairs->data = data;
	return pairs;
}

void pairs_free(struct pairs *pairs)
{
	if (!pairs)
		return;
	correlations_free(pairs->gone);
	free(pairs->places);
	free(pairs->chains);
	free(pairs);
}

void pairs_expect_late(struct pairs *pairs, size_t bytes)
{
	pairs->most = (uint32_t)(bytes / (pairs->bytes + sizeof(*pairs->chains)));
}

uint64_t pairs_unjoined(const struct pairs *pairs)
{
	return pairs->unjoined;
}

/* ---- places --------------------------------------------------------------------------------- */

static struct half *at(const struct pairs *pairs, uint32_t place)
{
	return (struct half *)(pairs->places + place * pairs->bytes);
}

static uint32_t place_of(const struct pairs *pairs, const struct half *half)
{
	return (uint32_t)((size_t)((const char *)half - pairs->places) / pairs->bytes);
}

static uint32_t *chain_of(const struct pairs *pairs, uint32_t process, uint64_t correlation)
{
	/* the numbers of a process follow each other: no two of some thousand meet */
	return &pairs->chains[(correlation + process * 0x9e3779b1ull) & (pairs->n_chains - 1)];
}

static void into_chain(struct pairs *pairs, struct half *half)
{
	uint32_t *chain = chain_of(pairs, half->process, half->correlation);

	half->chain = *chain;
	*chain = place_of(pairs, half);
}

static void out_of_chain(struct pairs *pairs, const struct half *half)
{
	uint32_t *link = chain_of(pairs, half->process, half->correlation);

	while (*link != place_of(pairs, half))
		link = &at(pairs, *link)->chain;
	*link = half->chain;
}

static void grow_chains(struct pairs *pairs)
{
	pairs->n_chains = pairs->n_chains ? 2 * pairs->n_chains : PLACES;
	pairs->chains = xrealloc(pairs->chains, pairs->n_chains * sizeof(*pairs->chains));
	memset(pairs->chains, 0xff, pairs->n_chains * sizeof(*pairs->chains));
	for (uint32_t i = 0; i < pairs->used; i++) {
		if (at(pairs, i)->correlation)
			into_chain(pairs, at(pairs, i));
	}
}

static void grow(struct pairs *pairs)
{
	uint32_t n = pairs->n ? 2 * pairs->n : PLACES;

	pairs->n = n < pairs->most ? n : pairs->most;
	pairs->places = xrealloc(pairs->places, pairs->n * pairs->bytes);
	if (pairs->n_chains < pairs->n)
		grow_chains(pairs);
}

/* ---- queues --------------------------------------------------------------------------------- */

static struct queue *queue_of(struct pairs *pairs, const struct half *half)
{
	return half->met ? &pairs->met : &pairs->waiting[half->call];
}

static void into_queue(struct pairs *pairs, struct half *half)
{
	struct queue *queue = queue_of(pairs, half);
	uint32_t place = place_of(pairs, half);

	half->older = queue->newest;
	half->newer = NONE;
	if (queue->newest == NONE)
		queue->oldest = place;
	else
		at(pairs, queue->newest)->newer = place;
	queue->newest = place;
	queue->n++;
}

static void out_of_queue(struct pairs *pairs, const struct half *half)
{
	struct queue *queue = queue_of(pairs, half);

	if (half->older == NONE)
		queue->oldest = half->newer;
	else
		at(pairs, half->older)->newer = half->newer;
	if (half->newer == NONE)
		queue->newest = half->older;
	else
		at(pairs, half->newer)->older = half->older;
	queue->n--;
}

/* ---- halves --------------------------------------------------------------------------------- */

void *pairs_find(struct pairs *pairs, uint32_t process, uint64_t correlation)
{
	if (!pairs->n)
		return NULL;
	for (uint32_t i = *chain_of(pairs, process, correlation); i != NONE;
	     i = at(pairs, i)->chain) {
		if (at(pairs, i)->correlation == correlation && at(pairs, i)->process == process)
			return at(pairs, i);
	}
	return NULL;
}

void pairs_remove(struct pairs *pairs, void *removed)
{
	struct half *half = removed;

	out_of_queue(pairs, half);
	out_of_chain(pairs, half);
	half->correlation = 0;
	half->chain = pairs->free;
	pairs->free = place_of(pairs, half);
}

void pairs_meet(struct pairs *pairs, void *met)
{
	struct half *half = met;

	if (half->met)
		return;
	out_of_queue(pairs, half);
	half->met = true;
	into_queue(pairs, half);
}

static void let_go(struct pairs *pairs, struct half *half)
{
	if (!half->met && pairs->leave)
		pairs->leave(pairs->data, half);
	pairs_remove(pairs, half);
}

/* The other half may come yet: then it is known that they were not joined. */
static void push_out(struct pairs *pairs, struct half *half)
{
	if (!pairs->gone)
		pairs->gone = correlations_new();
	correlations_mark(pairs->gone, half->process, half->correlation,
	                  half->call ? CORRELATION_CALL : CORRELATION_WORK);
	let_go(pairs, half);
}

/*
 * Few activities come before their calls. Where many wait their calls were not seen: those must not
 * take the room of calls whose activities come.
 */
static void keep_bound(struct pairs *pairs, bool call)
{
	uint32_t activities = pairs->most / 8;
	const struct queue *queue = &pairs->waiting[call];

	if (queue->n >= (call ? pairs->most - activities : activities))
		push_out(pairs, at(pairs, queue->oldest));
}

static void make_room(struct pairs *pairs)
{
	bool many_met = pairs->met.n > pairs->n / 2 && pairs->n >= PLACES_FEW;

	if (pairs->n < pairs->most && !many_met)
		grow(pairs);
	else
		let_go(pairs, at(pairs, pairs->met.oldest));
}

static struct half *free_place(struct pairs *pairs)
{
	struct half *half;

	if (pairs->free == NONE && pairs->used == pairs->n)
		make_room(pairs);
	if (pairs->free == NONE)
		return at(pairs, pairs->used++);
	half = at(pairs, pairs->free);
	pairs->free = half->chain;
	return half;
}

static void note_gone(struct pairs *pairs, uint32_t process, uint64_t correlation, bool call)
{
	unsigned other = call ? CORRELATION_WORK : CORRELATION_CALL;

	if (pairs->gone && correlations_marks(pairs->gone, process, correlation) & other)
		pairs->unjoined++;
}

void pairs_missed(struct pairs *pairs, uint32_t process, uint64_t correlation)
{
	note_gone(pairs, process, correlation, false);
}

void *pairs_add(struct pairs *pairs, uint32_t process, uint64_t correlation, bool call)
{
	struct half *half = pairs_find(pairs, process, correlation);

	if (half)
		let_go(pairs, half);
	note_gone(pairs, process, correlation, call);
	keep_bound(pairs, call);
	half = free_place(pairs);
	memset(half, 0, pairs->bytes);
	half->correlation = correlation;
	half->process = process;
	half->call = call;
	into_chain(pairs, half);
	into_queue(pairs, half);
	return half;
}

void pairs_end(struct pairs *pairs)
{
	while (pairs->met.n)
		let_go(pairs, at(pairs, pairs->met.oldest));
	for (int call = 0; call < 2; call++) {
		while (pairs->waiting[call].n)
			let_go(pairs, at(pairs, pairs->waiting[call].oldest));
	}
}
