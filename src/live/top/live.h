/* SPDX-License-Identifier: MIT */
/*
 * What processes do at the moment: counts and rates by process, and of each process by function,
 * kernel, stream and kind of memory. A consumer that is looked at while it is fed:
 *
 *   live_tick      ends an interval: rates are those of the interval that ended last
 *   live_snapshot  a copy to show, which stays as it is while counting goes on
 *
 * Memory is bounded by processes that run, their functions, kernels and live allocations, and
 * LIVE_STREAMS_MAX streams each. A process that ended is shown for LIVE_ENDED_NS more and then
 * folded into one row with all that went before it.
 */
#ifndef CUSCOPE_LIVE_TOP_LIVE_H
#define CUSCOPE_LIVE_TOP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/memory.h"
#include "trace/event.h"

#define LIVE_ENDED_NS    5000000000ull
#define LIVE_STREAMS_MAX 256 /* of a process; what other streams do is one row */

/* Calls made inside other calls are in none; the work is that of calls that did it. */
enum live_number {
	LIVE_CALLS,
	LIVE_ERRORS,
	LIVE_LAUNCHES,
	LIVE_GRAPH_LAUNCHES,
	LIVE_SYNC_NS, /* in calls that wait for the device, threads added up */
	LIVE_SET_BYTES,
	LIVE_COPIES,                                     /* + direction */
	LIVE_COPY_BYTES = LIVE_COPIES + DIRECTION_COUNT, /* + direction */
	LIVE_NUMBERS = LIVE_COPY_BYTES + DIRECTION_COUNT,
};

struct live_count {
	uint64_t total;  /* since the begin, or the last reset */
	uint64_t before; /* at the end of the last interval */
	double rate;     /* a second, in the last interval */
};

struct live_function {
	const struct function *function; /* the first of that name */
	struct live_count calls;
	uint64_t failed;
	/* Of calls that have an end, within SKETCH_ERROR; TABLE_NOT_KNOWN where there were none. */
	uint64_t time_ns, p50_ns, p99_ns;
};

struct live_kernel {
	const struct kernel *kernel;
	struct live_count launches;
	uint64_t gpu_runs, gpu_ns; /* on GPUs, where their times are recorded */
};

struct live_stream_key {
	uint64_t handle; /* 0: the default stream, and calls that name none */
	uint64_t tid;    /* of a thread's own stream, else 0 */
};

struct live_stream {
	struct live_stream_key key;
	bool others; /* all that came after LIVE_STREAMS_MAX */
	struct live_count launches, copies, copy_bytes;
};

/* What a process has allocated and not freed. */
struct live_memory {
	uint64_t count, bytes, peak_bytes;
};

struct live_process {
	const struct process *process;
	bool ended;
	bool entries_only; /* no call of it had a return: times and memory are not known */
	struct live_count numbers[LIVE_NUMBERS];
	struct live_memory memory[MEMORY_COUNT]; /* of MEMORY_NONE: all kinds */
	uint64_t threads;                        /* that ended calls in the last interval */
	double sync_share; /* of these threads' time in that interval, 0 to 1 */

	/*
	 * Of GPUs, where their times are recorded. What ran is known late and in bursts: the share
	 * is that of the newest time of which it is known, 0 to 1, of the GPUs that the process
	 * used; negative: not known.
	 */
	double gpu_share;
	uint64_t gpu_ns; /* in which something of it ran, GPUs added up */

	/* only where the snapshot was asked for them */
	struct live_function *functions;
	struct live_kernel *kernels;
	struct live_stream *streams;
	size_t n_functions, n_kernels, n_streams;
};

struct live_snapshot {
	uint64_t begin_ns;    /* of the counting */
	uint64_t time_ns;     /* when the last interval ended */
	uint64_t interval_ns; /* how long it was; 0: there was none, rates are 0 */
	bool gpu_times;       /* something ran on a GPU, and that is known */
	struct live_process *processes;
	size_t n_processes;
	struct live_process total; /* of all, with those that are gone; process is NULL */
	struct live_process gone;
	size_t n_gone;
};

struct live;

struct live *live_new(void);
struct consumer *live_consumer(struct live *live); /* its free() frees the whole */

/*
 * A thread of a process is in a call at this moment, since `begin_ns`: where it is one that waits,
 * it is waiting. To be told of all before live_tick(), since a call is an event only when it ends.
 */
void live_open_call(struct live *live, uint32_t pid, uint32_t tid, const struct function *function,
                    uint64_t begin_ns, uint64_t now_ns);

void live_tick(struct live *live, uint64_t now_ns);

/* All counts are 0 again, peaks are what is live, and what is gone is forgotten. */
void live_reset(struct live *live, uint64_t now_ns);

/* This process (by id) is not folded when it has ended; another or none takes its place. */
void live_keep(struct live *live, const uint32_t *process_id);

/* A process whose end was not reported, as a full ring can lose it. */
void live_end(struct live *live, uint32_t process_id, uint64_t now_ns);

/* With the details of the process that is kept, or of all. The caller frees it. Names in it are
 * the source's and live until the consumer's end() has returned. */
void live_snapshot(const struct live *live, bool details_of_all, struct live_snapshot *snapshot);
void live_snapshot_free(struct live_snapshot *snapshot);

#endif
