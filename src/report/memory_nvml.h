/* SPDX-License-Identifier: MIT */
/*
 * What NVML told of processes while they were recorded, beside what their calls held at that
 * moment. The moments are known when the reading of a file begins: events are followed, and each
 * moment is taken when the first event from then on comes.
 */
#pragma once

#include "analysis/memory.h"
#include "analysis/memory_beyond.h"

struct memory_nvml_row {
	const struct process *process; /* NULL: it was not met */
	uint64_t time_ns;
	enum run_memory_moment moment;
	struct memory_beyond beyond;
};

struct memory_nvml;

/* NULL: NVML told nothing. */
struct memory_nvml *memory_nvml_new(const struct run_info *run);
void memory_nvml_free(struct memory_nvml *nvml);

/* Before what the event changes. These do nothing without moments (NULL). */
void memory_nvml_event(struct memory_nvml *nvml, const struct event *event);
void memory_nvml_changed(struct memory_nvml *nvml, const struct memory_change *change);

/* After the last event: those of a process follow each other, in their order. */
const struct memory_nvml_row *memory_nvml_rows(struct memory_nvml *nvml, size_t *n);
