// SPDX-License-Identifier: MIT
#include "account/parts.h"

#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "base/order.h"
#include "base/xalloc.h"

/* A place, and what it has of its pool. */
struct part_place {
	struct place_key {
		struct part_key key;
		uint32_t pool; /* the cause of its pool and 1; 0: the same as its own */
	} key;
	struct account_part part;
	uint64_t samples;
	double weight;      /* of them */
	uint64_t stretches; /* and */
	double ns;          /* of calls that came next there */
};

/* A pool has chain 0. */
struct part_pool {
	struct part_key key;
	double ns, gain_ns;
	double placed_ns, placed_gain_ns; /* see parts_place_kin() */
	double weight;                    /* of samples */
};

struct parts {
	const struct facts *facts;
	struct keyed places, pools;
	struct keyed vias; /* struct account_via; the first is none */
	size_t left;       /* places for all accounts to come */
	bool no_room;      /* in this one */
};

#define VIAS_MAX (1u << 18) /* what is beyond is left out of the way */

/*
 * Places of all accounts, of which one may have half of those that are left, and as many pools. All
 * places are gone through for each thing to change, each with its callers.
 */
#define PARTS_MAX   (1u << 17)
#define PARTS_LEAST 1024 /* that an account may have in any case */

#define PARTS_EXPECTED 10  /* samples of a pool, from which on their number tells something */
#define PARTS_SEEN     0.8 /* of its time, of which it does not */

struct parts *parts_new(const struct facts *facts)
{
	struct parts *parts = xcalloc(1, sizeof(*parts));

	parts->facts = facts;
	parts->left = PARTS_MAX;
	parts->places = (struct keyed){ .row_bytes = sizeof(struct part_place),
		                        .key_bytes = sizeof(struct place_key) };
	parts->pools = (struct keyed){ .row_bytes = sizeof(struct part_pool),
		                       .key_bytes = sizeof(struct part_key) };
	parts->vias = (struct keyed){ .row_bytes = sizeof(struct account_via),
		                      .key_bytes = sizeof(struct account_via) };
	keyed_row(&parts->vias, &(struct account_via){ .thread = FACTS_NONE }, 1);
	return parts;
}

void parts_free(struct parts *parts)
{
	if (!parts)
		return;
	keyed_free(&parts->places);
	keyed_free(&parts->pools);
	keyed_free(&parts->vias);
	free(parts);
}

static struct part_key key_of_cause(const struct part_key *of)
{
	return (struct part_key){ .cause = of->cause, .thread = FACTS_NONE };
}

static size_t parts_most(const struct parts *parts)
{
	return parts->left / 2 > PARTS_LEAST ? parts->left / 2 : PARTS_LEAST;
}

/* `no_place` where there is no room for another place: for that there always is, so of these there
 * are no more than pools. */
static struct part_place *parts_place(struct parts *parts, struct place_key key,
                                      struct part_key no_place)
{
	struct part_place *place = keyed_row(&parts->places, &key, parts_most(parts));

	if (!place) {
		parts->no_room = true;
		key.key = no_place;
		place = keyed_row(&parts->places, &key, SIZE_MAX);
	}
	place->part.cause = place->key.key.cause;
	place->part.chain = place->key.key.chain;
	place->part.thread = place->key.key.thread;
	place->part.via = place->key.key.via;
	place->part.rival = place->key.key.rival;
	place->part.awaited = place->key.key.awaited;
	return place;
}

struct account_part *parts_add(struct parts *parts, const struct part_key *key, double ns,
                               double share)
{
	struct account_part *part =
		&parts_place(parts, (struct place_key){ *key, 0 }, key_of_cause(key))->part;

	part->ns += ns * share;
	part->gain_ns += ns * (key->awaited ? share : 1);
	part->count++;
	return part;
}

void parts_take_call(struct account_part *part, const struct fact_call *call)
{
	uint64_t ns = call->end_ns - call->begin_ns;

	if (part->call && part->call_ns >= ns)
		return;
	part->call = call;
	part->call_ns = ns;
}

static struct part_key pool_key(const struct part_key *of)
{
	struct part_key key = *of;

	key.chain = 0;
	return key;
}

static struct part_pool *parts_pool(struct parts *parts, const struct part_key *of)
{
	struct part_key key = pool_key(of), no_place = key_of_cause(of);
	struct part_pool *pool = keyed_row(&parts->pools, &key, parts_most(parts));

	parts->no_room |= !pool;
	return pool ? pool : keyed_row(&parts->pools, &no_place, SIZE_MAX);
}

static struct part_pool *parts_pool_of(struct parts *parts, const struct part_place *place)
{
	struct part_key key = place->key.key;

	if (place->key.pool)
		key.cause = place->key.pool - 1;
	return parts_pool(parts, &key);
}

void parts_add_cpu(struct parts *parts, const struct part_key *key, double ns, double share)
{
	struct part_pool *pool = parts_pool(parts, key);
	struct part_place *place = parts_place(parts, (struct place_key){ *key, 0 }, pool->key);

	pool->ns += ns * share;
	pool->gain_ns += ns * (key->awaited ? share : 1);
	place->ns += ns * (key->awaited ? share : 1);
	place->stretches++;
}

void parts_add_sample(struct parts *parts, const struct part_key *key, enum account_cause cause,
                      double weight)
{
	struct place_key own = { *key, key->cause == cause ? 0 : key->cause + 1 };
	struct part_pool *pool = parts_pool(parts, key);
	struct part_key no_place = pool->key;
	struct part_place *place;

	own.key.cause = no_place.cause = cause;
	pool->weight += weight;
	place = parts_place(parts, own, no_place);
	place->weight += weight;
	place->samples++;
}

uint32_t parts_via(struct parts *parts, const struct account_via *via)
{
	const struct account_via *row = keyed_row(&parts->vias, via, VIAS_MAX);

	return row ? (uint32_t)keyed_number(&parts->vias, row) : via->before;
}

/*
 * Where waits were not recorded, samples alone tell that a thread ran: what they do not stand for
 * was no time on a CPU, or they were lost.
 */
static void pool_shrink(struct parts *parts, struct part_pool *pool, double sample_ns)
{
	struct part_key host = { .cause = ACCOUNT_HOST,
		                 .thread = pool->key.thread,
		                 .via = pool->key.via };
	double seen = pool->weight * sample_ns, share;

	if (pool->key.cause != ACCOUNT_COMPUTING || pool->gain_ns < PARTS_EXPECTED * sample_ns ||
	    seen > PARTS_SEEN * pool->gain_ns)
		return;
	share = seen / pool->gain_ns;

	struct account_part *part = parts_add(parts, &host, 0, 0);

	part->ns += pool->ns * (1 - share);
	part->gain_ns += pool->gain_ns * (1 - share);
	pool->ns *= share;
	pool->gain_ns *= share;
}

static void place_spread(struct parts *parts, const struct part_place *place,
                         struct account *account)
{
	uint64_t samples = place->samples, stretches = place->stretches;
	const struct part_pool *pool = samples || stretches ? parts_pool_of(parts, place) : NULL;
	double share = !pool               ? 0
	               : pool->weight > 0  ? place->weight / pool->weight
	               : pool->gain_ns > 0 ? place->ns / pool->gain_ns
	                                   : 0;

	if (share <= 0)
		return;

	struct account_part *part = parts_add(parts, &place->key.key, 0, 0);

	part->ns += pool->ns * share;
	part->gain_ns += pool->gain_ns * share;
	part->count += (pool->weight > 0 ? samples : stretches) - 1;
	*(pool->weight > 0 ? &account->sampled_ns : &account->unsampled_ns) += pool->ns * share;
}

/* The pools' time goes to their places. */
static void parts_spread(struct parts *parts, struct account *account)
{
	const struct run_stacks *stacks = &parts->facts->run->stacks;
	bool alone = stacks->sample_ns && parts->facts->files_samples &&
	             !parts->facts->files_rests && !stacks->blocked && !stacks->host_waits;

	for (size_t i = 0; alone && i < parts->pools.n; i++)
		pool_shrink(parts, keyed_at(&parts->pools, i), (double)stacks->sample_ns);
	for (size_t i = 0, n = parts->places.n; i < n; i++)
		place_spread(parts, keyed_at(&parts->places, i), account);
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
	keyed_empty(&parts->pools);
	for (size_t i = 0; i < parts->places.n; i++) {
		const struct part_place *place = keyed_at(&parts->places, i);
		struct part_key key = part_kin(parts, &place->key.key, wider);
		struct part_pool *kin = parts_pool(parts, &key);

		*(place->key.key.chain ? &kin->placed_ns : &kin->ns) += place->part.ns;
		*(place->key.key.chain ? &kin->placed_gain_ns : &kin->gain_ns) +=
			place->part.gain_ns;
	}
	for (size_t i = 0; i < parts->places.n; i++) {
		struct part_place *place = keyed_at(&parts->places, i);
		struct part_key key = part_kin(parts, &place->key.key, wider);

		if (!account_cause_is_unknown(place->part.cause))
			part_place_one(&place->part, parts_pool(parts, &key));
	}
}

ORDER_BY(part_order, struct account_part, DOWN(ns), UP(cause), UP(chain), UP(thread));

void parts_finish(struct parts *parts, struct account *account)
{
	parts_spread(parts, account);
	parts_place_kin(parts, false);
	parts_place_kin(parts, true);
	account->parts = xcalloc(parts->places.n + 1, sizeof(*account->parts));
	for (size_t i = 0; i < parts->places.n; i++) {
		const struct account_part *part =
			&((const struct part_place *)keyed_at(&parts->places, i))->part;

		if (part->ns <= 0 && part->gain_ns <= 0)
			continue;
		account->parts[account->n_parts++] = *part;
		account->ns += part->ns;
	}
	SORT(account->parts, account->n_parts, part_order);
	parts->left -= parts->left > account->n_parts ? account->n_parts : parts->left;
	account->no_room = parts->no_room;
	parts->no_room = false;
	keyed_empty(&parts->places);
	keyed_empty(&parts->pools);
}

struct account_via *parts_take_vias(struct parts *parts, size_t *n)
{
	struct account_via *vias = keyed_at(&parts->vias, 0);

	*n = parts->vias.n;
	parts->vias.rows = NULL;
	keyed_empty(&parts->vias);
	return vias;
}
