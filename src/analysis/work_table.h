/* SPDX-License-Identifier: MIT */
/*
 * The calls that a window of work.h keeps. Each has a place, is found by its process and number,
 * and is in one queue by age.
 *
 * Most work comes in the order of its calls, or of those of its stream, and seconds after them,
 * when their places have long left the caches. So each process has two places near which its next
 * work is expected. They are compared before the hash is asked, and what is behind them is fetched
 * meanwhile.
 */
#pragma once

#include <stddef.h>

#include "analysis/work.h"

#define WORK_NONE UINT32_MAX

/* What a place is in: queue of struct work_call. */
enum work_queue_kind { WORK_FREE, WORK_OPEN, WORK_MAY, WORK_MET, WORK_MET_GRAPH };

/* By age. */
struct work_queue {
	uint32_t oldest, newest, n;
	uint32_t expected[2]; /* of open calls: those after the last whose work came */
};

struct work_place {
	struct work_call call;
	uint32_t chain; /* the next place of the same hash; of a free one, the next free one */
	uint32_t newer, older; /* of its queue */
};

struct work_table {
	struct work_place *places; /* those from `used` on were never used */
	uint32_t *chains;
	uint32_t n, used, most, free; /* n: a power of two, but for the last step to `most` */
	uint32_t limit;               /* of places: `most`, or few where no activity is expected */
	uint32_t n_chains;            /* a power of two */
	unsigned stretches_shift;     /* of a chain's number: see chain_of() */
	uint64_t secret[2];           /* odd */
	struct work_queue *open;      /* by process id */
	size_t n_open;
	uint32_t heaviest, processes; /* id of a process with many open calls; that have any */
	uint64_t open_calls;
	struct work_queue maybes, met, met_graphs;
};

void work_table_init(struct work_table *table, size_t bytes);
void work_table_free(struct work_table *table);

/* More places, up to the limit. Places move. */
void work_table_grow(struct work_table *table);

/* NULL: there is none, and more have to be made or let go. */
struct work_place *work_table_take(struct work_table *table);

/* A place that was taken, with its call in it. */
void work_table_add(struct work_table *table, struct work_place *place, enum work_queue_kind kind);
void work_table_drop(struct work_table *table, struct work_place *place);

/* The first work of an open call, or of one that may have some, has come. */
void work_table_meet(struct work_table *table, struct work_place *place, enum work_queue_kind kind);

struct work_place *work_table_find_hashed(const struct work_table *table,
                                          const struct process *process, uint64_t correlation);

/* Open calls of the process from which one is to leave. */
struct work_queue *work_table_heaviest(struct work_table *table);

static inline uint32_t work_table_number(const struct work_table *table,
                                         const struct work_place *place)
{
	return (uint32_t)(place - table->places);
}

static inline bool work_place_is(const struct work_place *place, const struct process *process,
                                 uint64_t correlation)
{
	return place->call.correlation == correlation && place->call.process == process;
}

/* `at`, or the one after it; else NULL. What has left keeps its links, which lead to some place. */
static inline struct work_place *work_table_near(const struct work_table *table, uint32_t at,
                                                 const struct process *process,
                                                 uint64_t correlation)
{
	for (unsigned i = 0; i < 2 && at != WORK_NONE; i++) {
		struct work_place *place = &table->places[at];

		if (work_place_is(place, process, correlation) && place->call.queue != WORK_FREE)
			return place;
		at = place->newer;
	}
	return NULL;
}

/* No call has the process and number of another: it does not matter which way finds it. */
static inline struct work_place *
work_table_find(const struct work_table *table, const struct process *process, uint64_t correlation)
{
	const struct work_queue *open;
	struct work_place *place = NULL;

	if (process->id < table->n_open) {
		open = &table->open[process->id];
		place = work_table_near(table, open->expected[0], process, correlation);
		if (!place)
			place = work_table_near(table, open->expected[1], process, correlation);
	}
	return place ? place : work_table_find_hashed(table, process, correlation);
}
