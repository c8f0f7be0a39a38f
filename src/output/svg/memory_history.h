/* SPDX-License-Identifier: MIT */
/*
 * What a memory plot remembers: live bytes over time, in a bounded number of moments. Private to
 * memory_plot.c, which draws it, and memory_history.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "output/svg/memory_plot.h"

#define HISTORY_BUCKETS   512
#define HISTORY_PROCESSES 48 /* that are told apart; of more, the smallest are one */

/* Rows of a moment: processes, the processes that are one, and kinds of memory. */
enum { ROW_OTHERS = HISTORY_PROCESSES, ROW_KINDS, ROW_COUNT = ROW_KINDS + MEMORY_COUNT };

/* Live bytes from a time on. Rows up to ROW_OTHERS sum to the total, the rest do as well. */
struct moment {
	uint64_t time_ns;
	uint64_t total;
	uint64_t live[ROW_COUNT];
};

struct failure {
	uint64_t count;
	uint64_t bytes; /* of the largest, which the rest is about */
	uint64_t time_ns;
	enum api_memory kind;
	char process[40];
};

struct bucket {
	bool used;
	struct moment low, high, last;
	struct failure failure;
};

/* A process that has a row of its own. */
struct row_owner {
	bool used;
	uint32_t id;
	char name[40]; /* "python (4242)" */
	uint64_t peak;
};

/* A process that holds memory. */
struct holder {
	uint32_t id;
	unsigned row;
	uint64_t live[MEMORY_COUNT];
	UT_hash_handle hh;
};

struct memory_plot {
	uint64_t zero_ns;            /* what times are told from */
	uint64_t begin_ns, width_ns; /* of the first bucket, when something happens first */
	bool any;
	struct bucket *buckets;
	struct moment now; /* not yet in a bucket: more may happen at the same time */
	struct moment peak;
	uint64_t kind_peak[MEMORY_COUNT];
	uint64_t failures;
	struct row_owner owners[HISTORY_PROCESSES];
	uint64_t merged; /* processes that lost their rows */
	struct holder *holders;
};

/* Puts `now` into its bucket. Called before moments are read. */
void history_settle(struct memory_plot *plot);

/* All moments in order of time; `moments` has room for 3 * HISTORY_BUCKETS. */
size_t history_moments(const struct memory_plot *plot, const struct moment **moments);
