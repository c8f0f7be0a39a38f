/* SPDX-License-Identifier: MIT */
/* A program run on each CPU so many times a second, by the CPU's clock: while it is idle, not. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct cpu_samples;

/* `program` is of type perf_event and stays the caller's. */
int cpu_samples_begin(int program, uint64_t period_ns, struct cpu_samples **samples,
                      struct err *err);
void cpu_samples_end(struct cpu_samples *samples); /* NULL is allowed */
