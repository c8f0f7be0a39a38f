/* SPDX-License-Identifier: MIT */
/*
 * What processes did, by process and for the machine, kept over the pages of a watch.
 *
 * Totals of the machine only grow, whichever processes come and go. Series of processes are
 * bounded: those with the most to tell have one each, all others are one, `other`. Each call that
 * a process makes is in exactly one series: in its own where it has one by then, else in `other`.
 * What is in a series stays there. So the rates of all series add up to that of the machine, and a
 * process that gets a series, loses it or ends moves nothing. A process that is younger than
 * `age_ns` waits: then it gets a series, with all that it did, or is one of the others.
 *
 * Of several users none has more than a share of the series (quota_of_places) while others want
 * them.
 */
#ifndef CUSCOPE_NODE_COUNTS_H
#define CUSCOPE_NODE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/watch/watch.h"
#include "cuda/api.h"

/* What is counted. Each group has a place for every direction or kind. */
enum count {
	COUNT_LAUNCHES,
	COUNT_LAUNCH_NS,
	COUNT_GRAPH_LAUNCHES,
	COUNT_COPIES,
	COUNT_COPY_BYTES = COUNT_COPIES + DIRECTION_COUNT,
	COUNT_COPY_NS = COUNT_COPY_BYTES + DIRECTION_COUNT,
	COUNT_SETS = COUNT_COPY_NS + DIRECTION_COUNT,
	COUNT_SET_BYTES,
	COUNT_ALLOCATIONS,
	COUNT_ALLOCATED_BYTES = COUNT_ALLOCATIONS + MEMORY_COUNT,
	COUNT_FREES = COUNT_ALLOCATED_BYTES + MEMORY_COUNT,
	COUNT_SYNCS = COUNT_FREES + MEMORY_COUNT,
	COUNT_SYNC_NS,
	COUNT_ERRORS,
	COUNTS
};

struct counted_memory {
	uint64_t live[MEMORY_COUNT]; /* bytes; MEMORY_VMM_VA is in no sum */
	uint64_t peak;               /* of all kinds together */
};

/* A series of its own. */
struct counted_process {
	const struct process *process;
	bool ended;
	uint64_t since_ns;   /* CLOCK_MONOTONIC: its counters were 0 */
	uint64_t created_ns; /* the same since 1970, as the clock stood when the series began: one
	                      * that is set later does not move it */
	uint64_t counts[COUNTS];
	struct counted_memory memory;
};

struct counts;

struct counts_options {
	size_t top;
	uint64_t age_ns;
	uint64_t (*person)(pid_t pid); /* whose it is: probe/person.h. NULL: all are root's */
};

struct counts *counts_new(uint64_t begin_ns);
void counts_free(struct counts *counts);

void counts_take(struct counts *counts, const struct counts_options *options,
                 const struct watch_page *page);

/* Whether what a row tells of is an error. */
bool counts_is_error(const struct watch_result *row);

/* Of the machine, since counts_new. */
const uint64_t *counts_totals(const struct counts *counts);
const struct counted_memory *counts_memory(const struct counts *counts);
const uint64_t *counts_peaks(const struct counts *counts); /* of live, by kind, at any page */
size_t counts_running(const struct counts *counts);        /* processes that have not ended */
uint64_t counts_seen(const struct counts *counts);         /* processes so far */
size_t counts_over_share(const struct counts *counts); /* without a series for the share alone */

/* Whose a process is, asked once; PERSON_UNKNOWN of one that had ended by then. */
uint64_t counts_person(const struct counts *counts, const struct process *process);

/* Those with series, and the others; until the next counts_take. */
size_t counts_shown(const struct counts *counts, const struct counted_process *const **shown);
const struct counted_process *counts_other(const struct counts *counts);

#endif
