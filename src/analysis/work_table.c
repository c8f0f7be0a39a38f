// SPDX-License-Identifier: MIT
#include "analysis/work_table.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/hash.h"
#include "base/xalloc.h"

#define PLACES (1u << 10) /* at first; it grows as they are needed */

static const struct work_queue empty = { WORK_NONE, WORK_NONE, 0, { WORK_NONE, WORK_NONE } };

void work_table_init(struct work_table *table, size_t bytes)
{
	table->most = (uint32_t)(bytes / (sizeof(*table->places) + sizeof(*table->chains)));
	table->limit = table->most;
	table->free = WORK_NONE;
	table->maybes = table->met = table->met_graphs = empty;
	for (uint64_t i = 0; i < 2; i++)
		table->secret[i] = hash_long(&i, sizeof(i)) | 1;
}

void work_table_free(struct work_table *table)
{
	FREE_ALL(table->places, table->chains, table->open);
}

/* ---- places --------------------------------------------------------------------------------- */

/*
 * The numbers of a process follow each other, so a stretch of them takes a line of the cache, a
 * chain each. Which one, nobody can reckon who chooses numbers: the upper bits of a product with a
 * secret (Dietzfelbinger's multiply-shift), at a third of hash_long's price.
 */
#define STRETCH_SHIFT 4

static inline uint32_t *chain_of(const struct work_table *table, const struct process *process,
                                 uint64_t correlation)
{
	uint64_t spread =
		(correlation >> STRETCH_SHIFT) * table->secret[0] + process->id * table->secret[1];
	uint64_t begin = spread >> table->stretches_shift << STRETCH_SHIFT;

	return &table->chains[begin | (correlation & ((1u << STRETCH_SHIFT) - 1))];
}

static void into_chain(struct work_table *table, struct work_place *place)
{
	uint32_t *chain = chain_of(table, place->call.process, place->call.correlation);

	place->chain = *chain;
	*chain = work_table_number(table, place);
}

static void out_of_chain(struct work_table *table, const struct work_place *place)
{
	uint32_t *link = chain_of(table, place->call.process, place->call.correlation);

	while (*link != work_table_number(table, place))
		link = &table->places[*link].chain;
	*link = place->chain;
}

/* Two for a place, so that few are shared; but where all places are used, as few as will do. */
static uint32_t chains_for(const struct work_table *table)
{
	uint32_t n = table->n_chains ? table->n_chains : PLACES;

	while (n < 2 * table->n && n < table->most)
		n *= 2;
	return n;
}

void work_table_grow(struct work_table *table)
{
	uint32_t n = table->n ? 2 * table->n : PLACES, had = table->n_chains;

	table->n = n < table->limit ? n : table->limit;
	table->places = xrealloc(table->places, table->n * sizeof(*table->places));
	table->n_chains = chains_for(table);
	if (table->n_chains == had)
		return;
	table->stretches_shift = 64 + STRETCH_SHIFT - (unsigned)__builtin_ctz(table->n_chains);
	table->chains = xrealloc(table->chains, table->n_chains * sizeof(*table->chains));
	memset(table->chains, 0xff, table->n_chains * sizeof(*table->chains));
	for (uint32_t i = 0; i < table->used; i++) {
		if (table->places[i].call.queue != WORK_FREE)
			into_chain(table, &table->places[i]);
	}
}

/* Both lines of a place that is used soon. */
static inline void fetch(const struct work_table *table, uint32_t at)
{
	const struct work_place *place = table->places + at;

	if (at == WORK_NONE)
		return;
	__builtin_prefetch(place);
	__builtin_prefetch((const char *)(place + 1) - 1);
}

static inline uint32_t after(const struct work_table *table, uint32_t at)
{
	return at == WORK_NONE ? WORK_NONE : table->places[at].newer;
}

struct work_place *work_table_take(struct work_table *table)
{
	struct work_place *place;

	if (table->free == WORK_NONE)
		return table->used < table->n ? &table->places[table->used++] : NULL;
	place = &table->places[table->free];
	table->free = place->chain;
	fetch(table, table->free);
	return place;
}

struct work_place *work_table_find_hashed(const struct work_table *table,
                                          const struct process *process, uint64_t correlation)
{
	if (!table->n)
		return NULL;
	for (uint32_t i = *chain_of(table, process, correlation); i != WORK_NONE;
	     i = table->places[i].chain) {
		if (work_place_is(&table->places[i], process, correlation))
			return &table->places[i];
	}
	return NULL;
}

/* ---- queues --------------------------------------------------------------------------------- */

static __attribute__((noinline)) void make_open(struct work_table *table, uint32_t process)
{
	size_t had = table->n_open;

	table->open = by_id_room(table->open, &table->n_open, sizeof(*table->open), process);
	while (had < table->n_open)
		table->open[had++] = empty;
}

static inline struct work_queue *open_of(struct work_table *table, const struct process *process)
{
	if (__builtin_expect(process->id >= table->n_open, 0))
		make_open(table, process->id);
	return &table->open[process->id];
}

static inline struct work_queue *queue_of(struct work_table *table, const struct work_call *call)
{
	if (call->queue == WORK_OPEN)
		return open_of(table, call->process);
	if (call->queue == WORK_MAY)
		return &table->maybes;
	return call->queue == WORK_MET ? &table->met : &table->met_graphs;
}

static inline void into_queue(struct work_table *table, struct work_place *place,
                              struct work_queue *queue)
{
	uint32_t at = work_table_number(table, place);

	place->older = queue->newest;
	place->newer = WORK_NONE;
	if (queue->newest == WORK_NONE)
		queue->oldest = at;
	else
		table->places[queue->newest].newer = at;
	queue->newest = at;
	queue->n++;
}

static inline void out_of_queue(struct work_table *table, const struct work_place *place,
                                struct work_queue *queue)
{
	if (place->older == WORK_NONE)
		queue->oldest = place->newer;
	else
		table->places[place->older].newer = place->newer;
	if (place->newer == WORK_NONE)
		queue->newest = place->older;
	else
		table->places[place->newer].older = place->older;
	queue->n--;
}

static inline void count_open(struct work_table *table, struct work_queue *queue,
                              struct work_place *place)
{
	table->open_calls++;
	table->processes += queue->n == 1;
	if (queue->expected[0] == WORK_NONE)
		queue->expected[0] = work_table_number(table, place);
}

static inline void uncount_open(struct work_table *table, const struct work_queue *queue)
{
	table->open_calls--;
	table->processes -= !queue->n;
}

void work_table_add(struct work_table *table, struct work_place *place, enum work_queue_kind kind)
{
	struct work_queue *queue;

	place->call.queue = (uint8_t)kind;
	queue = queue_of(table, &place->call);
	into_chain(table, place);
	into_queue(table, place, queue);
	if (kind == WORK_OPEN)
		count_open(table, queue, place);
}

void work_table_drop(struct work_table *table, struct work_place *place)
{
	struct work_queue *queue = queue_of(table, &place->call);

	out_of_queue(table, place, queue);
	out_of_chain(table, place);
	if (place->call.queue == WORK_OPEN)
		uncount_open(table, queue);
	place->call.queue = WORK_FREE;
	place->chain = table->free;
	table->free = work_table_number(table, place);
}

/* Work that is found near neither of the two begins another row, and the older one is forgotten. */
static inline void expect_after(struct work_queue *queue, uint32_t at, uint32_t newer)
{
	if (queue->expected[0] != at)
		queue->expected[1] = queue->expected[0];
	queue->expected[0] = newer;
}

void work_table_meet(struct work_table *table, struct work_place *place, enum work_queue_kind kind)
{
	struct work_queue *queue = queue_of(table, &place->call);

	out_of_queue(table, place, queue);
	if (place->call.queue == WORK_OPEN) {
		uncount_open(table, queue);
		expect_after(queue, work_table_number(table, place), place->newer);
		fetch(table, after(table, after(table, place->newer)));
	}
	place->call.queue = (uint8_t)kind;
	queue = kind == WORK_MET ? &table->met : &table->met_graphs;
	into_queue(table, place, queue);
	fetch(table, after(table, queue->oldest));
}

/*
 * One that has at least half as many as they have on average, and was the one that had most when
 * it was last looked: so looking is rare, and none that has little loses anything.
 */
struct work_queue *work_table_heaviest(struct work_table *table)
{
	struct work_queue *open = &table->open[table->heaviest];

	if (2ull * open->n * table->processes > table->open_calls)
		return open;
	for (uint32_t i = 0; i < table->n_open; i++) {
		if (table->open[i].n > table->open[table->heaviest].n)
			table->heaviest = i;
	}
	return &table->open[table->heaviest];
}
