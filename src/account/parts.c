// SPDX-License-Identifier: MIT
#include "account/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

struct part_place {
	struct part_key key;
	struct account_part part;
	UT_hash_handle hh;
};

/* A pool has chain 0. */
struct part_pool {
	struct part_key key;
	double ns, gain_ns;
	double placed_ns, placed_gain_ns; /* see parts_place_all() */
	uint64_t samples;
	UT_hash_handle hh;
};

struct part_pooled_key {
	struct part_key place; /* with its own cause: not always the pool's */
	uint32_t cause;        /* of the pool */
};

/* A place in a pool. */
struct part_pooled {
	struct part_pooled_key key;
	struct part_pool *pool;
	uint64_t samples;
	uint64_t stretches; /* and */
	double ns;          /* of calls that came next there */
	UT_hash_handle hh;
};

struct part_via {
	struct account_via via;
	uint32_t number;
	UT_hash_handle hh;
};

struct parts {
	const struct facts *facts;
	struct part_place *places;
	struct part_pool *pools;
	struct part_pooled *pooled;
	struct part_via *known;
	struct account_via *vias;
	size_t n_vias, room_vias;
};

#define VIAS_MAX  (1u << 18) /* what is beyond is left out of the way */
#define PARTS_MAX (1u << 18) /* places of all, and pools; what is beyond has none */

#define PARTS_EXPECTED 10  /* samples of a pool, from which on their number tells something */
#define PARTS_SEEN     0.8 /* of its time, of which it does not */

struct parts *parts_new(const struct facts *facts)
{
	struct parts *parts = xcalloc(1, sizeof(*parts));

	parts->facts = facts;
	parts->room_vias = 16;
	parts->vias = xcalloc(parts->room_vias, sizeof(*parts->vias));
	parts->n_vias = 1;
	return parts;
}

#define PARTS_FREE_ALL(type, head)                                                                 \
	do {                                                                                       \
		type *one, *next;                                                                  \
                                                                                                   \
		HASH_ITER (hh, head, one, next) {                                                  \
			HASH_DEL(head, one);                                                       \
			free(one);                                                                 \
		}                                                                                  \
	} while (0)

static void parts_empty(struct parts *parts)
{
	PARTS_FREE_ALL(struct part_place, parts->places);
	PARTS_FREE_ALL(struct part_pool, parts->pools);
	PARTS_FREE_ALL(struct part_pooled, parts->pooled);
}

void parts_free(struct parts *parts)
{
	if (!parts)
		return;
	parts_empty(parts);
	PARTS_FREE_ALL(struct part_via, parts->known);
	free(parts->vias);
	free(parts);
}

static struct part_key key_of_cause(const struct part_key *of)
{
	return (struct part_key){ of->cause, 0, FACTS_NONE, 0, 0 };
}

struct account_part *parts_add(struct parts *parts, const struct part_key *of, uint64_t ns,
                               double share)
{
	struct part_place *place;
	struct part_key no_place = key_of_cause(of);
	const struct part_key *key = of;

	HASH_FIND(hh, parts->places, key, sizeof(*key), place);
	if (!place && HASH_COUNT(parts->places) >= PARTS_MAX) {
		key = &no_place;
		HASH_FIND(hh, parts->places, key, sizeof(*key), place);
	}
	if (!place) {
		place = xcalloc(1, sizeof(*place));
		place->key = *key;
		place->part.cause = key->cause;
		place->part.chain = key->chain;
		place->part.thread = key->thread;
		place->part.via = key->via;
		place->part.rival = key->rival;
		HASH_ADD(hh, parts->places, key, sizeof(place->key), place);
	}
	place->part.ns += (double)ns * share;
	place->part.gain_ns += (double)ns;
	place->part.count++;
	return &place->part;
}

static struct part_pool *parts_pool(struct parts *parts, const struct part_key *of)
{
	struct part_key key = *of;
	struct part_pool *pool;

	key.chain = 0;
	HASH_FIND(hh, parts->pools, &key, sizeof(key), pool);
	if (!pool && HASH_COUNT(parts->pools) >= PARTS_MAX) {
		key = key_of_cause(of);
		HASH_FIND(hh, parts->pools, &key, sizeof(key), pool);
	}
	if (!pool) {
		pool = xcalloc(1, sizeof(*pool));
		pool->key = key;
		HASH_ADD(hh, parts->pools, key, sizeof(pool->key), pool);
	}
	return pool;
}

static struct part_pooled *parts_pooled(struct parts *parts, const struct part_key *place,
                                        struct part_pool *pool)
{
	struct part_pooled_key key = { *place, pool->key.cause };
	struct part_pooled *pooled;

	HASH_FIND(hh, parts->pooled, &key, sizeof(key), pooled);
	if (!pooled && HASH_COUNT(parts->pooled) >= PARTS_MAX) {
		key.place = pool->key;
		key.place.cause = place->cause;
		HASH_FIND(hh, parts->pooled, &key, sizeof(key), pooled);
	}
	if (!pooled) {
		pooled = xcalloc(1, sizeof(*pooled));
		pooled->key = key;
		pooled->pool = pool;
		HASH_ADD(hh, parts->pooled, key, sizeof(pooled->key), pooled);
	}
	return pooled;
}

void parts_add_cpu(struct parts *parts, const struct part_key *key, uint64_t ns, double share)
{
	struct part_pool *pool = parts_pool(parts, key);

	pool->ns += (double)ns * share;
	pool->gain_ns += (double)ns;

	struct part_pooled *pooled = parts_pooled(parts, key, pool);

	pooled->ns += (double)ns;
	pooled->stretches++;
}

void parts_add_sample(struct parts *parts, const struct part_key *key, enum account_cause cause)
{
	struct part_pool *pool = parts_pool(parts, key);
	struct part_key own = *key;

	own.cause = cause;
	pool->samples++;
	parts_pooled(parts, &own, pool)->samples++;
}

uint32_t parts_via(struct parts *parts, const struct account_via *via)
{
	struct part_via *known;

	HASH_FIND(hh, parts->known, via, sizeof(*via), known);
	if (known || parts->n_vias >= VIAS_MAX)
		return known ? known->number : via->before;
	known = xcalloc(1, sizeof(*known));
	known->via = *via;
	known->number = (uint32_t)parts->n_vias;
	HASH_ADD(hh, parts->known, via, sizeof(known->via), known);
	if (parts->n_vias == parts->room_vias) {
		parts->room_vias *= 2;
		parts->vias = xrealloc(parts->vias, parts->room_vias * sizeof(*parts->vias));
	}
	parts->vias[parts->n_vias++] = *via;
	return known->number;
}

/*
 * Where waits were not recorded, samples alone tell that a thread ran: what they do not stand for
 * was no time on a CPU, or they were lost.
 */
static void pool_shrink(struct parts *parts, struct part_pool *pool, double sample_ns)
{
	struct part_key unknown = { ACCOUNT_UNKNOWN, 0, pool->key.thread, pool->key.via };
	double seen = (double)pool->samples * sample_ns, share;

	if (pool->key.cause != ACCOUNT_COMPUTING || pool->gain_ns < PARTS_EXPECTED * sample_ns ||
	    seen > PARTS_SEEN * pool->gain_ns)
		return;
	share = seen / pool->gain_ns;

	struct account_part *part = parts_add(parts, &unknown, 0, 0);

	part->ns += pool->ns * (1 - share);
	part->gain_ns += pool->gain_ns * (1 - share);
	pool->ns *= share;
	pool->gain_ns *= share;
}

/* The pool's time goes to its places. */
static void parts_spread(struct parts *parts, struct account *account)
{
	const struct run_stacks *stacks = &parts->facts->run->stacks;
	bool alone = stacks->sample_ns && parts->facts->samples && !parts->facts->rests &&
	             !stacks->blocked && !stacks->host_waits;

	for (struct part_pool *pool = alone ? parts->pools : NULL; pool; pool = pool->hh.next)
		pool_shrink(parts, pool, (double)stacks->sample_ns);
	for (struct part_pooled *pooled = parts->pooled; pooled; pooled = pooled->hh.next) {
		struct part_pool *pool = pooled->pool;
		double share = pool->samples       ? (double)pooled->samples / (double)pool->samples
		               : pool->gain_ns > 0 ? pooled->ns / pool->gain_ns
		                                   : 0;

		if (share <= 0)
			continue;

		struct account_part *part = parts_add(parts, &pooled->key.place, 0, 0);

		part->ns += pool->ns * share;
		part->gain_ns += pool->gain_ns * share;
		part->count += (pool->samples ? pooled->samples : pooled->stretches) - 1;
		*(pool->samples ? &account->sampled_ns : &account->unsampled_ns) +=
			pool->ns * share;
	}
}

/* Those that can stand for each other's places: of one thread, or, wider, of one process. */
static struct part_key part_kin(const struct parts *parts, const struct part_key *of, bool wider)
{
	struct part_key kin = *of;

	kin.chain = kin.rival = 0;
	if (wider) {
		kin.thread = kin.thread == FACTS_NONE
		                     ? FACTS_NONE
		                     : parts->facts->threads[kin.thread].process->id;
		kin.via = !!kin.via;
	}
	return kin;
}

static void part_place_one(struct account_part *part, const struct part_pool *kin)
{
	if (kin->placed_ns > 0)
		part->ns *= part->chain ? 1 + kin->ns / kin->placed_ns : 0;
	if (kin->placed_gain_ns > 0)
		part->gain_ns *= part->chain ? 1 + kin->gain_ns / kin->placed_gain_ns : 0;
}

/* What has no stack, since not all are walked, is at the places of its kin that has. */
static void parts_place_kin(struct parts *parts, bool wider)
{
	PARTS_FREE_ALL(struct part_pool, parts->pools);
	for (struct part_place *place = parts->places; place; place = place->hh.next) {
		struct part_key key = part_kin(parts, &place->key, wider);
		struct part_pool *kin = parts_pool(parts, &key);

		*(place->key.chain ? &kin->placed_ns : &kin->ns) += place->part.ns;
		*(place->key.chain ? &kin->placed_gain_ns : &kin->gain_ns) += place->part.gain_ns;
	}
	for (struct part_place *place = parts->places; place; place = place->hh.next) {
		struct part_key key = part_kin(parts, &place->key, wider);

		if (place->part.cause != ACCOUNT_UNKNOWN)
			part_place_one(&place->part, parts_pool(parts, &key));
	}
}

static int part_order(const void *a, const void *b)
{
	const struct account_part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	if (x->chain != y->chain)
		return x->chain < y->chain ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

void parts_finish(struct parts *parts, struct account *account)
{
	parts_spread(parts, account);
	parts_place_kin(parts, false);
	parts_place_kin(parts, true);
	account->parts = xcalloc(HASH_COUNT(parts->places) + 1, sizeof(*account->parts));
	for (struct part_place *place = parts->places; place; place = place->hh.next) {
		if (place->part.ns <= 0 && place->part.gain_ns <= 0)
			continue;
		account->parts[account->n_parts++] = place->part;
		account->ns += place->part.ns;
	}
	qsort(account->parts, account->n_parts, sizeof(*account->parts), part_order);
	parts_empty(parts);
}

struct account_via *parts_take_vias(struct parts *parts, size_t *n)
{
	struct account_via *vias = parts->vias;

	*n = parts->n_vias;
	parts->vias = NULL;
	return vias;
}
