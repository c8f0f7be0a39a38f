/* SPDX-License-Identifier: MIT */
/* What the summary counts; the overview and comparisons look at it, too. */
#pragma once

#include "analysis/errors.h"
#include "analysis/gpu_tally.h"
#include "analysis/memory.h"
#include "analysis/spread.h"
#include "base/hash.h"
#include "trace/event.h"

/* All functions of one name, whatever their module: two copies of a library are one row. */
struct function_tally {
	const struct function *function; /* the first of them */
	uint64_t calls, nested, failed, unfinished;
	struct recurrence seen;
	struct spread durations; /* of the calls that have an end */
	/* Its places, from 1 on, in a table with these; 0: it has none. */
	size_t total_rank, average_rank;
	UT_hash_handle hh;
};

struct kernel_tally {
	const char *name;
	bool resolved;
	uint64_t launches, captured;
	struct recurrence seen; /* its launches; of several of the name, the one seen most often */
	UT_hash_handle hh;
};

struct transfer_count {
	uint64_t count, bytes;
	uint64_t unsized; /* of `count`: they do not say how many bytes, `bytes` is without them */
};

/*
 * Calls made inside other calls are in `functions` and `nested` and nowhere else. What did not
 * happen (failed, unfinished) or did not happen yet (captured into a graph) is in none of the
 * counts of launches, memory and transfers.
 */
struct tally {
	uint64_t processes; /* that made calls */
	uint64_t processes_without_calls;
	uint64_t calls, failed, unfinished, entry_only, nested;
	uint64_t after_shutdown; /* of the failed: see cuda_error_is_shutdown() */
	uint64_t launches, graph_launches, host_launches;
	uint64_t captured_launches, captured_other;
	struct transfer_count copies[DIRECTION_COUNT], all_copies, sets;
	uint64_t syncs, sync_ns;
	struct recurrence work[OP_COUNT]; /* the counts of launches, transfers and syncs */
	uint64_t driver_calls, driver_ns; /* of the kernel side, where they were asked for */
	struct memory *memory;
	struct gpu_tally *gpu;            /* of which rows are asked for, too */
	struct function_tally *functions; /* hash by name */
	struct consumer *errors;          /* analysis/errors.h */
	struct kernel_tally *kernels;     /* hash by name */
};

/*
 * Rows in order; the caller frees the array. Equal rows are in the order of their names, so that
 * two runs that did the same print the same.
 */
enum function_order { BY_CALLS, BY_TOTAL_TIME, BY_AVERAGE_TIME };

struct function_tally **tally_functions(const struct tally *tally, enum function_order by,
                                        size_t *n);
const struct kernel_tally **tally_kernels(const struct tally *tally, size_t *n);

/* Whether the numbers of a function's calls can be multiplied: they recur, and do not come in pairs
 * with those of another function, of which more may have been seen. */
bool tally_is_scalable(const struct function_tally *function);

bool tally_is_error_scalable(const struct tally *tally, const struct error_row *error);

/* The counts as they would be had all been seen, where they can be multiplied; memory is not. */
struct tally tally_estimated(const struct tally *tally, double scale);

/* Kernels without a name, and how often they were launched. */
struct memory_count tally_unresolved(const struct tally *tally);

/* Of the consumer that summary_new() made; `kernels` is filled by its end. */
const struct tally *summary_tally(const struct consumer *summary);
