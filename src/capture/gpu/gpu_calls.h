/* SPDX-License-Identifier: MIT */
/*
 * Launches that agents tell of and no program saw: put into the form in which the programs send
 * calls, so that all that follows is the same. A callback of CUPTI costs a tenth of a probe.
 *
 * While probes are taken away or put back, both tell of a launch. The agent's comes first, since
 * its callback ends before the function does, unless something holds its ring up: whichever comes
 * second is a double.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire.h"
#include "bpf/wire.h"
#include "capture/order.h"
#include "probe/module.h"
#include "probe/modules.h"
#include "probe/programs.h"

struct gpu_calls;

struct gpu_calls *gpu_calls_new(const struct wire_state *state);
void gpu_calls_free(struct gpu_calls *calls);

/* The hook of a launch by its name in the driver that a process uses; NULL: agents do not tell of
 * it instead of programs. */
const struct hook *gpu_calls_hook(const struct module *driver, const char *name);

/* Adds a call, and the name of its kernel where that is not known yet. */
void gpu_calls_add(struct gpu_calls *calls, uint32_t pid, uint32_t tid, const struct hook *hook,
                   const struct agent_call *record);

/* The records, of all processes in their order in time: for order_add_source. */
struct order_source gpu_calls_source(struct gpu_calls *calls);

/* Launches that were told of and had no room to wait for their place in time. */
uint64_t gpu_calls_refused(const struct gpu_calls *calls);

/* Launches that were told of without all their arguments. */
uint64_t gpu_calls_unreadable(const struct gpu_calls *calls);

/* Whether an agent told of this launch that a program saw, or the other way round. To be asked of
 * each launch of both, as they are passed on. */
bool gpu_calls_is_double(struct gpu_calls *calls, const struct wire_call *call);

void gpu_calls_forget(struct gpu_calls *calls, uint32_t pid);

/* ---- gpu launches -------------------------------------------------------------------------- */

/*
 * Who tells of launches: the probes, or the agents, which cost less. Probes are taken away while
 * every process that uses CUDA has an agent that measures, and put back before one may have none.
 * Around each change both tell, and the doubles are left out (gpu_calls.h): no launch is missed and
 * none is told twice.
 */

struct gpu_launches;

struct gpu_launches *gpu_launches_new(struct modules *modules, struct programs *programs);
void gpu_launches_free(struct gpu_launches *launches);

/* `covered`: there are processes with CUDA, and all have agents that measure. */
void gpu_launches_turn(struct gpu_launches *launches, bool covered, uint64_t now_ns);

/* A process began, or became another program: for a while it may have no agent. */
void gpu_launches_unsettle(struct gpu_launches *launches, uint64_t now_ns);

/* The probes tell again, from now on. */
void gpu_launches_put_back(struct gpu_launches *launches, uint64_t now_ns);

/* Whether a launch that began then is the agents' to tell of. */
bool gpu_launches_are_told(const struct gpu_launches *launches, uint64_t begin_ns);
