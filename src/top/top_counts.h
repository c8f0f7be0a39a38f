/* SPDX-License-Identifier: MIT */
/*
 * What processes do at the moment: counts and rates by process, and of each process by function,
 * kernel, stream and kind of memory. A consumer that is looked at while it is fed:
 *
 *   top_counts_tick      ends an interval: rates are those of the interval that ended last
 *   top_snapshot  a copy to show, which stays as it is while counting goes on
 *
 * Memory is bounded by processes that run, their functions, kernels and live allocations, and
 * TOP_STREAMS_MAX streams and TOP_HOOKS_MAX hooks of one's own each. A process that ended is shown
 * for TOP_ENDED_NS more and then merged into one row with all that went before it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/memory.h"
#include "trace/event.h"

#define TOP_ENDED_NS    5000000000ull
#define TOP_STREAMS_MAX 256   /* of a process; what other streams do is one row */
#define TOP_HOOKS_MAX   1024  /* of a process, and of those that are gone; the same */
#define TOP_HOOKS_ALL   65536 /* of all processes */

/* Calls made inside other calls are in none; the work is that of calls that did it. */
enum top_number {
	TOP_COUNT_CALLS,
	TOP_COUNT_ERRORS,
	TOP_COUNT_LAUNCHES,
	TOP_COUNT_GRAPH_LAUNCHES,
	TOP_COUNT_SYNC_NS, /* in calls that wait for the device, threads added up */
	TOP_COUNT_SET_BYTES,
	TOP_COUNT_COPIES,                                          /* + direction */
	TOP_COUNT_COPY_BYTES = TOP_COUNT_COPIES + DIRECTION_COUNT, /* + direction */
	TOP_COUNTS = TOP_COUNT_COPY_BYTES + DIRECTION_COUNT,
};

struct top_count {
	uint64_t total;  /* since the begin, or the last reset */
	uint64_t before; /* at the end of the last interval */
	double rate;     /* a second, in the last interval */
};

/* What is told apart of a process. */
enum top_kind {
	TOP_KIND_FUNCTION,
	TOP_KIND_KERNEL,
	TOP_KIND_STREAM,
	TOP_KIND_HOOK, /* of one's own: its calls are none of CUDA */
	TOP_KINDS,
};

struct top_stream_key {
	uint64_t handle; /* 0: the default stream, and calls that name none */
	uint64_t tid;    /* of a thread's own stream, else 0 */
};

/* One of them, and what is counted of its kind. What is not known is TABLE_NOT_KNOWN,
 * and a rate NAN. */
struct top_item {
	const char *name;            /* of functions and hooks */
	const struct kernel *kernel; /* of kernels */
	struct top_stream_key stream;
	bool others;               /* all that came after TOP_STREAMS_MAX or TOP_HOOKS_MAX */
	struct top_count calls;    /* of kernels and streams: launches */
	struct top_count copies;   /* of streams, and their bytes: */
	struct top_count bytes;    /* of hooks the sum of the first argument that is a size */
	uint64_t counted;          /* of calls: inside of the process only, not one by one */
	uint64_t failed;           /* of calls */
	uint64_t gpu_runs, gpu_ns; /* of a kernel on GPUs, where their times are recorded */
	/* Of calls that have an end; p50 and p99 of functions, within SKETCH_ERROR. */
	uint64_t time_ns, mean_ns, max_ns, p50_ns, p99_ns;
};

struct top_items {
	struct top_item *all;
	size_t n;
};

/* What a process has allocated and not freed. */
struct top_memory {
	uint64_t count, bytes, peak_bytes;
};

struct top_process {
	const struct process *process;
	bool ended;
	bool entries_only; /* no call of it had a return: times and memory are not known */
	struct top_count numbers[TOP_COUNTS];
	struct top_memory memory[MEMORY_COUNT]; /* of MEMORY_NONE: all kinds */
	uint64_t threads;                       /* that ended calls in the last interval */
	double sync_share; /* of these threads' time in that interval, 0 to 1 */

	/*
	 * Of GPUs, where their times are recorded. What ran is known late and in bursts: the share
	 * is that of the newest time of which it is known, 0 to 1, of the GPUs that the process
	 * used; negative: not known.
	 */
	double gpu_share;
	uint64_t gpu_ns; /* in which something of it ran, GPUs added up */

	struct top_items items[TOP_KINDS]; /* but for hooks only where they were asked for */
};

struct top_snapshot {
	uint64_t begin_ns;    /* of the counting */
	uint64_t time_ns;     /* when the last interval ended */
	uint64_t interval_ns; /* how long it was; 0: there was none, rates are 0 */
	bool gpu_times;       /* something ran on a GPU, and that is known */
	struct top_process *processes;
	size_t n_processes;
	struct top_process total; /* of all, with those that are gone; process is NULL */
	struct top_process gone;
	size_t n_gone;
};

struct top_counts;

struct top_counts *top_counts_new(void);

/* What ran on GPUs is not counted: it is known of a part of the time alone. */
void top_counts_ignore_gpu(struct top_counts *counts);
struct consumer *top_counts_consumer(struct top_counts *counts); /* its free() frees the whole */

/*
 * A thread of a process is in a call at this moment, since `begin_ns`: where it is one that waits,
 * it is waiting. To be told of all before top_counts_tick(), since a call is an event only when it
 * ends.
 */
void top_counts_open_call(struct top_counts *counts, uint32_t pid, uint32_t tid,
                          const struct function *function, uint64_t begin_ns, uint64_t now_ns);

/* So many more calls were counted inside of a process, and are no events. */
void top_counts_counted(struct top_counts *counts, uint32_t pid, const struct function *function,
                        uint64_t calls);

void top_counts_tick(struct top_counts *counts, uint64_t now_ns);

/* All counts are 0 again, peaks are what is counts, and what is gone is forgotten. */
void top_counts_reset(struct top_counts *counts, uint64_t now_ns);

/* This process (by id) is not merged when it has ended; another or none takes its place. */
void top_counts_keep(struct top_counts *counts, const uint32_t *process_id);

/* A process whose end was not reported, as a full ring can lose it. */
void top_counts_end(struct top_counts *counts, uint32_t process_id, uint64_t now_ns);

/* With the details of the process that is kept, or of all. The caller frees it. Names in it are
 * the source's and live until the consumer's end() has returned. */
void top_counts_snapshot(const struct top_counts *counts, bool details_of_all,
                         struct top_snapshot *snapshot);
void top_snapshot_free(struct top_snapshot *snapshot);
