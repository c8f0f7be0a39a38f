/* SPDX-License-Identifier: MIT */
/*
 * What ran on GPUs for the NVTX ranges that threads push and pop: the work whose call began in a
 * range, on its thread. Neither is known first. Work of a call in a range often ends after the
 * range, and becomes known later still. A range that is open for long ends after most of its work.
 * So the work of a thread is kept for ranges to come, and ranges for work to come. Each has a
 * bound; what had to be let go is counted.
 */
#pragma once

#include "trace/event.h"

#define RANGE_WORK_PIECES (1u << 19) /* of work that are kept, of all threads; 32 bytes each */
#define RANGE_WORK_RANGES (1u << 18) /* ranges that are kept; 64 bytes each */
#define RANGE_WORK_LINES  (1u << 16) /* domains of threads with such; 700 bytes each */

struct range_work_done {
	uint64_t range_ns;
	uint64_t begin_ns, end_ns; /* of the first and the last work on a GPU */
	uint64_t ops;              /* 0: there was none, begin and end mean nothing */
	uint64_t children;         /* ranges directly inside */
	uint32_t depth;
};

struct range_work_ops {
	/* A range ended: what it counts for, given back with its work; not NULL. */
	void *(*row)(void *data, const struct event *event);
	/* A piece of its work; `kernel` is NULL for copies, sets and whole graphs. */
	void (*work)(void *data, void *row, const struct kernel *kernel, uint64_t ns);
	/* No more is waited for. */
	void (*done)(void *data, void *row, const struct range_work_done *done);
};

struct range_work;

/* `calls`: its window, or NULL: see work_share(). */
struct work;
struct range_work *range_work_new(const struct range_work_ops *ops, void *data, struct work *calls);
void range_work_free(struct range_work *work);
void range_work_event(struct range_work *work, const struct event *event);

/* After the last event: all ranges are done. */
void range_work_finish(struct range_work *work);

/* Ranges that were open for longer than their work could be kept: some of it is not counted. */
uint64_t range_work_cut(const struct range_work *work);

/* Pieces of work that came when ranges which had ended no earlier than they were asked for had been
 * let go for others: they may be in one of these, and then do not count for it. */
uint64_t range_work_late(const struct range_work *work);
