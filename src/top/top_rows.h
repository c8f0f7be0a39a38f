/* SPDX-License-Identifier: MIT */
/* What top_counts.c keeps of one process. Private to it. */
#pragma once

#include "analysis/busy.h"
#include "base/hash.h"
#include "top/top_counts.h"
#include "analysis/spread.h"

struct item_row {
	struct top_item shown;
	const void *of; /* the function or kernel that was met first */
	size_t sized;   /* of a hook: 1 and the index of its first argument that is a size */
	bool any_sized; /* of the others: one of them is */
	uint64_t timed; /* calls that have an end */
	struct sketch *durations; /* of these, of a function */
	UT_hash_handle hh;
};

/* All of a kind: of functions and hooks by name, since two copies of a library are one row. */
struct item_rows {
	struct item_row *rows, *last;
	struct item_row *others; /* in no hash; NULL: all have rows */
};

/* Adds those of a process that is no longer told apart, as long as there are `most` at most. */
void items_merge(struct item_rows *into, const struct item_rows *from, size_t most);

void items_tick(struct item_rows *items, double seconds);
void items_forget(struct item_rows *items);
void items_copy(const struct item_rows *items, enum top_kind kind, struct top_items *into);

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
	struct item_rows items[TOP_KINDS];
	struct item_row **function_by_id; /* a cache in front of functions */
	size_t n_function_by_id;
	struct top_thread_row *threads, *last_thread;
	struct gpu_row *gpus;
	uint64_t gpu_before_ns; /* of them, when gpu_share was last reckoned */
	UT_hash_handle hh;
};

/* One call that ended in the interval with that number, which began at `since_ns`. */
void rows_count(struct top_process_row *row, const struct event *event, uint64_t interval,
                uint64_t since_ns);

/* A call of a hook of one's own; one that was not met so far has a row if there are fewer than
 * `most`. */
void rows_count_hook(struct top_process_row *row, const struct call *call, size_t most);

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
void count_add(struct top_count *into, const struct top_count *from);

/* Frees what hangs on it; counts of the process itself stay. */
void rows_forget(struct top_process_row *row);
