/* SPDX-License-Identifier: MIT */
/*
 * Which processes an agent is to enter, and when. Not before CUDA works there: CUPTI would set it
 * up itself, and a program that forks its workers before it uses CUDA would find it broken in them.
 * So a process that ran before is entered when it has the driver's device open, and any other one
 * after the first call that did something. A started command brings its agent along; one of its
 * processes that comes without (its environment was cleaned) is entered after a while.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "probe/module.h"

struct gpu_targets;

/* `by_itself`: agents come with the environment of the command. */
struct gpu_targets *gpu_targets_new(bool by_itself, void (*enter)(void *data, pid_t pid),
                                    void *data);
void gpu_targets_free(struct gpu_targets *targets);

/* A process that ran before the trace has a GPU's device open: CUDA works there. */
void gpu_targets_running(struct gpu_targets *targets, pid_t pid, uint64_t now_ns);

/* Whether CUDA works in a process that made this call. */
bool gpu_shows_cuda(const struct wire_call *call, const struct hook *hook);

/* A call was seen. */
void gpu_targets_called(struct gpu_targets *targets, const struct wire_call *call,
                        const struct hook *hook, const struct module *module, uint64_t now_ns);

/* The driver's module of a process, NULL while none of its calls was seen. */
const struct module *gpu_targets_driver(const struct gpu_targets *targets, pid_t pid);

/* Whether there are processes in which CUDA works, and `each` holds for all of them. */
bool gpu_targets_all(const struct gpu_targets *targets, bool (*each)(void *data, pid_t pid),
                     void *data);

/* Whether CUDA works in a process, as far as was seen. */
bool gpu_targets_has(const struct gpu_targets *targets, pid_t pid);

/* An agent is there, or tried to be. */
void gpu_targets_came(struct gpu_targets *targets, pid_t pid);

/* It ended, or is another program. Returns whether it was still to be entered. */
bool gpu_targets_forget(struct gpu_targets *targets, pid_t pid);

/* Has those entered whose time has come. */
void gpu_targets_turn(struct gpu_targets *targets, uint64_t now_ns);
