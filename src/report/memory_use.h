/* SPDX-License-Identifier: MIT */
/* What memory was used for: by kind, by the function that made it, and what stayed. */
#pragma once

#include "analysis/memory.h"
#include "analysis/memory_beyond.h"

#define MEMORY_BIGGEST 20

struct memory_kind_row {
	const struct process *process; /* NULL: all together */
	enum api_memory kind;          /* MEMORY_NONE: all together */
	const struct memory_totals *totals;
};

struct memory_function_row {
	const struct function *function; /* where two libraries have it, one for each */
	const struct memory_totals *totals;
};

/* What one function made for one place, but address space without memory. */
struct memory_place_row {
	const struct function *function;
	const char *place; /* as analysis/place.h labels it */
	struct memory_totals totals;
};

/* One that was never freed. */
struct kept_allocation {
	struct memory_allocation allocation;
	bool exited; /* went with its process; else it was live at the end of the trace */
};

/* What NVML told of a process, beside what its calls held at that moment. */
struct memory_nvml_row {
	const struct process *process; /* NULL: it was not met */
	uint64_t time_ns;
	enum run_memory_moment moment;
	struct memory_beyond beyond;
};

struct consumer *memory_use_new(void);

/* The rows of each: owned by `use`, until the next event. */

/* Each process by itself, in their order; with more than one, all of them together first. */
const struct memory_kind_row *memory_use_kinds(struct consumer *use, size_t *n);

/* Most bytes first. */
const struct memory_function_row *memory_use_functions(struct consumer *use, size_t *n);

/* What was not freed first, most bytes first. None where no allocation has a stack. */
const struct memory_place_row *memory_use_places(struct consumer *use, size_t *n);

/* The place of an allocation. */
const char *memory_use_place(struct consumer *use, const struct memory_allocation *allocation);

/* The biggest, MEMORY_BIGGEST at most; of equal ones the oldest. */
const struct kept_allocation *memory_use_kept(struct consumer *use, size_t *n);

/* What NVML told of each process, in their order and that of time; none where it told nothing. */
const struct memory_nvml_row *memory_use_nvml(struct consumer *use, size_t *n);

const struct memory *memory_use_memory(const struct consumer *use);
