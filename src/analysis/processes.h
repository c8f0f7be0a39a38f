/* SPDX-License-Identifier: MIT */
/* What each process did. Those that made no CUDA call and used no GPU have no row. */
#pragma once

#include "analysis/memory.h"
#include "trace/event.h"

struct process_row {
	const struct process *process;
	uint64_t calls; /* that no other call made */
	uint64_t call_ns;
	uint64_t failed, unfinished;
	uint64_t launches, graph_launches;
	struct memory_count copies, sets;
	uint64_t live_bytes, peak_bytes;
	uint64_t begin_ns; /* seen for the first time */
	uint64_t end_ns;   /* its end, or the last that was seen of it */
	bool ended;
};

struct consumer *processes_new(void);

/* In the order in which they began. Owned by `processes`, until the next event. */
const struct process_row *processes_rows(struct consumer *processes, size_t *n);
