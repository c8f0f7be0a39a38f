/* SPDX-License-Identifier: MIT */
/*
 * What the watch tools show: the kernel sums calls up in maps, and now and then they are read and
 * become a page. A page says how things stand since the beginning; what a renderer wants per
 * interval it takes from the counts of the page before, which rows carry along.
 *
 *   watch_options -> capture_options.watch -> page() at each interval, and a last time at the end
 *
 * Of processes that have ended the last 512 to 1,024 are told apart; those before them are one
 * process, "[ended]", with the sums of all (of peaks the highest).
 *
 * Knows nothing of eBPF, so that analyses and outputs can include it. Processes, functions and
 * kernels are those of event.h and live as long as the capture; rows live during page() only, and
 * with watch_options.forget so do processes that have ended, stacks and frames.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "trace/event.h"

enum watch_tool {
	WATCH_MEMORY = 1 << 0,
	WATCH_LAUNCHES = 1 << 1,
	WATCH_COPIES = 1 << 2,
	WATCH_RESULTS = 1 << 3,    /* of what the others look at, and of waits for the GPU */
	WATCH_NO_KERNELS = 1 << 4, /* launches are told of processes: `kernel` means any kernel */
	WATCH_HOOKS = 1 << 5,      /* what hooks of one's own saw (selection.hooks) */
};

#define WATCH_LOGS 40 /* of a histogram: [i] counts values from 2^i on; [0] also 0 */

/* ---- memory -------------------------------------------------------------------------------- */

/* A live allocation. */
struct watch_allocation {
	const struct process *process;
	enum api_memory kind;            /* never MEMORY_VMM_VA, which is no memory */
	const struct function *function; /* that made it; NULL: not known */
	const struct stack *stack; /* of the call; NULL: none was asked for, or it was not kept */
	uint64_t address;          /* of MEMORY_VMM a handle */
	uint64_t bytes;
	uint64_t time_ns;
};

/* Live allocations of one process, kind, function and stack. */
struct watch_place {
	const struct process *process;
	enum api_memory kind;
	const struct function *function;
	const struct stack *stack;
	uint64_t count, bytes;
	uint64_t older_count, older_bytes; /* of these, older than watch_options.older_ns */
	uint64_t oldest_ns, newest_ns;     /* when they were made */
};

struct watch_count {
	uint64_t count, bytes;
};

/* One kind of one process; allocated is the sum of the six columns after it. */
struct watch_memory_totals {
	const struct process *process;
	bool ended; /* the process */
	enum api_memory kind;
	struct watch_count allocated;
	struct watch_count freed;     /* by a call */
	struct watch_count replaced;  /* its address was given out again: its free was not seen */
	struct watch_count context;   /* went with its context or with a device reset */
	struct watch_count exit;      /* never freed: went with its process */
	struct watch_count untracked; /* its address was not seen, or there was no room */
	struct watch_count live;
};

struct watch_process_memory {
	const struct process *process;
	bool ended;
	struct watch_count live; /* all kinds but MEMORY_VMM_VA */
	uint64_t peak_bytes;     /* of these; taken at each allocation, so pages cannot miss it */
	uint64_t unknown_frees;  /* of addresses whose allocation was not seen */
	uint64_t failed;         /* allocations */
};

/* Allocations that failed. */
struct watch_failure {
	const struct process *process;
	bool ended; /* the process */
	const struct function *function;
	int32_t result;
	uint64_t count, bytes; /* bytes that were asked for, where they are known without the */
			       /* call's outputs */
};

struct watch_memory {
	uint64_t older_ns;                          /* of watch_options */
	const struct watch_allocation *allocations; /* by process, then by age, the oldest first */
	size_t n_allocations;
	const struct watch_place *places; /* the most bytes first */
	size_t n_places;
	const struct watch_place *left; /* what processes had not freed that ended since the page */
	size_t n_left;                  /* before, as if it were still live */
	const struct watch_memory_totals *totals; /* by process, then kind */
	size_t n_totals;
	const struct watch_process_memory *processes; /* also those that have ended */
	size_t n_processes;
	const struct watch_failure *failures; /* the most first */
	size_t n_failures;
	uint64_t no_stack;    /* allocations whose stack could not be kept */
	uint64_t too_fast;    /* allocations that came faster than their stacks are walked */
	uint64_t stacks_turn; /* grows when stacks of pages before are gone: numbers of them and of
	                       * their frames are given out anew */
};

/* The first row of a process in the totals, or where it would be. */
static inline size_t watch_totals_find(const struct watch_memory *memory,
                                       const struct process *process)
{
	return ARRAY_BEFORE(memory->n_totals, i, memory->totals[i].process->id < process->id);
}

/* ---- launches ------------------------------------------------------------------------------ */

/* One kernel in one grid and block; of a graph launch, one executable graph. */
struct watch_shape {
	uint32_t grid[3], block[3]; /* all 0: further shapes, for which there was no room */
	uint64_t count;
};

struct watch_kernel {
	const struct process *process;
	bool ended;                  /* the process */
	const struct kernel *kernel; /* NULL: a graph */
	uint64_t handle;
	uint64_t count, before;           /* before: at the page before */
	uint64_t captured;                /* recorded into a graph, did not run; not in count */
	uint64_t failed;                  /* nor these */
	uint64_t ns, max_ns;              /* in the launching calls; 0 without returns */
	uint64_t timed;                   /* how many of them were timed */
	const struct watch_shape *shapes; /* the most used first */
	size_t n_shapes;
	uint64_t threads[WATCH_LOGS];  /* by threads of a launch, of all its blocks */
	uint64_t duration[WATCH_LOGS]; /* by ns in the launching call */
};

struct watch_launches {
	const struct watch_kernel *kernels; /* the most launched first */
	size_t n_kernels;
};

/* ---- copies -------------------------------------------------------------------------------- */

enum watch_host {                     /* what is known of the host memory of a copy */
	          WATCH_HOST_NONE,    /* there is none, or which side is host is not said */
	          WATCH_HOST_UNKNOWN, /* pageable, or allocated before the watch */
	          WATCH_HOST_PINNED,  /* cuMemAllocHost, cuMemHostRegister and their like */
	          WATCH_HOST_MANAGED,
	          WATCH_HOST_COUNT,
};

struct watch_copies_row {
	const struct process *process;
	bool ended; /* the process */
	bool set;   /* fills rather than copies; direction is DIRECTION_NONE */
	enum api_direction direction;
	bool async;
	enum watch_host host;
	uint64_t calls, calls_before; /* before: at the page before */
	uint64_t bytes, bytes_before;
	uint64_t unsized;           /* of the calls: bytes not known, and not counted */
	uint64_t captured, failed;  /* not in calls */
	uint64_t ns, max_ns;        /* in the calls; 0 without returns */
	uint64_t sizes[WATCH_LOGS]; /* calls by bytes */
};

struct watch_copies {
	const struct watch_copies_row *rows; /* the most bytes first */
	size_t n_rows;
};

/* ---- results ------------------------------------------------------------------------------- */

/* Calls of a function that ended with a result: a failure, or any end of a wait for the GPU. */
struct watch_result {
	const struct process *process;
	bool ended;                      /* the process */
	const struct function *function; /* NULL: several, which are not told apart any more */
	int32_t result;                  /* 65536: no number that a library has */
	uint64_t count, ns;              /* ns: in the calls */
	uint64_t before;                 /* count at the page before */
};

struct watch_results {
	const struct watch_result *rows;
	size_t n_rows;
};

/* ---- hooks of one's own -----------------------------------------------------------------------
 */

struct watch_hook {
	const struct process *process;
	bool ended; /* the process */
	const struct function *function;
	bool sized;                   /* it has an argument that is a size: */
	uint64_t bytes, bytes_before; /* the sum of the first one; before: at the page before */
	uint64_t calls, calls_before; /* without those that threads are in */
	uint64_t unfinished;          /* of the calls: they will not return */
	uint64_t timed, ns, max_ns;   /* of those that returned; of moments 0 */
};

struct watch_hooks {
	const struct watch_hook *rows; /* the most time first, then the most calls */
	size_t n_rows;
};

/* ---- a page -------------------------------------------------------------------------------- */

struct watch_page {
	uint64_t number; /* from 1 */
	bool last;
	uint64_t time_ns;             /* CLOCK_MONOTONIC */
	uint64_t begin_ns, before_ns; /* of the watch; of the page before, or begin_ns */
	int64_t realtime_offset_ns;
	const struct watch_memory *memory; /* NULL where the tool was not asked for */
	const struct watch_launches *launches;
	const struct watch_copies *copies;
	const struct watch_results *results;
	const struct watch_hooks *hooks;
	const uint64_t *lost; /* by enum lost_reason */
	uint64_t unseen;      /* processes that ended before their CUDA library could be hooked */
	uint64_t hooked_files, let_go_files, refused_files; /* as modules_figures has them */
	uint64_t bypassed_files;                            /* foreign_jumps_found */
	uint64_t turns_cut;  /* of the capture, that left records to the next: they took long */
	uint64_t code_bytes; /* in the kernel, for stacks: tables that have no map of their own */
	const struct miss *misses;
	size_t n_misses;
};

struct watch_options {
	unsigned tools; /* enum watch_tool */
	uint64_t interval_ns;
	uint64_t older_ns; /* 0: all */
	bool stacks;       /* of allocations */
	bool forget; /* a process that is not told apart any more ends with the page before, and a
	              * stack that nothing is of: so a watch of any length can be of any number */
	/* 0, or a negative errno with `err` set, which ends the watch. */
	int (*page)(void *data, const struct watch_page *page, struct err *err);
	void *data;
};
