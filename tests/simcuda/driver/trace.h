/* SPDX-License-Identifier: MIT */
/*
 * What a profiler is told of work: when a task is handed to a stream it becomes one or more struct
 * sim_work, when it has run their times are told. Only tasks that were submitted while the profiler
 * had its hooks are traced. Without a profiler every function here is one comparison.
 */
#ifndef SIMCUDA_DRIVER_TRACE_H
#define SIMCUDA_DRIVER_TRACE_H

#include "stream.h"

static inline bool trace_wanted(void)
{
	return __builtin_expect((gate_state() & GATE_HOOKED) != 0, 0);
}

/* Sets task->trace, NULL where nobody wants to know. Not under sim_lock. */
void trace_submit(struct task *task, CUstream stream, bool async);
/* The task will not run. */
void trace_cancel(const struct task *task);
/* It ran; a graph's nodes one after another. Not under sim_lock, or where the task is trivial. */
void trace_end(const struct task *task, uint64_t begin_ns, uint64_t end_ns);

void trace_instantiated(void); /* a graph; not under sim_lock */

struct plan;
void trace_context_made(CUcontext ctx);
void trace_module_loaded(CUcontext ctx);
void trace_context_ends(CUcontext ctx); /* before anything of it is taken away */
/* A node of a graph was made, as a copy of another or (0) not; all of a plan were. */
void trace_node_made(uint64_t node, uint64_t original);
void trace_planned(const struct plan *plan);

/* Around waiting: trace_now before, the rest after. */
uint64_t trace_now(void); /* 0: nobody wants to know */
void trace_waited(enum sim_wait_kind kind, uint64_t begin_ns, uint32_t context, uint32_t stream,
                  uint32_t event, CUresult result);

#endif
