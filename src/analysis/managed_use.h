/* SPDX-License-Identifier: MIT */
/*
 * Managed memory as the driver's own functions tell of it (recorded with --kernel): how many faults
 * and migrations of each kind there were, and which allocations they hit. Sums are counted, which
 * have each event once; single ones are a sample of the same and are left out.
 */
#pragma once

#include "cuda/driver_words.h"
#include "trace/event.h"

#define MANAGED_ROWS        1024 /* kinds, causes and directions of processes */
#define MANAGED_ALLOCATIONS 4096

/* Of one kind, cause and direction. */
struct managed_row {
	const struct process *process;
	struct managed event;
	uint64_t count, bytes, time_ns;
	uint64_t sizes[MANAGED_SIZES];
	uint64_t first_ns, last_ns; /* when */
};

/* What hit one allocation, also after it was freed. */
struct managed_allocation {
	const struct process *process;
	const struct function
		*function; /* that made it; NULL: no managed allocation was seen there */
	const struct stack *stack;
	uint64_t address, bytes;
	bool live;
	uint64_t cpu_faults, gpu_faults;
	uint64_t to_gpu_bytes, to_cpu_bytes, evicted_bytes; /* evicted: of those to the CPU */
	uint64_t thrashing;
	uint64_t moved_bytes; /* all together */
};

struct managed_use;

struct consumer *managed_use_new(void);

/* Most frequent first, and most bytes moved first. Owned by the consumer, until the next event. */
const struct managed_row *managed_use_rows(struct consumer *use, size_t *n);
const struct managed_allocation *managed_use_allocations(struct consumer *use, size_t *n);

/* Events that no row had room for. */
uint64_t managed_use_dropped(const struct consumer *use);

/* The class that half of the events are below, as its upper bound; 0: none. */
uint64_t managed_median(const struct managed_row *row);
