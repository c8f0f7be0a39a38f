/* SPDX-License-Identifier: MIT */
/* What a trace consists of: events by kind, processes, functions, kernels. */
#pragma once

#include "analysis/stack_counts.h"
#include "trace/event.h"

struct contents_process {
	struct process process;
	uint64_t calls, threads, activities; /* threads: as often as one was met first */
	uint64_t begin_ns;                   /* its first event */
	bool ended;
};

struct contents_stacks {
	uint64_t samples, off_cpu, calls; /* samples: on a CPU; calls: with a stack */
	uint64_t different;
	struct stack_counts counts;   /* of all */
	uint64_t blocked, blocked_ns; /* stretches of time that threads were blocked, all told */
};

struct contents {
	uint64_t calls, failed, unfinished, nested, captured;
	uint64_t threads;                    /* EVENT_THREAD */
	uint64_t activities[ACTIVITY_COUNT]; /* by kind */
	uint64_t ranges[RANGE_COUNT];
	uint64_t metrics;             /* samples of GPUs' metrics */
	uint64_t stalls;              /* events of why kernels wait */
	uint64_t others[LAYER_COUNT]; /* calls that are no CUDA calls, by layer */
	struct contents_stacks stacks;
	uint64_t functions, kernels;        /* that were met */
	struct contents_process *processes; /* by their numbers */
	size_t n_processes;
};

struct consumer *contents_new(void);

/* Owned by the consumer. */
const struct contents *contents_of(const struct consumer *consumer);
