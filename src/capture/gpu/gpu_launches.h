/* SPDX-License-Identifier: MIT */
/*
 * Who tells of launches: the probes, or the agents, which cost less. Probes are taken away while
 * every process that uses CUDA has an agent that measures, and put back before one may have none.
 * Around each change both tell, and the doubles are left out (gpu_calls.h): no launch is missed and
 * none is told twice.
 */
#ifndef CUSCOPE_CAPTURE_GPU_GPU_LAUNCHES_H
#define CUSCOPE_CAPTURE_GPU_GPU_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/modules.h"
#include "probe/programs.h"

struct gpu_launches;

struct gpu_launches *gpu_launches_new(struct modules *modules, struct programs *programs,
                                      bool returns);
void gpu_launches_free(struct gpu_launches *launches);

/* `covered`: there are processes with CUDA, and all have agents that measure. */
void gpu_launches_turn(struct gpu_launches *launches, bool covered, uint64_t now_ns);

/* A process began, or became another program: for a while it may have no agent. */
void gpu_launches_unsettle(struct gpu_launches *launches, uint64_t now_ns);

/* The probes tell again, from now on. */
void gpu_launches_put_back(struct gpu_launches *launches, uint64_t now_ns);

/* Whether a launch that began then is the agents' to tell of. */
bool gpu_launches_are_told(const struct gpu_launches *launches, uint64_t begin_ns);

#endif
