/* SPDX-License-Identifier: MIT */
/*
 * Records as the eBPF programs would send them of programs that are made up: the next record of
 * several threads, each with its own clock, in the order in which they would reach the rings.
 */
#ifndef BENCH_PIPELINE_WORKLOAD_H
#define BENCH_PIPELINE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"

struct workload;

/* "launches": one thread that launches one kernel again and again. */
/* "training": four threads of two processes; 24 kernels, copies, events, allocations, waits. */
struct workload *workload_new(const char *name);
void workload_free(struct workload *workload);

/* One record, with the size that it has in a ring, and the thread that it is of. */
const struct wire_head *workload_next(struct workload *workload, uint32_t *bytes, unsigned *thread);

/* What bpftrace would print of it, as one line of text: a return probe that shows the function, */
/* the time, the thread, the result and the duration, without arguments, and with them. */
unsigned workload_text(const struct wire_head *record, bool arguments);

#endif
