/* SPDX-License-Identifier: MIT */
/* What top_counts.c keeps of one process. Private to it. */
#ifndef CUSCOPE_TOP_TOP_ROWS_H
#define CUSCOPE_TOP_TOP_ROWS_H

#include "analysis/busy.h"
#include "base/hash.h"
#include "top/top_counts.h"
#include "analysis/spread.h"

/* ---- top hooks ----------------------------------------------------------------------------- */

/*
 * What one process did in functions that users hook (--hook): a row for each name, as many as
 * TOP_HOOKS_MAX, and one for all others. Private to top_counts.c.
 */

struct hook_row;

struct hook_rows {
	struct hook_row *rows; /* hash by name */
	struct hook_row *last;
	struct hook_row *others; /* NULL: all have rows */
};

/* One call. True where that made a row; without `room` none is made. */
bool hook_rows_count(struct hook_rows *rows, const struct call *call, bool room);

void hook_rows_tick(struct hook_rows *rows, double seconds);

/* Adds those of a process that is no longer told apart. How many rows that made. */
size_t hook_rows_merge(struct hook_rows *into, const struct hook_rows *from, size_t room);

/* Frees them, and says how many they were, without that of the others. */
size_t hook_rows_forget(struct hook_rows *rows);

void hook_rows_copy(const struct hook_rows *rows, struct top_process *into);

/* ---- top rows ------------------------------------------------------------------------------ */

struct function_row {
	struct top_function shown;
	struct sketch durations;
	UT_hash_handle hh; /* by name: two copies of a library are one row */
};

struct top_kernel_row {
	uint32_t id;
	struct top_kernel shown;
	UT_hash_handle hh;
};

struct top_stream_row {
	struct top_stream shown;
	UT_hash_handle hh; /* by handle; the row of the others is in no hash */
};

struct top_thread_row {
	uint32_t tid;
	uint64_t interval; /* number of the one in which it last ended a call */
	UT_hash_handle hh;
};

/* A GPU that the process used. */
struct gpu_row {
	uint32_t device;
	struct busy busy;
	struct gpu_row *next;
};

struct top_process_row {
	uint32_t id;
	struct top_process shown;
	uint64_t ended_ns;
	uint64_t entries, sync_ns; /* calls without a return; waiting within this interval */
	struct function_row *functions;
	struct function_row **function_by_id; /* a cache in front of that hash */
	size_t n_function_by_id;
	struct top_kernel_row *kernels, *last_kernel;
	struct top_stream_row *streams, *other_streams;
	struct top_thread_row *threads, *last_thread;
	struct hook_rows hooks;
	struct gpu_row *gpus;
	uint64_t gpu_before_ns; /* of them, when gpu_share was last reckoned */
	UT_hash_handle hh;
};

/* One call that ended in the interval with that number, which began at `since_ns`. */
void rows_count(struct top_process_row *row, const struct event *event, uint64_t interval,
                uint64_t since_ns);

/* Calls that are no events. */
void rows_count_more(struct top_process_row *row, const struct function *function, uint64_t calls);

/* A wait that has not ended yet: its part of this interval. */
void rows_wait(struct top_process_row *row, uint32_t tid, uint64_t begin_ns, uint64_t now_ns,
               uint64_t interval, uint64_t since_ns);

/* Something ran on a GPU. */
void rows_count_activity(struct top_process_row *row, const struct activity *activity);

/* What ran is known for `ns` more; 0: nothing was heard of GPUs for a while. */
void rows_tick_gpu(struct top_process_row *row, uint64_t ns);

/* The interval took `seconds`: rates are set and the next one begins. */
void rows_tick(struct top_process_row *row, double seconds, uint64_t interval);

void count_tick(struct top_count *count, double seconds);

/* Frees what hangs on it; counts of the process itself stay. */
void rows_forget(struct top_process_row *row);

/* Copies of functions, kernels and streams, with their percentiles. */
void rows_copy_details(const struct top_process_row *row, struct top_process *into);

#endif
